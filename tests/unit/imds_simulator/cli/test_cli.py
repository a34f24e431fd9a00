# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The command line as real processes: serving, checking, verbs, exec, impact commands."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import pytest

from imds_simulator.__main__ import main
from support import simulator_process
from support.simulator.raw_http import EVENTS, ask, connected, request_bytes

# seconds: ten times what it takes, for a busy machine; what a test waits for otherwise takes a
# minute and more
AT_ONCE = 10


def run(*arguments, timeout=60, **env):
    return subprocess.run(
        [sys.executable, "-m", "imds_simulator", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**simulator_process.environment(), **env},
        stdin=subprocess.DEVNULL,
    )


def refused_here(capsys, *arguments):
    """What ``main`` says to arguments that it refuses, without a process for each of them."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    return code, capsys.readouterr().err


def verb(sim, *arguments, code=0):
    done = run(*arguments, IMDS_SIMULATOR_CONTROL=sim.control)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


def test_one_vm_without_any_configuration(start_simulator):
    sim = start_simulator(args=["--vm", "me"])
    assert list(sim.endpoints) == ["me"]
    assert ask(sim.endpoints["me"]).json == {"DocumentIncarnation": 1, "Events": []}
    assert sim.output[:2] == [f"listening {sim.endpoints['me']} for me\n", f"control {sim.control}\n"]


def test_the_addresses_come_before_whatever_happens_at_once(start_simulator):
    sim = start_simulator(
        {"groups": {"web": {"vms": {"vm1": {}}}}, "events": [{"type": "Freeze", "resources": ["vm1"], "at": 0}]},
        args=["--clock", "manual"],
    )
    assert [line.split()[0] for line in sim.output[:2]] == ["listening", "control"]
    assert sim.get("/log?what=scheduled")["lines"]


def refused_posts(endpoint, count):
    """How many of ``count`` POSTs without the header were answered with 400, on one connection."""
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=60)
    statuses = []
    for _each in range(count):
        connection.request("POST", EVENTS, body=b"{}")
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    return statuses.count(400)


def test_a_stdout_that_nobody_reads_or_that_is_closed_holds_nobody_up():
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "imds_simulator",
            "--listen",
            "127.0.0.1:0",
            "--control",
            "127.0.0.1:0",
            "--knob",
            "rate_limit=off",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=simulator_process.environment(),
    )
    try:
        endpoint = process.stdout.readline().split()[1]
        assert refused_posts(endpoint, 1500) == 1500
        process.stdout.close()
        assert refused_posts(endpoint, 20) == 20
        process.terminate()
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.stderr.close()


def test_it_serves_without_any_stdout():
    with simulator_process.reserved_port() as port:
        process = subprocess.Popen(
            [
                "sh",
                "-c",
                'exec "$@" >&-',
                "sh",
                sys.executable,
                "-m",
                "imds_simulator",
                "--listen",
                f"127.0.0.1:{port}",
                "--control",
                "127.0.0.1:0",
            ],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=simulator_process.environment(),
        )
        try:
            end = time.monotonic() + 60
            while time.monotonic() < end and process.poll() is None:
                with contextlib.suppress(ConnectionRefusedError):
                    assert refused_posts(f"http://127.0.0.1:{port}", 1) == 1
                    break
                time.sleep(0.02)
            process.terminate()
            assert (process.wait(60), process.stderr.read()) == (0, "")
        finally:
            process.kill()
            process.stderr.close()


def test_the_default_name_is_vm1(start_simulator):
    assert list(start_simulator().endpoints) == ["vm1"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_at_once_even_with_hanging_requests(start_simulator, how):
    sim = start_simulator(args=["--knob", "enable_delay=2h"])
    waiting = [connected(sim.endpoints["vm1"]) for _each in range(3)]
    for connection in waiting:
        connection.sendall(request_bytes())
    lines_when(sim, 1, what="enabled")
    began = time.monotonic()
    assert sim.stop(how) == 0
    assert time.monotonic() - began < AT_ONCE
    for connection in waiting:
        connection.close()


@pytest.mark.parametrize("option", ["--listen", "--control"])
def test_an_address_in_use_is_one_clear_line_and_exit_2(option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = {"--listen": "127.0.0.1:0", "--control": "127.0.0.1:0", option: address}
        done = run(*[part for pair in options.items() for part in pair])
    assert done.returncode == 2
    assert done.stderr == f"imds_simulator: cannot listen on {address}: Address already in use\n"


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--listen", "nonsense"], "'nonsense' is not HOST:PORT"),
        (["--speed", "0"], "'0' is not a number above 0"),
        (["--scenario", "nothing.yaml"], "no such file, and no shipped scenario of that name"),
        (["--scenario", "live-migratoin"], "did you mean live-migration?"),
        (["--knob", "etag"], "is not NAME=VALUE"),
        (["--knob", "etagg=1"], "there is no knob 'etagg'"),
        (["--control", "0.0.0.0:0"], "add --control-anywhere"),
        (["--scenario", "live-migration", "--vm", "x"], "--vm: not allowed with --scenario"),
        (["--scenario", "live-migration", "--source", "vm9=10.0.0.1"], "there is no VM vm9; there are vm1, vm2"),
        (["--source", "vm1=here"], "does not appear to be an IPv4 or IPv6 address"),
        (["--frobnicate"], "unrecognized arguments"),
        (["exec", "--scenario", "live-migration"], "exec needs a command"),
        (["exec", "--"], "exec: there is no command after --"),
        (["aprove", "e"], "there is no verb aprove (did you mean approve?)"),
        (["zzz"], "there is no verb zzz; --help lists them"),
        (["--knob", "nosuch=1"], "there is no knob 'nosuch'; --list-knobs lists them"),
        (["--scenario", "/tmp"], "/tmp: is a directory"),
        (["schedule", "--json", "[1]"], "'[1]' is not a JSON object"),
        (["schedule", "--json", "{"], "'{' is not JSON"),
        (
            ["--scenario", "live-migration", "--source", "vm1=::1", "--source", "vm2=0:0:0:0:0:0:0:1"],
            "vm1 and vm2 have the same source address ::1",
        ),
        (["--knob", "xff_status=200"], "'200' is not an error status from 400 to 599"),
    ],
)
def test_bad_options_are_one_clear_line_and_exit_2(arguments, text, capsys):
    code, said = refused_here(capsys, *arguments)
    assert code == 2 and text in said.splitlines()[-1]


@pytest.mark.parametrize(
    "command, code, text",
    [("/nonexistent/command", 127, "No such file or directory"), ("/etc/passwd", 126, "Permission denied")],
)
def test_exec_of_what_does_not_run_is_the_exit_code_of_a_shell(command, code, text, capsys):
    found, said = refused_here(
        capsys, "exec", "--quiet", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--", command
    )
    assert (found, said) == (code, f"imds_simulator: cannot run {command}: {text}\n")


@pytest.mark.parametrize(
    "library, arguments",
    [("aiohttp", ["--quiet"]), ("yaml", ["--check", "terminate"]), ("jsonschema", ["exec", "--", "true"])],
)
def test_a_missing_library_is_one_clear_line(library, arguments, tmp_path):
    (tmp_path / (library + ".py")).write_text(f"raise ModuleNotFoundError('No module named {library}')")
    done = run(*arguments, PYTHONPATH=f"{tmp_path}:{simulator_process.PACKAGE_ROOT}")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == f"imds_simulator: cannot serve with {sys.executable}: No module named {library}; install aiohttp, PyYAML and jsonschema\n"
    )


def test_a_refused_option_is_the_exit_code_of_the_process():
    done = run("--knob", "etagg=1", "--quiet")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(
        "imds_simulator: there is no knob 'etagg'"
    )
    assert len(done.stderr.splitlines()) == 1


def test_check_names_every_problem_with_its_line(tmp_path, capsys):
    bad = tmp_path / "bad.yaml"
    bad.write_text("groups:\n  web:\n    vms:\n      vm1:\nevents:\n  - {type: Freez, resources: [vm2]}\n")
    done = run("--check", str(bad))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"{bad}:6: events[0].type: 'Freez' is not one of Freeze, Reboot, Redeploy, Preempt, Terminate (did you mean Freeze?)",
        f"{bad}:6: events[0].resources[0]: there is no VM vm2 (did you mean vm1?)",
    ]
    assert refused_here(capsys, "--scenario", str(bad)) == (2, done.stderr)
    assert main(["--check", "terminate"]) == 0
    assert capsys.readouterr().out == "terminate: good (3 VMs, 2 events, 0 faults)\n"


@pytest.mark.parametrize(
    "option, text",
    [
        ("--list-scenarios", "live-migration"),
        ("--list-knobs", "unknown_event_status=400"),
        ("--list-faults", "trickle-header"),
        ("--schema", "A scenario of imds_simulator"),
    ],
)
def test_lists(option, text, capsys):
    assert main([option]) == 0 and text in capsys.readouterr().out


def test_manual_clock_stands_still_and_speed_divides(start_simulator):
    sim = start_simulator("live-migration", args=["--clock", "manual", "--speed", "10"])
    before = sim.get("/state")["unix"]
    assert before == int(before) == sim.get("/state")["unix"]
    sim.advance(10)
    assert sim.get("/state")["unix"] == before + 1
    assert len(ask(sim.endpoints["vm1"]).json["Events"]) == 1


def test_real_time_passes_and_speed_compresses_it(start_simulator):
    sim = start_simulator("live-migration", args=["--speed", "600", "--knob", "rate_limit=off"])
    lines_when(sim, 1, what="finished")
    lives = ("scheduled", "started", "finished")
    assert [line["what"] for line in sim.get("/log")["lines"] if line["what"] in lives] == list(lives)
    assert ask(sim.endpoints["vm1"]).json["Events"] == []
    (event,) = sim.get("/events")["events"]
    assert event["not_before"].endswith(".000Z") and event["started_at"] == event["not_before"]


def test_advance_in_real_time_moves_dates_too(start_simulator):
    sim = start_simulator("predicted-failure")
    sim.advance(5 * 86400 + 11)
    assert ask(sim.endpoints["vm1"]).json["Events"][0]["EventStatus"] == "Started"
    assert sim.get("/state")["unix"] - time.time() > 5 * 86400


def test_verbs_speak_to_the_control_api(still):
    made = verb(
        still,
        "schedule",
        "--type",
        "Reboot",
        "--resources",
        "vm1,vm2",
        "--notice",
        "20m",
        "--name",
        "by-hand",
        "--hold",
        "--json",
        '{"impact_for": 3}',
    )
    assert (made["name"], made["type"], made["resources"]) == ("by-hand", "Reboot", ["vm1", "vm2"])
    assert verb(still, "approve", "by-hand")["approved_by"] == ["control-plane"]
    assert verb(still, "approve", made["id"], "--as", "other-tenants")["name"] == "by-hand"
    assert "not Scheduled" not in verb(still, "change", "by-hand", "--description", "new")["description"]
    verb(still, "advance", "1s")
    assert verb(still, "complete", "by-hand")["status"] == "Gone"
    assert "it has ended" in verb(still, "cancel", "by-hand", code=1)
    assert verb(still, "fail", "vm1", "--type", "Redeploy")["status"] == "Started"
    assert (
        verb(still, "events")["events"]
        and verb(still, "state")["vms"]
        and verb(still, "log", "--what", "started")["lines"]
    )
    assert verb(still, "requests", "--vm", "vm1")["counts"] is not None


def test_verbs_find_the_control_api_by_its_address_alone(still):
    address = urlsplit(still.control).netloc
    assert json.loads(run("knob", "--control", address).stdout) == still.get("/knobs")
    assert json.loads(run("knob", IMDS_SIMULATOR_CONTROL=address + "/").stdout) == still.get("/knobs")


def test_verbs_quote_what_goes_into_a_path(still):
    verb(still, "schedule", "--type", "Freeze", "--resources", "vm1", "--name", "a/b?c#d %2F")
    assert verb(still, "cancel", "a/b?c#d %2F")["name"] == "a/b?c#d %2F"
    assert "there is no fault 1/2" in verb(still, "fault", "clear", "1/2", code=1)


def test_options_of_a_fault_have_their_types(still):
    verb(
        still,
        "fault",
        "inject",
        "status",
        "--set",
        "status=418",
        "--set",
        "body=123",
        "--set",
        'headers={"X-A": "b=c"}',
        "--set",
        "retry_after=1.5m",
    )
    answer = ask(still.endpoints["vm1"])
    assert (answer.status, answer.body, answer.headers["X-A"], answer.headers["Retry-After"]) == (
        418,
        b"123",
        "b=c",
        "90",
    )
    assert "status: '4x' is not a whole number" in verb(
        still, "fault", "inject", "status", "--set", "status=4x", code=1
    )


def test_verbs_for_faults_knobs_and_groups(still):
    fault = verb(
        still,
        "fault",
        "inject",
        "status",
        "--vm",
        "vm1",
        "--requests",
        "1-2",
        "--for",
        "5m",
        "--set",
        "status=418",
        "--set",
        "body=tea",
    )
    assert (ask(still.endpoints["vm1"]).status, fault["last"]) == (418, 2)
    assert [each["kind"] for each in verb(still, "fault", "list")["faults"]] == ["status"]
    assert verb(still, "fault", "clear", str(fault["number"])) == {"cleared": 1} and verb(still, "fault", "clear") == {
        "cleared": 0
    }
    assert "hang" in verb(still, "fault", "kinds")
    assert verb(still, "knob", "etag=off", "enable_delay=3s")["etag"] is False
    assert verb(still, "knob")["enable_delay"] == 3
    assert verb(still, "incarnation", "web", "--to", "9") == {"incarnation": [9]}
    verb(still, "knob", "enable_delay=0")
    ask(still.endpoints["vm1"])
    assert verb(still, "disable", "web")["scopes"] == ["web"]


def test_a_verb_without_a_simulator_says_so():
    done = run("state", "--control", "http://127.0.0.1:9")
    assert done.returncode == 1 and "check that the simulator runs" in done.stderr


CHILD = """
import json, os, sys, urllib.request
endpoints = json.loads(os.environ["IMDS_SIMULATOR_ENDPOINTS"])
assert list(endpoints) == ["vm1", "vm2"] and endpoints["vm1"] == os.environ["IMDS_SIMULATOR_ENDPOINT"]
request = urllib.request.Request(endpoints["vm2"] + "/metadata/scheduledevents?api-version=2020-07-01", headers={"Metadata": "true"})
print(json.load(urllib.request.urlopen(request))["DocumentIncarnation"])
print(json.load(urllib.request.urlopen(os.environ["IMDS_SIMULATOR_CONTROL"] + "/health"))["ok"])
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize("code", [0, 7])
def test_exec_runs_a_command_beside_the_simulator_and_returns_its_exit_code(code):
    done = run(
        "exec",
        "--scenario",
        "live-migration",
        "--clock",
        "manual",
        "--listen",
        "127.0.0.1:0",
        "--control",
        "127.0.0.1:0",
        "--",
        sys.executable,
        "-c",
        CHILD,
        str(code),
    )
    assert (done.returncode, done.stdout) == (code, "1\nTrue\n")
    assert "control http://" in done.stderr


def test_exec_reports_a_signal_as_a_shell_does():
    done = run("exec", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--quiet", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137 and done.stderr == ""


AS_MODULE = ("-m", "imds_simulator")
# the second, for which an interrupt waits, made so long that it never comes
PATIENT = (
    "-c",
    "import sys; from imds_simulator.cli import serve_command; serve_command._SECOND_INTERRUPT = 3600\n"
    "from imds_simulator.__main__ import main; sys.exit(main())",
)


def started_beside(*command, simulator=AS_MODULE):
    """``exec`` without a terminal, in a process group of its own, once its command said that it is up."""
    process = subprocess.Popen(
        [sys.executable, *simulator, "exec", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--", *command],
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
def test_exec_passes_signals_on(how, name):
    process = started_beside("sh", "-c", f"trap 'exit 5' {name}; echo up; while :; do sleep 0.05; done")
    process.send_signal(how)
    assert process.wait(60) == 5
    process.stdout.close()


def test_nohup_means_that_it_goes_on():
    process = subprocess.Popen(
        [
            "sh",
            "-c",
            "trap '' HUP; exec \"$@\"",
            "sh",
            sys.executable,
            "-m",
            "imds_simulator",
            "--listen",
            "127.0.0.1:0",
            "--control",
            "127.0.0.1:0",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=simulator_process.environment(),
    )
    endpoint = process.stdout.readline().split()[1]
    process.send_signal(signal.SIGHUP)
    assert ask(endpoint).status == 200 and process.poll() is None
    process.terminate()
    assert process.wait(60) == 0
    process.stdout.close()


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


@pytest.mark.parametrize("simulator, group, count", [(PATIENT, True, 1), (AS_MODULE, True, 2), (AS_MODULE, False, 1)])
def test_exec_sends_an_interrupt_only_to_a_command_that_still_runs_a_second_later(simulator, group, count):
    process = started_beside(sys.executable, "-c", COUNT_INTERRUPTS, str(count), simulator=simulator)
    command = int(process.stdout.readline())
    began = time.monotonic()
    if group:
        # the command takes its own first: two interrupts that reach it before it runs again would
        # be one
        os.kill(command, signal.SIGINT)
        assert process.stdout.readline() == "!\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(90) == count
    assert simulator is PATIENT or time.monotonic() - began >= 1
    process.stdout.close()


def impact(tmp_path, **more):
    note = [
        sys.executable,
        "-c",
        "import os,sys; open(sys.argv[1],'a').write(' '.join(os.environ[n] for n in "
        "('EVENT_PHASE','EVENT_TYPE','VM_NAME','EVENT_NAME','GROUP_NAME'))+' '+sys.argv[2]+chr(10)); print('done')",
        str(tmp_path / "notes"),
        "${VM_NAME}:$EVENT_ID",
    ]
    return {
        "groups": {"web": {"kind": "availability_set", "vms": {"vm1": {}, "vm2": {}}}},
        "events": [
            {
                "name": "e",
                "type": "Reboot",
                "actual": "Freeze",
                "impact_for": 5,
                "resources": ["vm1", "vm2"],
                "starts": "automatic_approval",
            }
        ],
        "impact": {"Freeze": {"start": note, "end": note}, **more},
    }


def lines_when(sim, count, what="impact-command"):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        lines = sim.get("/log?what=" + what)["lines"]
        if len(lines) >= count:
            return lines
        time.sleep(0.02)
    raise AssertionError(f"only {len(lines)} of {count}")


def test_impact_commands_run_once_per_vm_and_phase(start_simulator, tmp_path):
    sim = start_simulator(impact(tmp_path), args=["--clock", "manual"])
    lines_when(sim, 2)
    sim.advance(5)
    lines = lines_when(sim, 4)
    event_id = sim.get("/events/e")["id"]
    assert sorted((tmp_path / "notes").read_text().splitlines()) == sorted(
        f"{phase} Freeze {vm} e web {vm}:{event_id}" for phase in ("start", "end") for vm in ("vm1", "vm2")
    )
    assert {(line["status"], line["output"]) for line in lines} == {(0, "done\n")}


def test_a_command_that_hangs_is_ended(start_simulator, tmp_path):
    scenario = impact(tmp_path, timeout="300ms")
    scenario["impact"]["Freeze"] = {"start": ["sh", "-c", "sleep 60 & sleep 60"]}
    sim = start_simulator(scenario)
    assert {line["error"] for line in lines_when(sim, 2)} == {"stopped after 0.3 s"}


def test_a_command_that_cannot_run_is_logged_and_running_ones_hold_nobody_up_and_end_with_the_simulator(
    start_simulator, tmp_path
):
    scenario = impact(tmp_path)
    scenario["impact"]["Freeze"] = {"start": ["/nonexistent/command"]}
    assert "No such file" in lines_when(start_simulator(scenario), 2)[0]["error"]
    scenario["impact"]["Freeze"] = {"start": ["sleep", "60"]}
    sim = start_simulator(scenario)
    began = time.monotonic()
    assert ask(sim.endpoints["vm1"]).status == 200
    assert sim.stop() == 0 and time.monotonic() - began < AT_ONCE


def test_many_clients_at_once(still):
    statuses = []
    threads = [
        threading.Thread(target=lambda: statuses.extend(ask(still.endpoints["vm1"]).status for _each in range(5)))
        for _t in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert statuses == [200] * 100
