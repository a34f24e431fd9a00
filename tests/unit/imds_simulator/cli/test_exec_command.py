# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""``exec``: the environment, the exit codes and the signals of a command.

With ``--imds-address`` the command has a network in which 169.254.169.254 is the simulator.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from imds_simulator.namespace.entry import Failure
from imds_simulator.namespace.outside import refused_namespace
from support import simulator_process
from support.other_user import USER
from support.simulator.at_imds_address import ANSWER_PER_LINE, CLIENT, NEEDS_NAMESPACES, next_answer

AT_IMDS_ADDRESS = pytest.param(("exec", "--quiet", "--imds-address"), marks=NEEDS_NAMESPACES, id="own-network")
IN_THIS_NETWORK = pytest.param(("exec", "--quiet"), id="network-kept")
JOINED = pytest.param(("join", "--vm", "vm1"), marks=NEEDS_NAMESPACES, id="join")
# delays the forwarded SIGINT so long that it is never sent
NO_SECOND_INTERRUPT = (
    "-c",
    "import sys; from imds_simulator.cli import running; running._SECOND_INTERRUPT = 3600\n"
    "from imds_simulator.__main__ import main; sys.exit(main())",
)
# a simulator on a system such as macOS
LIMITED = """
import resource, sys
def refuse(*_arguments):
    raise ValueError("current limit exceeds maximum limit")
resource.setrlimit = refuse
from imds_simulator.__main__ import main
sys.exit(main())
"""
COUNT_INTERRUPTS = """
import os, signal, sys, time
counted = []
signal.signal(signal.SIGINT, lambda *_: counted.append(os.write(1, b"!\\n")))
print("up", os.getpid(), sep="\\n", flush=True)
end = time.monotonic() + 60
while len(counted) < int(sys.argv[1]) and time.monotonic() < end:
    time.sleep(0.02)
time.sleep(0.3)
sys.exit(len(counted))
"""


def execute(*arguments, **variables):
    return simulator_process.run("exec", *arguments, env={**simulator_process.environment(), **variables})


def test_command_has_the_addresses_and_not_the_options_of_its_simulator(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"SCENARIO": "live-migration", "CLOCK": "manual", "LISTEN": "127.0.0.1:0", "CONTROL": "127.0.0.1:0"}
    variables = {f"IMDS_SIMULATOR_{name}": value for name, value in options.items()}
    done = execute("--", sys.executable, "-c", CLIENT, **variables)
    assert done.returncode == 0 and "control http://" in done.stderr, done.stderr
    found = json.loads(done.stdout)
    assert found["variables"] == [f"IMDS_SIMULATOR_{name}" for name in ("CONTROL", "ENDPOINT", "ENDPOINTS")]
    assert (found["vm"], found["control"]) == ("vm1", True)
    assert list(found["endpoints"].items()) == [("vm1", "vm1"), ("vm2", "vm2")]


@pytest.mark.parametrize("verb", [IN_THIS_NETWORK, AT_IMDS_ADDRESS, JOINED])
@pytest.mark.parametrize(
    "command, code, problem",
    [
        (["sh", "-c", "exit 7"], 7, ""),
        (["sh", "-c", "kill -9 $$"], 137, ""),
        (["no-such-program"], 127, "imds_simulator: cannot run no-such-program: No such file or directory\n"),
        (["/etc/passwd"], 126, "imds_simulator: cannot run /etc/passwd: Permission denied\n"),
    ],
    ids=["failed", "killed", "missing", "not-executable"],
)
def test_exit_code_of_a_command_is_that_of_a_shell(verb, command, code, problem, sim):
    environment = {**simulator_process.environment(), "IMDS_SIMULATOR_CONTROL": sim.control}
    done = simulator_process.run(*verb, "--", *command, env=environment)
    assert (done.returncode, done.stderr) == (code, problem)


def test_exec_raises_the_limit_of_open_files_for_many_vms():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    done = simulator_process.run(
        *("exec", "--quiet", "--vms", "100", "--", "true"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard)),
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_exec_runs_where_the_limit_of_open_files_cannot_be_raised():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    done = simulator_process.spawn(
        *("exec", "--quiet", "--", "sh", "-c", "ulimit -Sn"),
        program=["-c", LIMITED],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard)),
    )
    assert done.communicate(timeout=60) == ("256\n", "")


def start(*words, **options):
    """Start ``exec`` in a process group of its own and wait until its command has printed ``up``."""
    process = simulator_process.spawn(*words, stderr=subprocess.DEVNULL, start_new_session=True, **options)
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize("verb", [IN_THIS_NETWORK, AT_IMDS_ADDRESS])
@pytest.mark.parametrize("how, name", [(signal.SIGTERM, "TERM"), (signal.SIGHUP, "HUP")])
def test_exec_forwards_signals(how, name, verb):
    process = start(*verb, "--", "sh", "-c", f"trap 'exit 5' {name}; echo up; while :; do sleep 0.05; done")
    process.send_signal(how)
    assert process.wait(60) == 5
    process.stdout.close()


@pytest.mark.parametrize(
    "program, group, count",
    [(NO_SECOND_INTERRUPT, True, 1), (simulator_process.MODULE, True, 2), (simulator_process.MODULE, False, 1)],
)
def test_exec_forwards_sigint_after_a_second_only(program, group, count):
    process = start("exec", "--", sys.executable, "-c", COUNT_INTERRUPTS, str(count), program=program)
    command = int(process.stdout.readline())
    began = time.monotonic()
    if group:
        # two signals that arrive before the command runs again would count as one
        os.kill(command, signal.SIGINT)
        assert process.stdout.readline() == "!\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(90) == count
    assert program is NO_SECOND_INTERRUPT or time.monotonic() - began >= 1
    process.stdout.close()


# -- --imds-address


@NEEDS_NAMESPACES
def test_command_reaches_the_chosen_vm_at_the_true_address_and_the_others_as_outside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--imds-address", "--scenario", "live-migration", "--imds-vm", "vm2")
    done = execute(*options, "--", sys.executable, "-c", CLIENT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["endpoint"], found["vm"]) == ("http://169.254.169.254", "vm2")
    assert found["endpoints"] == {"vm1": "vm1", "vm2": "vm2"}
    assert (found["control"], found["user"], found["networks"]) == (True, os.getuid(), ["lo"])
    assert "169.254.169.254" in found["address"]


@NEEDS_NAMESPACES
def test_a_user_needs_no_rights_and_keeps_the_own_id_and_files(as_user):
    python, folder = as_user.pop("python"), as_user["cwd"]
    command = [python, "-m", "imds_simulator", "exec", "--imds-address", "--quiet"]

    def call(*words):
        return subprocess.run([*command, *words], **as_user, capture_output=True, text=True, timeout=300, check=False)

    done = call("--", python, "-c", CLIENT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["vm"], found["user"], found["control"]) == ("vm1", USER, True)
    assert (folder / "made").stat().st_uid == USER
    assert call("--", "unshare", "--map-root-user", "id", "-u").stdout == "0\n"
    # a simulator inside the namespace has a namespace of its own
    inner = [python, "-m", "imds_simulator", "exec", "--imds-address", "--quiet", "--vms", "inner"]
    assert json.loads(call("--", *inner, "--", python, "-c", CLIENT).stdout)["vm"] == "inner"


@NEEDS_NAMESPACES
def test_closed_pipe_ends_a_program_at_the_address():
    ignored = execute("--quiet", "--imds-address", "--", "grep", "SigIgn", "/proc/self/status").stdout.split()[1]
    assert int(ignored, 16) & (1 << (signal.SIGPIPE - 1)) == 0


@NEEDS_NAMESPACES
def test_a_refused_connection_is_refused_inside_and_accepted_again(call):
    with simulator_process.reserved_port() as port:
        control, client = f"127.0.0.1:{port}", [sys.executable, "-c", ANSWER_PER_LINE]
        process = start("exec", "--imds-address", "--control", control, "--", *client, stdin=subprocess.PIPE)
        found = [next_answer(process)]
        for words in (["inject", "refuse"], ["clear"]) * 2:
            assert call("fault", *words, "--control", control).code == 0
            found.append(next_answer(process))
        process.communicate(timeout=60)
    assert found == ["vm1", "ConnectionRefusedError", "vm1", "ConnectionRefusedError", "vm1"]


@NEEDS_NAMESPACES
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to forbid namespaces inside a namespace")
@pytest.mark.parametrize("verb", [["exec", "--imds-address", "--quiet"], ["join", "--vm", "vm1"]], ids=["exec", "join"])
def test_a_refused_namespace_is_explained(verb, sim):
    words = [sys.executable, "-m", "imds_simulator", *verb, "--", "true"]
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh", *words],
        env={**simulator_process.environment(), "IMDS_SIMULATOR_CONTROL": sim.control},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "/proc/sys/user/max_user_namespaces is 0" in done.stderr
    assert "IMDS_SIMULATOR_ENDPOINT" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_settings_that_forbid_a_namespace_are_named():
    settings = {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}
    failure = Failure("map-user", 1, "Operation not permitted")
    assert "apparmor_restrict_unprivileged_userns is 1" in str(refused_namespace(failure, settings.get))
    assert "seccomp" in str(refused_namespace(failure, {}.get))
