# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""A simulator in the foreground: its output, its clock, its end."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import socket
import time

import pytest

from imds_simulator.scenario.groups import Address
from imds_simulator.server.listeners import CannotListen, bind, bind_advice
from support import simulator_process
from support.simulator.raw_http import connect, request_bytes, send_request, send_requests
from support.wait import wait_until

# seconds: ten times the usual time, for a busy machine, and much less than the minutes without the tested effect
STOP_LIMIT = 10
# a simulator that receives the signal of its first argument while it starts
SIGNALLED = """
import os, sys
from imds_simulator.__main__ import main
from imds_simulator.cli import serve_command
start, number = serve_command.run_simulator, int(sys.argv.pop(1))
def run_simulator(*arguments):
    os.kill(os.getpid(), number)
    return start(*arguments)
serve_command.run_simulator = run_simulator
sys.exit(main())
"""


def free(*arguments):
    """Return the arguments, and a free port for each address that they do not name."""
    return [*(f"{each}=127.0.0.1:0" for each in ("--listen", "--control") if each not in arguments), *arguments]


@contextlib.contextmanager
def served(*arguments, **options):
    """Start a simulator, with further options of Popen; it must end without a message."""
    with simulator_process.spawn(*free(*arguments), **options) as process:
        try:
            yield process
            process.terminate()
            assert (process.wait(60), process.stderr.read()) == (0, "")
        finally:
            process.kill()


def wait_for_line(simulator, what):
    wait_until(lambda: simulator.get("/log?what=" + what)["lines"], f"a line {what}")


@pytest.mark.parametrize(
    "vms, names, groups",
    [
        ("", ["vm1"], {"default": {"kind": "standalone", "vms": 1}}),
        ("1", ["vm1"], {"default": {"kind": "standalone", "vms": 1}}),
        ("3", ["vm1", "vm2", "vm3"], {"default": {"kind": "availability_set", "vms": 3}}),
        ("web_0,web_10", ["web_0", "web_10"], {"web": {"kind": "scale_set", "vms": 2}}),
        ("web_0", ["web_0"], {"web": {"kind": "scale_set", "vms": 1}}),
        ("web_0,db_1", ["web_0", "db_1"], {"default": {"kind": "availability_set", "vms": 2}}),
        ("web_0,web_x", ["web_0", "web_x"], {"default": {"kind": "availability_set", "vms": 2}}),
        ("_0,_1", ["_0", "_1"], {"default": {"kind": "availability_set", "vms": 2}}),
    ],
)
def test_vms_without_a_scenario_are_one_group(start_process, vms, names, groups):
    sim = start_process(args=["--vms", vms] if vms else [])
    assert (list(sim.endpoints), sim.get("/state")["groups"]) == (names, groups)
    sim.post("/events", {"type": "Freeze", "resources": names})
    for endpoint in sim.endpoints.values():
        assert send_request(endpoint).json["Events"][0]["Resources"] == names


def test_serve_prints_addresses_before_log_lines(start_process):
    event = {"type": "Freeze", "resources": ["solo"], "at": 0}
    sim = start_process({"groups": {"web": {"vms": ["solo"]}}, "events": [event]}, args=["--clock", "manual"])
    assert sim.output[:2] == [f"listening {sim.endpoints['solo']} for solo\n", f"control {sim.control}\n"]
    assert sim.get("/log?what=scheduled")["lines"]


def test_serve_with_unread_or_closed_stdout_does_not_block():
    with served("--knob", "rate_limit=off") as process:
        endpoint = process.stdout.readline().split()[1]
        # each has a line
        for count in (1500, 20):
            answers = send_requests(endpoint, count, method="POST", headers={}, body=b"{}")
            assert [each.status for each in answers] == [400] * count
            process.stdout.close()


def test_serve_without_stdout_answers():
    with simulator_process.reserved_port() as port:
        address = f"127.0.0.1:{port}"

        def answers():
            with contextlib.suppress(ConnectionRefusedError):
                return send_request(f"http://{address}").status == 200

        with served("--listen", address, preexec_fn=lambda: os.close(1)):
            wait_until(answers)


def test_nohup_ignores_sighup():
    with served(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        endpoint = process.stdout.readline().split()[1]
        process.send_signal(signal.SIGHUP)
        assert send_request(endpoint).status == 200 and process.poll() is None


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_the_simulator_despite_hanging_requests(start_process, how):
    sim = start_process(args=["--knob", "enable_delay=2h"])
    waiting = [connect(sim.endpoints["vm1"]) for _each in range(3)]
    for connection in waiting:
        connection.sendall(request_bytes())
    wait_for_line(sim, "enabled")
    began = time.monotonic()
    assert sim.stop(how) == 0
    assert time.monotonic() - began < STOP_LIMIT
    for connection in waiting:
        connection.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_while_the_simulator_starts_ends_it_in_order(tmp_path, how):
    report = tmp_path / "run.html"
    with simulator_process.spawn(how.value, *free("--report", report), program=["-c", SIGNALLED]) as process:
        output, messages = process.communicate(timeout=60)
    assert (process.returncode, messages) == (0, f"report {report}\n")
    assert "control http://" in output and report.exists()


@pytest.mark.parametrize("option", ["--listen", "--control"])
def test_address_in_use_is_one_line_and_exit_2(option, call):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = call(*free(option, f"127.0.0.1:{port}"))
    (problem,) = done.err.splitlines()
    assert done.code == 2
    assert problem.startswith(f"imds_simulator: cannot listen on 127.0.0.1:{port}: Address already in use; find ")
    assert f"ss -ltnp 'sport = :{port}'" in problem


def test_address_that_cannot_be_used_comes_with_advice(call):
    done = call(*free("--listen", "169.254.169.254:8169"))
    assert done.code == 2 and "ip address add 169.254.169.254/32 dev lo" in done.err
    assert "ip address add fd00::1/128 dev lo" in bind_advice(Address("fd00::1", 80), errno.EADDRNOTAVAIL)
    assert "ip_unprivileged_port_start=80" in bind_advice(Address("127.0.0.1", 80), errno.EACCES)


def test_address_without_a_free_descriptor_is_named():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    # poll(2) of a thread of another test accepts no more descriptors than the limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(
            CannotListen, match="cannot listen on 127.0.0.1:0: Too many open files; each VM needs .* raise the hard"
        ):
            bind(Address("127.0.0.1", 0))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_real_clock_passes_and_speed_divides(start_process):
    sim = start_process("live-migration", args=["--speed", "600", "--knob", "rate_limit=off"])
    wait_for_line(sim, "finished")
    lives = ("scheduled", "started", "finished")
    assert [line["what"] for line in sim.get("/log")["lines"] if line["what"] in lives] == list(lives)
    assert send_request(sim.endpoints["vm1"]).json["Events"] == []
    (event,) = sim.get("/events")["events"]
    assert event["not_before"].endswith(".000Z") and event["started_at"] == event["not_before"]


def test_advance_with_real_clock_moves_dates(start_simulator):
    sim = start_simulator("predicted-failure", clock="real")
    sim.advance(5 * 86400 + 11)
    assert send_request(sim.endpoints["vm1"]).json["Events"][0]["EventStatus"] == "Started"
    assert sim.get("/state")["unix"] - time.time() > 5 * 86400
