# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The command line: serving, checking, verbs, exec, impact commands."""

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
from imds_simulator.scenario.files import shipped_names
from support import simulator_process
from support.simulator.raw_http import EVENTS, connect, request_bytes, send_request

# seconds: ten times the usual time, for a busy machine, and much less than the minutes without the tested effect
STOP_LIMIT = 10


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


def run_refused(capsys, *arguments):
    """Run ``main`` in this process and return its exit code and stderr."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    return code, capsys.readouterr().err


def verb(sim, *arguments, code=0):
    done = run(*arguments, IMDS_SIMULATOR_CONTROL=sim.control)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 else done.stderr


def test_serve_without_configuration_has_one_vm(start_process):
    sim = start_process(args=["--vm", "solo"])
    assert list(sim.endpoints) == ["solo"]
    assert send_request(sim.endpoints["solo"]).json == {"DocumentIncarnation": 1, "Events": []}
    assert sim.output[:2] == [f"listening {sim.endpoints['solo']} for solo\n", f"control {sim.control}\n"]


def test_serve_prints_addresses_before_log_lines(start_process):
    sim = start_process(
        {"groups": {"web": {"vms": {"vm1": {}}}}, "events": [{"type": "Freeze", "resources": ["vm1"], "at": 0}]},
        args=["--clock", "manual"],
    )
    assert [line.split()[0] for line in sim.output[:2]] == ["listening", "control"]
    assert sim.get("/log?what=scheduled")["lines"]


def count_rejected_posts(endpoint, count):
    """Send POSTs without the header on one connection and count the answers 400."""
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=60)
    statuses = []
    for _each in range(count):
        connection.request("POST", EVENTS, body=b"{}")
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()
    return statuses.count(400)


def test_serve_with_unread_or_closed_stdout_does_not_block():
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
        assert count_rejected_posts(endpoint, 1500) == 1500
        process.stdout.close()
        assert count_rejected_posts(endpoint, 20) == 20
        process.terminate()
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.stderr.close()


def test_serve_without_stdout_answers():
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
                    assert count_rejected_posts(f"http://127.0.0.1:{port}", 1) == 1
                    break
                time.sleep(0.02)
            process.terminate()
            assert (process.wait(60), process.stderr.read()) == (0, "")
        finally:
            process.kill()
            process.stderr.close()


def test_serve_default_vm_name_is_vm1(start_process):
    assert list(start_process().endpoints) == ["vm1"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_ends_the_simulator_despite_hanging_requests(start_process, how):
    sim = start_process(args=["--knob", "enable_delay=2h"])
    waiting = [connect(sim.endpoints["vm1"]) for _each in range(3)]
    for connection in waiting:
        connection.sendall(request_bytes())
    wait_for_lines(sim, 1, what="enabled")
    began = time.monotonic()
    assert sim.stop(how) == 0
    assert time.monotonic() - began < STOP_LIMIT
    for connection in waiting:
        connection.close()


@pytest.mark.parametrize("option", ["--listen", "--control"])
def test_address_in_use_is_one_line_and_exit_2(option):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = {"--listen": "127.0.0.1:0", "--control": "127.0.0.1:0", option: address}
        done = run(*[part for pair in options.items() for part in pair])
    assert done.returncode == 2
    port = address.rpartition(":")[2]
    assert done.stderr.startswith(f"imds_simulator: cannot listen on {address}: Address already in use; find ")
    assert f"ss -ltnp 'sport = :{port}'" in done.stderr


def test_address_of_both_vms_and_control_is_one_line_and_exit_2(capsys):
    # reserves a port: the simulator can bind it, but it can listen only once
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{reserved.getsockname()[1]}"
        code, problem = run_refused(capsys, "--listen", address, "--control", address)
    assert code == 2
    assert problem.startswith(f"imds_simulator: cannot listen on {address}: Address already in use; find ")


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--listen", "nonsense"], "'nonsense' is not HOST:PORT"),
        (["--speed", "0"], "'0' is not a number above 0"),
        (["--scenario", "nothing.yaml"], "no such file, and no shipped scenario of that name"),
        (["--scenario", "live-migratoin"], "did you mean live-migration?"),
        (["--knob", "etag"], "is not NAME=VALUE"),
        (["--knob", "etagg=1"], "knob etagg: unknown key"),
        (["--control", "0.0.0.0:0"], "add --control-anywhere"),
        (["--scenario", "live-migration", "--vm", "x"], "--vm: not allowed with --scenario"),
        (["--scenario", "live-migration", "--source", "vm9=10.0.0.1"], "there is no VM vm9; there are vm1, vm2"),
        (["--source", "vm1=here"], "does not appear to be an IPv4 or IPv6 address"),
        (["--frobnicate"], "--frobnicate: there is no such option; --help lists the options"),
        (["--spede=3"], "--spede: there is no such option (did you mean --speed?)"),
        (
            ["record", "--output", "f", "--anonymize"],
            "--anonymize: there is no such option (did you mean --anonymise?)",
        ),
        (["note", "vm1", "prepared", "--evnt=e"], "--evnt: there is no such option (did you mean --event?)"),
        (["--imds-address", "--", "id"], "--imds-address: there is no such option without exec; write: exec "),
        (["exec", "--imds-adress", "--", "id"], "(did you mean --imds-address?)"),
        (["exec", "curl", "-s", "http://localhost"], "exec needs a command after --: exec [OPTIONS] -- COMMAND"),
        (["exec", "--scenario", "live-migration"], "exec needs a command after --"),
        (["exec", "--"], "exec: there is no command after --"),
        (["aprove", "e"], "there is no verb aprove (did you mean approve?)"),
        (["zzz"], "there is no verb zzz; --help lists the verbs, --scenario FILE serves a scenario"),
        (["--notify-url=http://x/"], "--notify-url: this option was removed; set url below the key notify"),
        (["exec", "--notify-header", "A=b", "--", "id"], "--notify-header: this option was removed; set headers below"),
        (["compare", "x"], "compare: this verb was removed; read the recording, which is text, "),
        (["--scenario", "/dev/null"], "/dev/null: is not a regular file"),
        (["--scenario", "zzz"], "no shipped scenario of that name; --list-scenarios lists those"),
        (["--knob", "nosuch=1"], "knob nosuch: unknown key; --list-knobs lists them"),
        (["--scenario", "/tmp"], "/tmp: is a directory"),
        (["schedule", "--json", "[1]"], "'[1]' is not a JSON object"),
        (["schedule", "--json", "{"], "'{' is not JSON"),
        (
            ["--scenario", "live-migration", "--source", "vm1=::1", "--source", "vm2=0:0:0:0:0:0:0:1"],
            "vm1 and vm2 have the same source address ::1",
        ),
        (["--knob", "xff_status=200"], "knob xff_status: 200 is not an error status from 400 to 599"),
    ],
)
def test_bad_options_are_one_line_and_exit_2(arguments, text, capsys):
    code, stderr = run_refused(capsys, *arguments)
    assert code == 2 and text in stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "command, code, text",
    [("/nonexistent/command", 127, "No such file or directory"), ("/etc/passwd", 126, "Permission denied")],
)
def test_exec_of_a_missing_command_has_the_exit_code_of_a_shell(command, code, text, capsys):
    found, stderr = run_refused(
        capsys, "exec", "--quiet", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--", command
    )
    assert (found, stderr) == (code, f"imds_simulator: cannot run {command}: {text}\n")


@pytest.mark.parametrize(
    "library, arguments",
    [("aiohttp", ["--quiet"]), ("yaml", ["--check", "terminate"]), ("aiohttp", ["exec", "--", "true"])],
)
def test_missing_library_is_one_line_and_exit_2(library, arguments, tmp_path):
    (tmp_path / (library + ".py")).write_text(f"raise ModuleNotFoundError('No module named {library}')")
    done = run(*arguments, PYTHONPATH=f"{tmp_path}:{simulator_process.PACKAGE_ROOT}")
    assert (done.returncode, done.stdout) == (2, "")
    problem = f"cannot run with {sys.executable}: No module named {library}"
    assert done.stderr == f"imds_simulator: {problem}; install aiohttp and PyYAML\n"


def test_refused_option_is_exit_code_2_of_the_process():
    done = run("--knob", "etagg=1", "--quiet")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(
        "imds_simulator: knob etagg: unknown key (did you mean etag?)"
    )
    assert len(done.stderr.splitlines()) == 1


def test_check_prints_every_problem_with_its_line(tmp_path, capsys):
    bad = tmp_path / "bad.yaml"
    bad.write_text("groups:\n  web:\n    vms:\n      vm1:\nevents:\n  - {type: Freez, resources: [vm2]}\n")
    done = run("--check", str(bad))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"{bad}:6: events[0].type: 'Freez' is not one of Freeze, Reboot, Redeploy, Preempt, Terminate, "
        "SpotRebalanceRecommendation (did you mean Freeze?)",
        f"{bad}:6: events[0].resources[0]: there is no VM vm2 (did you mean vm1?)",
    ]
    assert run_refused(capsys, "--scenario", str(bad)) == (2, done.stderr)
    assert main(["--check", "terminate"]) == 0
    assert capsys.readouterr().out == "terminate: good (3 VMs, 2 events, 0 faults)\n"


def test_check_prints_warnings_and_exits_0(tmp_path, capsys):
    file = tmp_path / "pool.yaml"
    file.write_text(
        "knobs: {notice_overrides: {Terminate: 20m}}\n"
        "groups: {pool: {kind: scale_set, vms: {pool_1: , pool_2: }}}\n"
        "events:\n"
        "  - {type: Terminate, resources: [pool_1, pool_2], notice: 5m}\n"
        "  - {type: Terminate, resources: [pool_1], notice: 4m59s}\n"
        "  - {type: Terminate, resources: [pool_1]}\n"
        "  - {type: Terminate, resources: [pool_1], notice: 1s, starts: automatic_approval}\n"
        "  - {type: Reboot, resources: [pool_1, pool_2], notice: 1s}\n"
    )
    assert main(["--check", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out == f"{file}: good (2 VMs, 5 events, 0 faults)\n"
    notice = "is not a notice of a Terminate event on Azure: 5 to 15 minutes (reference 2.4)"
    assert err.splitlines() == [
        f"{file}:4: events[0].resources: warning: 2 VMs; on Azure a Terminate event has one instance (reference 2.2.8)",
        f"{file}:5: events[1].notice: warning: 4m59s {notice}",
        f"{file}:6: events[2].notice: warning: 20m {notice}",
    ]
    for name in shipped_names():
        assert main(["--check", name]) == 0
    assert capsys.readouterr().err == ""


def test_check_prints_warnings_about_instance_metadata_and_placement_groups(tmp_path, capsys):
    file = tmp_path / "pool.yaml"
    file.write_text(
        "groups:\n"
        "  pool:\n"
        "    kind: scale_set\n"
        "    vms:\n"
        "      pool_1: {placement_group: a, instance: {compute: {vmsize: A}}}\n"
        "      pool_2: {placement_group: b}\n"
        "events: [{type: Reboot, resources: [pool_1, pool_2]}]\n"
    )
    assert main(["--check", str(file)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        f"{file}:5: groups.pool.vms.pool_1.instance.compute.vmsize: warning: Azure documents no member vmsize of "
        "compute (reference 3.3) (did you mean vmSize?)",
        f"{file}:7: events[0].resources: warning: these VMs have different placement groups; Azure documents no such "
        "event (reference 3.1.9)",
    ]


def test_schedule_prints_warnings_of_the_control_api(frozen_simulator):
    event = {"type": "Terminate", "resources": ["pool_0", "pool_3"], "notice": "20m"}
    warnings = frozen_simulator.post("/events", event)["warnings"]
    assert [each.split(":")[0] for each in warnings] == ["notice", "resources"]
    assert frozen_simulator.post("/events", {**event, "resources": ["pool_0"], "notice": "15m"})["warnings"] == []
    assert frozen_simulator.post("/events", {**event, "type": "Reboot"})["warnings"] == []
    control = {"IMDS_SIMULATOR_CONTROL": frozen_simulator.control}
    done = run("schedule", "--type", "Terminate", "--resources", "pool_0,pool_3", "--notice", "20m", **control)
    assert (done.returncode, json.loads(done.stdout)["warnings"]) == (0, warnings)
    assert done.stderr.splitlines() == [f"imds_simulator: warning: {each}" for each in warnings]


@pytest.mark.parametrize(
    "option, text",
    [
        ("--list-scenarios", "live-migration"),
        ("--list-knobs", "unknown_event_status=400"),
        ("--list-faults", "trickle-header"),
        ("--schema", "A scenario of imds_simulator"),
    ],
)
def test_list_options_print_their_lists(option, text, capsys):
    assert main([option]) == 0 and text in capsys.readouterr().out


def test_manual_clock_moves_by_advance_only_and_speed_divides(start_process):
    sim = start_process("live-migration", args=["--clock", "manual", "--speed", "10"])
    before = sim.get("/state")["unix"]
    assert before == int(before) == sim.get("/state")["unix"]
    sim.advance(10)
    assert sim.get("/state")["unix"] == before + 1
    assert len(send_request(sim.endpoints["vm1"]).json["Events"]) == 1


def test_real_clock_passes_and_speed_divides(start_process):
    sim = start_process("live-migration", args=["--speed", "600", "--knob", "rate_limit=off"])
    wait_for_lines(sim, 1, what="finished")
    lives = ("scheduled", "started", "finished")
    assert [line["what"] for line in sim.get("/log")["lines"] if line["what"] in lives] == list(lives)
    assert send_request(sim.endpoints["vm1"]).json["Events"] == []
    (event,) = sim.get("/events")["events"]
    assert event["not_before"].endswith(".000Z") and event["started_at"] == event["not_before"]


def test_advance_with_real_clock_moves_dates(start_process):
    sim = start_process("predicted-failure")
    sim.advance(5 * 86400 + 11)
    assert send_request(sim.endpoints["vm1"]).json["Events"][0]["EventStatus"] == "Started"
    assert sim.get("/state")["unix"] - time.time() > 5 * 86400


def test_verbs_for_events_use_the_control_api(frozen_simulator):
    made = verb(
        frozen_simulator,
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
    assert verb(frozen_simulator, "approve", "by-hand")["approved_by"] == ["control-plane"]
    assert verb(frozen_simulator, "approve", made["id"], "--as", "other-tenants")["name"] == "by-hand"
    assert "not Scheduled" not in verb(frozen_simulator, "change", "by-hand", "--description", "new")["description"]
    verb(frozen_simulator, "advance", "1s")
    assert verb(frozen_simulator, "complete", "by-hand")["status"] == "Gone"
    assert "it has ended" in verb(frozen_simulator, "cancel", "by-hand", code=1)
    assert verb(frozen_simulator, "fail", "vm1", "--type", "Redeploy")["status"] == "Started"
    assert (
        verb(frozen_simulator, "events")["events"]
        and verb(frozen_simulator, "state")["vms"]
        and verb(frozen_simulator, "log", "--what", "started")["lines"]
    )
    assert verb(frozen_simulator, "requests", "--vm", "vm1")["counts"] is not None


def test_verbs_accept_host_and_port_as_control(frozen_simulator):
    address = urlsplit(frozen_simulator.control).netloc
    assert json.loads(run("knob", "--control", address).stdout) == frozen_simulator.get("/knobs")
    assert json.loads(run("knob", IMDS_SIMULATOR_CONTROL=address + "/").stdout) == frozen_simulator.get("/knobs")


def test_verbs_quote_names_in_paths(frozen_simulator):
    verb(frozen_simulator, "schedule", "--type", "Freeze", "--resources", "vm1", "--name", "a/b?c#d %2F")
    assert verb(frozen_simulator, "cancel", "a/b?c#d %2F")["name"] == "a/b?c#d %2F"
    assert "there is no fault 1/2" in verb(frozen_simulator, "fault", "clear", "1/2", code=1)


def test_verb_fault_parses_option_types(frozen_simulator):
    verb(
        frozen_simulator,
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
    answer = send_request(frozen_simulator.endpoints["vm1"])
    assert (answer.status, answer.body, answer.headers["X-A"], answer.headers["Retry-After"]) == (
        418,
        b"123",
        "b=c",
        "90",
    )
    assert "status: '4x' is not a whole number" in verb(
        frozen_simulator, "fault", "inject", "status", "--set", "status=4x", code=1
    )


def test_verbs_for_faults_knobs_and_groups_use_the_control_api(frozen_simulator):
    fault = verb(
        frozen_simulator,
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
    assert (send_request(frozen_simulator.endpoints["vm1"]).status, fault["last"]) == (418, 2)
    assert [each["kind"] for each in verb(frozen_simulator, "fault", "list")["faults"]] == ["status"]
    assert verb(frozen_simulator, "fault", "clear", str(fault["number"])) == {"cleared": 1} and verb(
        frozen_simulator, "fault", "clear"
    ) == {"cleared": 0}
    assert "hang" in verb(frozen_simulator, "fault", "kinds")
    assert verb(frozen_simulator, "knob", "etag=off", "enable_delay=3s")["etag"] is False
    assert verb(frozen_simulator, "knob")["enable_delay"] == 3
    assert verb(frozen_simulator, "incarnation", "web", "--to", "9") == {"incarnation": [9]}
    verb(frozen_simulator, "knob", "enable_delay=0")
    send_request(frozen_simulator.endpoints["vm1"])
    assert verb(frozen_simulator, "disable", "web")["scopes"] == ["web"]


def test_verb_without_a_simulator_is_exit_1():
    done = run("state", "--control", "http://127.0.0.1:9")
    assert done.returncode == 1 and "check that the simulator runs" in done.stderr


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


@pytest.mark.parametrize("code", [0, 7])
def test_exec_returns_the_exit_code_of_the_command(code):
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


def test_exec_of_a_signalled_command_has_the_exit_code_of_a_shell():
    done = run("exec", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--quiet", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137 and done.stderr == ""


AS_MODULE = ("-m", "imds_simulator")
# delays the forwarded SIGINT so long that it is never sent
NO_SECOND_INTERRUPT = (
    "-c",
    "import sys; from imds_simulator.cli import serve_command; serve_command._SECOND_INTERRUPT = 3600\n"
    "from imds_simulator.__main__ import main; sys.exit(main())",
)


def start_exec(*command, simulator=AS_MODULE):
    """Start ``exec`` in a process group of its own and wait until its command runs."""
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
def test_exec_forwards_signals(how, name):
    process = start_exec("sh", "-c", f"trap 'exit 5' {name}; echo up; while :; do sleep 0.05; done")
    process.send_signal(how)
    assert process.wait(60) == 5
    process.stdout.close()


def test_nohup_ignores_sighup():
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
    assert send_request(endpoint).status == 200 and process.poll() is None
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


def wait_for_lines(sim, count, what="impact-command"):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        lines = sim.get("/log?what=" + what)["lines"]
        if len(lines) >= count:
            return lines
        time.sleep(0.02)
    raise AssertionError(f"only {len(lines)} of {count}")


def test_impact_commands_run_once_per_vm_and_phase(start_process, tmp_path):
    sim = start_process(impact(tmp_path), args=["--clock", "manual"])
    wait_for_lines(sim, 2)
    sim.advance(5)
    lines = wait_for_lines(sim, 4)
    event_id = sim.get("/events/e")["id"]
    assert sorted((tmp_path / "notes").read_text().splitlines()) == sorted(
        f"{phase} Freeze {vm} e web {vm}:{event_id}" for phase in ("start", "end") for vm in ("vm1", "vm2")
    )
    assert {(line["status"], line["output"]) for line in lines} == {(0, "done\n")}


def test_impact_command_runs_no_code_in_the_name_of_an_event(start_process, tmp_path):
    scenario = impact(tmp_path)
    scenario["events"][0]["name"] = f"-e$(touch {tmp_path}/run);touch {tmp_path}/run;`touch {tmp_path}/run`"
    scenario["impact"]["Freeze"] = {"start": ["sh", "-c", "echo ${EVENT_NAME}; echo $EVENT_ID"]}
    sim = start_process(scenario, args=["--clock", "manual"])
    assert [line["status"] for line in wait_for_lines(sim, 2)] == [0, 0]
    assert not (tmp_path / "run").exists()


def test_impact_command_that_hangs_is_killed(start_process, tmp_path):
    scenario = impact(tmp_path, timeout="300ms")
    scenario["impact"]["Freeze"] = {"start": ["sh", "-c", "sleep 60 & sleep 60"]}
    sim = start_process(scenario)
    assert {line["error"] for line in wait_for_lines(sim, 2)} == {"stopped after 0.3 s"}


def test_impact_commands_are_logged_and_never_block(start_process, tmp_path):
    scenario = impact(tmp_path)
    scenario["impact"]["Freeze"] = {"start": ["/nonexistent/command"]}
    assert "No such file" in wait_for_lines(start_process(scenario), 2)[0]["error"]
    scenario["impact"]["Freeze"] = {"start": ["sleep", "60"]}
    sim = start_process(scenario)
    began = time.monotonic()
    assert send_request(sim.endpoints["vm1"]).status == 200
    assert sim.stop() == 0 and time.monotonic() - began < STOP_LIMIT


def test_many_clients_at_once_are_answered(frozen_simulator):
    statuses = []
    threads = [
        threading.Thread(
            target=lambda: statuses.extend(send_request(frozen_simulator.endpoints["vm1"]).status for _each in range(5))
        )
        for _t in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert statuses == [200] * 100
