# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""``join``: further commands at 169.254.169.254 of a running simulator, their ends, and that of the simulator."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from support import simulator_process
from support.other_user import USER
from support.simulator.at_imds_address import ANSWER_PER_LINE, CLIENT, NEEDS_NAMESPACES, next_answer

pytestmark = NEEDS_NAMESPACES

TOKEN = "a-token-of-tests"
TRIO = {"groups": {"web": {"kind": "scale_set", "vms": {f"web_{number}": {} for number in range(3)}}}}
# asks every twentieth of a second whether the VM and the simulator exist
QUICK = (
    "-c",
    "import sys; from imds_simulator.cli import join_command; join_command._INTERVAL = 0.05\n"
    "from imds_simulator.__main__ import main; sys.exit(main())",
)
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


def start(*words, **more):
    """Start a verb in a process group of its own."""
    return simulator_process.spawn(*words, stdin=subprocess.PIPE, start_new_session=True, **more)


def start_join(sim, *command, vm="web_1", **more):
    """Start ``join`` and wait until its command has printed ``up``."""
    process = start("join", "--vm", vm, "--control", sim.control, "--", *command, **more)
    assert process.stdout.readline() == "up\n", process.stderr.read()
    return process


def test_a_user_without_rights_runs_a_command_at_the_address_of_its_vm(start_process, as_user):
    sim, python = start_process(TRIO, token=TOKEN), as_user.pop("python")
    as_user["env"]["IMDS_SIMULATOR_CONTROL_TOKEN"] = TOKEN
    join = [python, "-m", "imds_simulator", "join", "--vm", "web_2", "--control", sim.control]

    def call(*words):
        return subprocess.run([*join, *words], **as_user, capture_output=True, text=True, timeout=300, check=False)

    done = call("--", python, "-c", CLIENT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["endpoint"], found["control"]) == ("http://169.254.169.254", True)
    assert (found["vm"], found["endpoints"]) == ("web_2", {"web_2": "web_2"})
    assert (found["user"], found["networks"]) == (USER, ["lo"])
    note = call("--", python, "-m", "imds_simulator", "note", "web_2", "prepared")
    assert json.loads(note.stdout)["what"] == "prepared", note.stderr


def test_two_joins_and_two_execs_run_at_once(start_process):
    sim = start_process(TRIO)
    client = [sys.executable, "-c", ANSWER_PER_LINE]
    joins = [start("join", "--vm", vm, "--control", sim.control, "--", *client) for vm in ("web_0", "web_1")]
    execs = [start("exec", "--imds-address", "--quiet", "--", *client) for _each in range(2)]
    assert [process.stdout.readline() for process in (*joins, *execs)] == ["up\n"] * 4
    found = [process.communicate("\n", timeout=60)[0] for process in (*joins, *execs)]
    assert found == ["web_0\n", "web_1\n", "vm1\n", "vm1\n"]


def test_a_command_joins_the_simulator_of_a_test(start_simulator):
    process = start_join(start_simulator(), sys.executable, "-c", ANSWER_PER_LINE, vm="vm1")
    assert next_answer(process) == "vm1"
    assert process.communicate(timeout=60) == ("", "") and process.returncode == 0


def test_a_vm_is_identified_by_the_source_address_of_the_scenario(start_process, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vms = {f"vm{number}": {"source": f"127.0.1.{number}"} for number in (1, 2)}
    sim = start_process({"groups": {"web": {"vms": {**vms, "far": {"source": "203.0.113.9"}}}}})
    done = simulator_process.run("join", "--vm", "vm2", "--control", sim.control, "--", sys.executable, "-c", CLIENT)
    assert json.loads(done.stdout)["vm"] == "vm2", done.stderr
    refused = call("join", "--vm", "far", "--control", sim.control, "--", "true")
    assert refused.code == 2 and "--vm: cannot connect to far from its source address 203.0.113.9" in refused.err


@pytest.mark.parametrize("how, name", [(signal.SIGTERM, "TERM"), (signal.SIGHUP, "HUP"), (signal.SIGINT, "INT")])
def test_signals_reach_the_command_and_the_processes_that_it_waits_for(start_process, how, name):
    script = f"trap 'exit 5' {name}; sh -c 'echo up; exec sleep 1000'; exit 6"
    process = start_join(start_process(TRIO), "sh", "-c", script)
    process.send_signal(how)
    process.communicate(timeout=60)
    assert process.returncode == 5


def test_a_refused_connection_of_the_vm_is_reset_until_it_accepts_again(start_process):
    sim = start_process(TRIO)
    sim.post("/faults", {"kind": "refuse", "vm": "web_1"})
    process = start_join(sim, sys.executable, "-c", ANSWER_PER_LINE)
    assert next_answer(process) == "ConnectionResetError"
    sim.delete("/faults")
    assert next_answer(process) == "web_1"
    process.communicate(timeout=60)


def test_a_command_outlives_its_simulator_at_an_address_that_refuses(start_process):
    sim = start_process(TRIO)
    process = start_join(sim, sys.executable, "-c", UNTIL_REFUSED, program=QUICK)
    sim.stop()
    _out, err = process.communicate(timeout=60)
    assert (process.returncode, err.count("\n")) == (3, 1)
    assert f"{sim.control}: the simulator has ended" in err and err.endswith("; when it runs again, start join again\n")


@pytest.mark.parametrize("killed", [False, True])
def test_processes_that_outlive_join_find_an_address_that_refuses(start_process, killed):
    script = '("$@"; echo "ended $?") & ' + ("wait" if killed else "read line")
    process = start_join(start_process(TRIO), "sh", "-c", script, "sh", sys.executable, "-c", UNTIL_REFUSED)
    if killed:
        process.kill()
    # the pipe is closed when all processes have ended
    assert process.communicate("\n", timeout=60)[0] == "ended 3\n"


def test_a_join_inside_another_one_does_not_reach_its_vm(start_process):
    sim = start_process(TRIO)
    client = [sys.executable, "-c", ANSWER_PER_LINE]
    inner = [sys.executable, "-m", "imds_simulator", "join", "--vm", "web_2", "--", *client]
    out, err = start_join(sim, *inner).communicate("\n", timeout=60)
    assert out == "ConnectionResetError\n" and "asyncio" not in err


@pytest.mark.parametrize("rights", [True, False])
def test_the_processes_of_a_deleted_vm_are_killed_in_every_session(start_process, call, rights, request):
    sim = start_process(TRIO, args=["--clock", "manual"])
    options = {"env": simulator_process.environment()} if rights else request.getfixturevalue("as_user")
    python = options.pop("python", sys.executable)
    script = "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000; :' & echo up; exec sleep 1000"
    command = ["--", "sh", "-c", f"trap '' TERM INT HUP; {script}"]
    words = [python, *QUICK, "join", "--vm", "web_1", "--control", sim.control, *command]
    process = subprocess.Popen(words, **options, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n", process.stderr.read()
    sim.post("/events", {"type": "Terminate", "resources": ["web_1"], "name": "end", "started_for": 5})
    sim.post("/events/end/approve")
    sim.advance(60)
    # the other ends of the pipes are closed when all processes have ended
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("\n")) == (137, "", 1)
    assert "web_1: the VM was deleted; its command is killed" in err
    refused = call("join", "--vm", "web_1", "--control", sim.control, "--", "true")
    assert refused.code == 2 and "--vm: web_1 was deleted; choose another VM" in refused.err
