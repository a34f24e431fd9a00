# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""``join``: further commands at 169.254.169.254 of a running simulator, their ends, and that of the simulator."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from imds_simulator.__main__ import main
from support import simulator_process
from support.other_user import USER
from support.simulator.at_imds_address import CLIENT, NEEDS_NAMESPACES
from support.simulator.raw_http import send_request

TOKEN = "a-token-of-tests"
TRIO = {"groups": {"web": {"kind": "scale_set", "vms": {f"web_{number}": {} for number in range(3)}}}}
AS_MODULE = ("-m", "imds_simulator")
# asks every twentieth of a second whether the VM and the simulator exist
QUICK = (
    "-c",
    "import sys; from imds_simulator.cli import join_command; join_command._INTERVAL = 0.05\n"
    "from imds_simulator.__main__ import main; sys.exit(main())",
)
# waits for a line, and prints the name of its VM
NAME_AFTER_A_LINE = """
import sys, urllib.request
print("up", flush=True)
sys.stdin.readline()
url = "http://169.254.169.254/metadata/instance/compute/name?api-version=2021-02-01&format=text"
request = urllib.request.Request(url, headers={"Metadata": "true"})
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60).read().decode())
"""
# ends when the address refuses connections
UNTIL_REFUSED = """
import socket, sys, time
print("up", flush=True)
while True:
    try:
        socket.create_connection(("169.254.169.254", 80), 60).close()
    except ConnectionRefusedError:
        sys.exit(3)
    except ConnectionResetError:
        pass
    time.sleep(0.02)
"""


def start(*words, simulator=AS_MODULE):
    """Start a verb in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, *simulator, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=simulator_process.environment(),
    )


def delete_vm(sim, kind="Terminate"):
    """Let an event of a manual clock delete web_1."""
    sim.post("/events", {"type": kind, "resources": ["web_1"], "name": "end", "started_for": 5})
    sim.post("/events/end/approve")
    sim.advance(60)


def start_join(sim, *command, vm="web_1", **more):
    """Start ``join`` and wait until its command has printed ``up``."""
    process = start("join", "--vm", vm, "--control", sim.control, "--", *command, **more)
    assert process.stdout.readline() == "up\n", process.stderr.read()
    return process


@NEEDS_NAMESPACES
def test_a_user_without_rights_runs_a_command_at_the_address_of_its_vm(start_process, as_user):
    sim, python = start_process(TRIO, token=TOKEN), as_user.pop("python")
    as_user["env"]["IMDS_SIMULATOR_CONTROL_TOKEN"] = TOKEN
    join = [python, "-m", "imds_simulator", "join", "--vm", "web_2", "--control", sim.control]

    def call(*words):
        return subprocess.run([*join, *words], **as_user, capture_output=True, text=True, timeout=300, check=False)

    done = call("--", python, "-c", CLIENT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["vm"], found["endpoints"], found["control"]) == ("web_2", {"web_2": "web_2"}, True)
    assert (found["user"], found["networks"]) == (USER, ["lo"])
    note = call("--", python, "-m", "imds_simulator", "note", "web_2", "prepared")
    assert json.loads(note.stdout)["what"] == "prepared", note.stderr


@NEEDS_NAMESPACES
def test_two_joins_and_two_execs_run_at_once(start_process):
    sim = start_process(TRIO)
    client = [sys.executable, "-c", NAME_AFTER_A_LINE]
    joins = [start("join", "--vm", vm, "--control", sim.control, "--", *client) for vm in ("web_0", "web_1")]
    execs = [start("exec", "--imds-address", "--quiet", "--", *client) for _each in range(2)]
    assert [process.stdout.readline() for process in (*joins, *execs)] == ["up\n"] * 4
    found = [process.communicate("\n", timeout=60)[0] for process in (*joins, *execs)]
    assert found == ["web_0\n", "web_1\n", "vm1\n", "vm1\n"]


@NEEDS_NAMESPACES
def test_a_vm_is_identified_by_the_source_address_of_the_scenario(start_process, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    vms = {f"vm{number}": {"source": f"127.0.1.{number}"} for number in (1, 2)}
    sim = start_process({"groups": {"web": {"vms": {**vms, "far": {"source": "203.0.113.9"}}}}})
    process = start("join", "--vm", "vm2", "--control", sim.control, "--", sys.executable, "-c", CLIENT)
    out, err = process.communicate(timeout=60)
    assert json.loads(out)["vm"] == "vm2", err
    with pytest.raises(SystemExit, match="2"):
        main(["join", "--vm", "far", "--control", sim.control, "--", "true"])
    assert "--vm: cannot connect to far from its source address 203.0.113.9" in capfd.readouterr().err


@NEEDS_NAMESPACES
@pytest.mark.parametrize("how, name", [(signal.SIGTERM, "TERM"), (signal.SIGHUP, "HUP"), (signal.SIGINT, "INT")])
def test_signals_reach_the_command_and_the_processes_that_it_waits_for(start_process, how, name):
    script = f"trap 'exit 5' {name}; sh -c 'echo up; exec sleep 1000'; exit 6"
    process = start_join(start_process(TRIO), "sh", "-c", script)
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode == 5


@NEEDS_NAMESPACES
@pytest.mark.parametrize(
    "command, code", [(["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137), (["/nonexistent"], 127)]
)
def test_exit_codes_are_those_of_a_shell(start_process, command, code):
    process = start("join", "--vm", "web_1", "--control", start_process(TRIO).control, "--", *command)
    process.communicate(timeout=60)
    assert process.returncode == code


@NEEDS_NAMESPACES
def test_a_refused_connection_of_the_vm_is_reset_until_it_accepts_again(start_process):
    sim = start_process(TRIO)
    sim.post("/faults", {"kind": "refuse", "vm": "web_1"})
    script = """
import http.client
def get():
    connection = http.client.HTTPConnection("169.254.169.254", timeout=60)
    try:
        connection.request("GET", "/metadata/versions", headers={"Metadata": "true"})
        return connection.getresponse().status
    except ConnectionResetError:
        return "reset"
print("up", flush=True)
input()
print(get(), flush=True)
input()
print(get(), flush=True)
"""
    process = start_join(sim, sys.executable, "-c", script)
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "reset\n"
    sim.delete("/faults")
    assert process.communicate("\n", timeout=60)[0] == "200\n"


@NEEDS_NAMESPACES
def test_a_command_outlives_its_simulator_at_an_address_that_refuses(start_process):
    sim = start_process(TRIO)
    process = start_join(sim, sys.executable, "-c", UNTIL_REFUSED, simulator=QUICK)
    sim.stop()
    _out, err = process.communicate(timeout=60)
    assert (process.returncode, err.count("\n")) == (3, 1)
    assert f"{sim.control}: the simulator has ended" in err and err.endswith("; when it runs again, start join again\n")


@NEEDS_NAMESPACES
@pytest.mark.parametrize("killed", [False, True])
def test_processes_that_outlive_join_find_an_address_that_refuses(start_process, killed):
    script = '("$@"; echo "ended $?") & ' + ("wait" if killed else "read line")
    process = start_join(start_process(TRIO), "sh", "-c", script, "sh", sys.executable, "-c", UNTIL_REFUSED)
    if killed:
        process.kill()
    # the pipe is closed when all processes have ended
    assert process.communicate("\n", timeout=60)[0] == "ended 3\n"


@NEEDS_NAMESPACES
def test_a_join_inside_another_one_does_not_reach_its_vm(start_process):
    sim = start_process(TRIO)
    inner = [sys.executable, *AS_MODULE, "join", "--vm", "web_2", "--", sys.executable, "-c", NAME_AFTER_A_LINE]
    _out, err = start_join(sim, *inner).communicate("\n", timeout=60)
    assert "ConnectionResetError" in err and "asyncio" not in err


@NEEDS_NAMESPACES
@pytest.mark.parametrize("kind", ["Preempt", "Terminate"])
def test_the_processes_of_a_deleted_vm_are_killed(start_process, kind, capsys):
    sim = start_process(TRIO, args=["--clock", "manual"])
    script = "trap '' TERM INT HUP; sleep 1000 & echo up; wait"
    process = start_join(sim, "sh", "-c", script, simulator=QUICK)
    delete_vm(sim, kind)
    # the other ends of the pipes are closed when all processes have ended
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("\n")) == (137, "", 1)
    assert "web_1: the VM was deleted; its command is killed" in err
    with pytest.raises(SystemExit, match="2"):
        main(["join", "--vm", "web_1", "--control", sim.control, "--", "true"])
    assert "--vm: web_1 was deleted; choose another VM" in capsys.readouterr().err


@NEEDS_NAMESPACES
@pytest.mark.parametrize("rights", [True, False])
def test_the_processes_of_a_deleted_vm_are_killed_in_every_session(start_process, as_user, rights):
    sim, python = start_process(TRIO, args=["--clock", "manual"]), as_user.pop("python")
    if rights:
        python, as_user = sys.executable, {"env": simulator_process.environment()}
    script = "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000; :' & echo up; exec sleep 1000"
    words = [python, *QUICK, "join", "--vm", "web_1", "--control", sim.control, "--", "sh", "-c", script]
    process = subprocess.Popen(words, **as_user, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n", process.stderr.read()
    delete_vm(sim)
    # the other ends of the pipes are closed when all processes have ended
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("\n")) == (137, "", 1)


# -- what cannot be joined


def test_the_message_about_a_vm_names_the_simulator_that_was_asked(start_process, capsys):
    sim = start_process(TRIO)
    with pytest.raises(SystemExit, match="2"):
        main(["join", "--vm", "vm9", "--control", sim.control, "--", "true"])
    assert f"--vm: the simulator at {sim.control} has no VM vm9; it has web_0, web_1, web_2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, problem",
    [
        (["--vm", "web1", "--", "true"], " has no VM web1 (did you mean web_1?); it has web_0, web_1, web_2"),
        (["--vm", "web_1"], "join: there is no command after --; write: join [OPTIONS] -- COMMAND ARGUMENTS..."),
        (["--vm", "web_1", "--"], "join: there is no command after --"),
        (["--", "true"], "--vm: a value is missing"),
        (["--vm", "web_1", "--control-token", "another-token", "--", "true"], "the token is missing or wrong"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(start_process, words, problem, monkeypatch, capsys):
    monkeypatch.setenv("IMDS_SIMULATOR_CONTROL", start_process(TRIO, token=TOKEN).control)
    monkeypatch.setenv("IMDS_SIMULATOR_CONTROL_TOKEN", TOKEN)
    with pytest.raises(SystemExit, match="2"):
        main(["join", *words])
    err = capsys.readouterr().err
    assert problem in err and err.count("\n") == 1


def test_without_a_simulator_the_exit_code_is_2(start_process, capsys):
    sim = start_process(TRIO)
    with simulator_process.reserved_port() as port:
        # an address without a server, and one with another server than a control API
        for control in (f"127.0.0.1:{port}", sim.endpoints["web_0"]):
            with pytest.raises(SystemExit, match="2"):
                main(["join", "--vm", "web_1", "--control", control, "--", "true"])
            err = capsys.readouterr().err
            assert err.startswith("imds_simulator: ") and err.count("\n") == 1
    assert send_request(sim.endpoints["web_0"]).status == 200
