# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""``exec``: the environment, the exit codes and the signals of a command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from imds_simulator.__main__ import main
from support import simulator_process

AS_MODULE = ("-m", "imds_simulator")
# delays the forwarded SIGINT so long that it is never sent
NO_SECOND_INTERRUPT = (
    "-c",
    "import sys; from imds_simulator.cli import exec_command; exec_command._SECOND_INTERRUPT = 3600\n"
    "from imds_simulator.__main__ import main; sys.exit(main())",
)
CHILD = """
import json, os, sys, urllib.request
endpoints = json.loads(os.environ["IMDS_SIMULATOR_ENDPOINTS"])
assert list(endpoints) == ["vm1", "vm2"] and endpoints["vm1"] == os.environ["IMDS_SIMULATOR_ENDPOINT"]
url = endpoints["vm2"] + "/metadata/scheduledevents?api-version=2020-07-01"
request = urllib.request.Request(url, headers={"Metadata": "true"})
print(json.load(urllib.request.urlopen(request))["DocumentIncarnation"])
print(json.load(urllib.request.urlopen(os.environ["IMDS_SIMULATOR_CONTROL"] + "/health"))["ok"])
sys.exit(int(sys.argv[1]))
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
    command = [sys.executable, *AS_MODULE, "exec", *arguments]
    environment = {**simulator_process.environment(), **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)


@pytest.mark.parametrize("code", [0, 7])
def test_exec_returns_the_exit_code_of_the_command(code):
    done = execute(
        "--scenario", "live-migration", "--clock", "manual", "--", sys.executable, "-c", CHILD, str(code)
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, "1\nTrue\n")
    assert "control http://" in done.stderr


def test_exec_of_a_signalled_command_has_the_exit_code_of_a_shell():
    done = execute("--quiet", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137 and done.stderr == ""


@pytest.mark.parametrize(
    "command, code, text",
    [("/nonexistent/command", 127, "No such file or directory"), ("/etc/passwd", 126, "Permission denied")],
)
def test_exec_of_a_missing_command_has_the_exit_code_of_a_shell(command, code, text, capsys):
    assert main(["exec", "--quiet", "--", command]) == code
    assert capsys.readouterr().err == f"imds_simulator: cannot run {command}: {text}\n"


def test_exec_runs_inside_exec_because_ports_are_free_by_default():
    inner = [sys.executable, *AS_MODULE, "exec", "--quiet", "--", "sh", "-c", "echo $IMDS_SIMULATOR_CONTROL"]
    done = execute("--quiet", "--", "sh", "-c", 'echo $IMDS_SIMULATOR_CONTROL; "$@"', "sh", *inner)
    assert (done.returncode, done.stderr) == (0, "")
    outer_control, inner_control = done.stdout.split()
    assert outer_control != inner_control


def test_a_command_does_not_get_the_options_of_its_simulator():
    options = {"LISTEN": "127.0.0.1:0", "CONTROL": "127.0.0.1:0", "SPEED": "60", "QUIET": "1"}
    variables = {f"IMDS_SIMULATOR_{name}": value for name, value in options.items()}
    script = 'env | grep -o "^IMDS_SIMULATOR_[A-Z_]*" | sort'
    done = execute("--", "sh", "-ec", script, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [f"IMDS_SIMULATOR_{name}" for name in ("CONTROL", "ENDPOINT", "ENDPOINTS")]


def start_exec(*command, simulator=AS_MODULE):
    """Start ``exec`` in a process group of its own and wait until its command runs."""
    process = subprocess.Popen(
        [sys.executable, *simulator, "exec", "--", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env=simulator_process.environment(),
    )
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize("how, name", [(signal.SIGTERM, "TERM"), (signal.SIGHUP, "HUP")])
def test_exec_forwards_signals(how, name):
    process = start_exec("sh", "-c", f"trap 'exit 5' {name}; echo up; while :; do sleep 0.05; done")
    process.send_signal(how)
    assert process.wait(60) == 5
    process.stdout.close()


@pytest.mark.parametrize(
    "simulator, group, count", [(NO_SECOND_INTERRUPT, True, 1), (AS_MODULE, True, 2), (AS_MODULE, False, 1)]
)
def test_exec_forwards_sigint_after_a_second_only(simulator, group, count):
    process = start_exec(sys.executable, "-c", COUNT_INTERRUPTS, str(count), simulator=simulator)
    command = int(process.stdout.readline())
    began = time.monotonic()
    if group:
        # two signals that arrive before the command runs again would count as one
        os.kill(command, signal.SIGINT)
        assert process.stdout.readline() == "!\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(90) == count
    assert simulator is NO_SECOND_INTERRUPT or time.monotonic() - began >= 1
    process.stdout.close()
