# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The command line: options, their variables, help, messages, what each command needs, and requests of verbs."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from imds_simulator.cli.commands import SERVE
from imds_simulator.cli.control_commands import VERBS
from imds_simulator.cli.options import DEFAULT_CONTROL, http_address
from imds_simulator.cli.parsing import parse
from imds_simulator.cli.serve_command import server_options
from imds_simulator.scenario.groups import Address
from support import simulator_process
from support.simulator.raw_http import send_request

SIGPIPE = 141
PRINTING = {
    "--list-scenarios": "live-migration",
    "--list-knobs": "unknown_event_status=400           status for",
    "--list-faults": "trickle-header",
    "--schema": "A scenario of imds_simulator",
    "--check=terminate": "terminate: good (3 VMs, 2 events, 0 faults)\n",
    "--version": "imds_simulator 0",
}


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith("IMDS_SIMULATOR_")]:
        monkeypatch.delenv(name)


def run(*arguments: str, **variables_: str) -> subprocess.CompletedProcess[str]:
    return simulator_process.run(*arguments, env={**simulator_process.environment(), **variables_})


@pytest.mark.parametrize(
    "text, host, port",
    [("[::1]:81", "::1", 81), ("http://[::1]", "::1", 80), ("http://[::1]:81", "::1", 81), ("http://here", "here", 80)],
)
def test_address_of_a_url_has_port_80_by_default(text: str, host: str, port: int) -> None:
    assert http_address(text) == Address(host, port)


@pytest.mark.parametrize(
    "arguments, text",
    [
        ("--listen nonsense", "--listen: 'nonsense' is not HOST:PORT"),
        ("--listen 127.0.0.1:\u00b2", "--listen: '127.0.0.1:\u00b2' is not HOST:PORT"),
        ("--control https://127.0.0.1:1", "--control: 'https://127.0.0.1:1' is not HOST:PORT or http://HOST:PORT"),
        ("--speed 0", "--speed: 0 is not a finite number of at least 0.000001"),
        ("--speed", "requires an argument; --help lists the options"),
        ("--vms 2 --vms 3", "--vms: it is given twice; write --vms N|NAME,NAME once"),
        ("schedule --resources a --resources b", "--resources: it is given twice; write --resources VALUE,VALUE once"),
        ("approve e --as a --as a", "--as: it is given twice; write --as WHO once"),
        ("exec --quiet --quiet --speed=1 --speed=2 -- id", "--speed: it is given twice; write --speed N once"),
        ("--clock manuel", "--clock: 'manuel' is not one of real, manual (did you mean manual?)"),
        ("--control-token short", "--control-token: a token has at least 8 characters; openssl rand -hex 16 makes one"),
        ("--scenario live-migratoin", "did you mean live-migration?"),
        ("--scenario zzz", "no shipped scenario of that name; --list-scenarios lists those"),
        ("--scenario /dev/null", "/dev/null: is not a regular file"),
        ("--scenario /dev", "/dev: is a directory, not a scenario file"),
        ("--knob etag", "--knob: 'etag' is not NAME=VALUE"),
        ("--knob etagg=1 --knob strict=x", "--knob etagg: unknown key (did you mean etag?); --knob strict: 'x' is not"),
        ("--control 0.0.0.0:0", "add --control-anywhere"),
        ("--scenario live-migration --vms 3", "--vms: not allowed with --scenario; the scenario names the VMs"),
        ("--vms 0", "--vms: 0 is not a number of VMs from 1 to 10000, or their names"),
        ("--vms -1", "--vms: -1 is not a number of VMs"),
        ("--vms 1.5", "--vms: 1.5 is not a number of VMs"),
        ("--vms 10001", "--vms: 10001 is not a number of VMs"),
        ("--vms a,a", "--vms: a is in the list twice"),
        ("--vms a,,b", "--vms: 'a,,b' has an empty name; write NAME or NAME,NAME"),
        ("--vms=", "--vms: '' has an empty name; write NAME or NAME,NAME"),
        ("--vms a,", "--vms: 'a,' has an empty name; write NAME or NAME,NAME"),
        ("--vms a,A", "--vms: a has the name A already; names are compared in any letter case (reference 3.2.4)"),
        ("knob etag strict=on", "knob etag: without a value among knobs to set; "),
        ("--vm vm1", "--vm: there is no such option (did you mean --vms?)"),
        ("--scenario live-migration --source vm9=10.0.0.1", "--source: there is no VM vm9 (did you mean vm2?)"),
        ("--scenario live-migration --source vm1=::1 --source vm2=0:0:0:0:0:0:0:1", "vm1 has the address ::1 already"),
        ("--source vm1=here", "--source: 'here' does not appear to be an IPv4 or IPv6 address"),
        (
            "--scenario live-migration --listen 127.0.0.1:8931 --control 127.0.0.1:8932",
            "--listen: 127.0.0.1:8932 is the address of vm2 and of --control; VMs use the ports that follow; ",
        ),
        ("--listen 0.0.0.0:8931 --control 127.0.0.1:8931", "--listen: 0.0.0.0:8931 is the address of vm1 and of"),
        ("--listen localhost:8931 --control 127.0.0.1:8931", "--listen: localhost:8931 is the address of vm1 and of"),
        ("disable --group web", "--group: there is no such option; write GROUP without --group"),
        ("cancel --evnt=e", "--evnt: there is no such option; --help lists the options"),
        ("--zzz", "--zzz: there is no such option; --help lists the options"),
        ("--spede=3", "--spede: there is no such option (did you mean --speed?)"),
        ("record --output f --intervall=5s", "--intervall: there is no such option (did you mean --interval?)"),
        ("record", "--output: a value is missing; --help lists the options"),
        ("record --output x --for never", "--for: 'never' is not a duration"),
        ("record --output x --interval 0.1s", "--interval: "),
        ("record --output x --endpoint https://example.com", "--endpoint: "),
        ("record --output x --endpoint http://127.0.0.1:99999", "--endpoint: "),
        ("record --output no/such/folder/x", "no/such/folder/x"),
        ("record --output /dev/null", "/dev/null"),
        ("replay no-such-file", "no-such-file"),
        ("replay x --listen here", "--listen: "),
        ("note vm1 prepared --evnt=e", "--evnt: there is no such option (did you mean --event?)"),
        ("fault inject", "fault inject: the kind is missing; 'fault kinds' lists the kinds"),
        ("fault list gone", "fault list: takes no KIND or NUMBER, such as gone"),
        ("--imds-address -- id", "--imds-address: there is no such option without exec; write: exec "),
        ("exec --imds-adress -- id", "(did you mean --imds-address?)"),
        (
            "exec --imds-address --keep-network -- id",
            "add the address to lo, and write: exec --listen 169.254.169.254:80",
        ),
        (
            "exec --imds-address --as-root -- id",
            "--as-root: this option was removed; write: -- unshare --map-root-user",
        ),
        ("join --vm vm1 --as-root -- id", "--as-root: this option was removed; write: -- unshare --map-root-user"),
        ("exec --imds-vm vm1 -- true", "--imds-vm: only with --imds-address"),
        ("exec --imds-address --vms 2 --imds-vm vm22 -- true", "--imds-vm: there is no VM vm22 (did you mean vm2?)"),
        ("exec curl -s http://localhost", "exec: there is no command after --; write: exec [OPTIONS] -- COMMAND"),
        ("exec --", "exec: there is no command after --"),
        ("join --vm web_1", "join: there is no command after --; write: join [OPTIONS] -- COMMAND ARGUMENTS..."),
        ("join -- true", "--vm: a value is missing"),
        ("join --vm v --control 127.0.0.1:1 -- true", "no control API at http://127.0.0.1:1: Connection refused; "),
        ("join --vm v --control https://127.0.0.1:1 -- true", "--control: 'https://127.0.0.1:1' is not HOST:PORT"),
        ("join --vm v --control http://127.0.0.1:1/a -- true", "--control: '127.0.0.1:1/a' is not HOST:PORT"),
        ("join --vm v --control http://here/a -- true", "HOST:PORT; join relays no other connections"),
        ("log --what aproved", "(did you mean approved?)"),
        ("wait", "a value is missing"),
        ("wait e --until soon", "--until: 'soon' is not one of approved, started, gone"),
        ("wait e --timeout never", "--timeout: 'never' is not a duration"),
        ("events --control ftp://a", "--control: 'ftp://a' is not HOST:PORT, http://HOST:PORT or https://"),
        ("aprove e", "there is no verb aprove (did you mean approve?)"),
        ("zzz", "there is no verb zzz; --help lists the verbs, --scenario FILE serves a scenario"),
    ],
)
def test_bad_options_are_one_line_and_exit_2(arguments, text, call):
    done = call(*arguments.split())
    # exec prints the addresses of the simulator, which another thread writes
    lines = [line for line in done.err.splitlines() if not line.startswith(("listening ", "control "))]
    assert (done.code, len(lines)) == (2, 1) and text in lines[0]


@pytest.mark.parametrize("arguments", [["--help"], ["exec", "-h"]])
def test_help_begins_with_the_purpose_and_three_examples_and_lists_verbs(arguments, call, monkeypatch):
    monkeypatch.setenv("IMDS_SIMULATOR_SPEED", "fast")  # a wrong value does not matter here
    done = call(*arguments)
    assert done.code == 0
    purpose, usage = done.out.split("\nUsage: ")
    assert purpose.lstrip().startswith(("A simulator of Azure Scheduled Events", "Run a command while a simulator"))
    assert [line.split()[0] for line in purpose.splitlines() if line.startswith("    ")] == ["imds_simulator"] * 3
    assert "--scenario FILE" in usage
    assert "--quiet" in usage and "print no log; exec prints no addresses either" in " ".join(usage.split())
    verbs = {*VERBS, "exec", "join", "log", "record", "replay", "report", "wait"}
    assert "exec" in arguments or verbs <= set(usage.split())


def test_help_of_schedule_names_the_types(call):
    assert "--type Freeze|Reboot|Redeploy|Preempt|Terminate|SpotRebalanceRecommendation" in call("schedule", "-h").out


# -- variables


def test_values_of_variables_have_the_types_of_the_options(monkeypatch):
    values = {"SCENARIO": "x.yaml", "LISTEN": "127.0.0.2:0", "SPEED": "60", "CLOCK": "manual", "QUIET": "yes"}
    for name, text in {**values, "VMS": ""}.items():
        monkeypatch.setenv(f"IMDS_SIMULATOR_{name}", text)
    options = parse(SERVE, ["--speed", "2"])
    assert (options.scenario, str(options.listen), options.clock) == ("x.yaml", "127.0.0.2:0", "manual")
    assert (options.quiet, options.control_anywhere, options.speed, options.vms) == (True, False, 2.0, None)
    assert set(options.from_environment) == {
        f"IMDS_SIMULATOR_{each}" for each in ("SCENARIO", "LISTEN", "CLOCK", "QUIET")
    }


@pytest.mark.parametrize(
    "text", ["notice_overrides=Freeze:5m,Reboot:1m,etag=off", "notice_overrides=Freeze:5m,Reboot:1m\netag=off\n"]
)
def test_values_of_a_repeatable_option_are_separated(text, monkeypatch):
    monkeypatch.setenv("IMDS_SIMULATOR_KNOB", text)
    assert parse(SERVE, []).knob == (("notice_overrides", "Freeze:5m,Reboot:1m"), ("etag", "off"))


@pytest.mark.parametrize(
    ("name", "text"), [("SPEED", "fast"), ("LISTEN", "8169"), ("CLOCK", "manuel"), ("QUIET", "maybe"), ("KNOB", "etag")]
)
def test_a_bad_value_names_the_variable(name, text, monkeypatch, call):
    monkeypatch.setenv(f"IMDS_SIMULATOR_{name}", text)
    done = call()
    assert done.code == 2 and done.err.startswith(f"imds_simulator: IMDS_SIMULATOR_{name}: ") and text in done.err


def test_a_problem_of_the_scenario_names_the_variables_in_use(monkeypatch, call):
    monkeypatch.setenv("IMDS_SIMULATOR_SCENARIO", "zzz")
    done = call()
    assert done.code == 2 and done.err.endswith("imds_simulator: from the environment: IMDS_SIMULATOR_SCENARIO\n")


@pytest.mark.parametrize(
    ("arguments", "is_strict"),
    [([], False), (["--strict"], True), (["--knob", "strict=on"], True), (["--strict", "--knob", "strict=off"], False)],
)
def test_strict_is_a_knob_too(arguments, is_strict):
    assert server_options(parse(SERVE, arguments)).scenario.knobs.strict is is_strict


def test_control_accepts_a_url_but_not_that_of_the_simulator_around(monkeypatch):
    assert str(parse(SERVE, ["--control", "http://127.0.0.1:9999/"]).control) == "127.0.0.1:9999"
    monkeypatch.setenv("IMDS_SIMULATOR_CONTROL", "127.0.0.1:9999")
    assert str(parse(SERVE, []).control) == "127.0.0.1:9999"
    monkeypatch.setenv("IMDS_SIMULATOR_CONTROL", "http://127.0.0.1:9999")
    assert parse(SERVE, []).control == DEFAULT_CONTROL
    assert parse(VERBS["state"].command, []).control == "http://127.0.0.1:9999"
    assert parse(VERBS["state"].command, ["--control", "127.0.0.1:1"]).control == "http://127.0.0.1:1"


def test_a_verb_has_variables_of_its_own(monkeypatch, call):
    for name, text in {"RECORD_FOR": "soon", "RECORD_OUTPUT": "f", "RECORD_FRO": "1", "SPEED": "fast"}.items():
        monkeypatch.setenv(f"IMDS_SIMULATOR_{name}", text)
    done = call("record")
    warning, problem = done.err.splitlines()
    assert done.code == 2 and problem.startswith("imds_simulator: IMDS_SIMULATOR_RECORD_FOR: 'soon' is not a duration")
    assert "RECORD_FRO:" in warning and "did you mean IMDS_SIMULATOR_RECORD_FOR?" in warning


@pytest.mark.parametrize("name", ["IMDS_SIMULATOR_SPEDE", "IMDS_SIMULATOR_EXEC_SPEED"])
def test_an_unknown_variable_is_a_warning(name, monkeypatch, call):
    for each in (name, "IMDS_SIMULATOR_RECORD_FOR", "IMDS_SIMULATOR_ENDPOINT"):
        monkeypatch.setenv(each, "1")
    done, hint = call("--list-faults"), "there is no such option (did you mean IMDS_SIMULATOR_SPEED?)"
    assert (done.code, done.err) == (0, f"imds_simulator: warning: {name}: {hint}\n")


# -- options that print, and libraries


def without(folder: Path, *modules: str) -> dict[str, str]:
    """Return variables with which Python finds none of the modules."""
    for module in modules:
        (folder / f"{module}.py").write_text(f"raise ModuleNotFoundError('no {module}', name='{module}')")
    return {"PYTHONPATH": f"{folder}:{simulator_process.PACKAGE_ROOT}"}


@pytest.mark.parametrize("option, text", PRINTING.items())
def test_printing_needs_neither_the_libraries_of_the_server_nor_modules_of_posix(option, text, tmp_path):
    done = run(option, **without(tmp_path, "aiohttp", "resource", "fcntl"))
    assert (done.returncode, done.stderr) == (0, "") and text in done.stdout


def test_verb_needs_click_only(tmp_path):
    done = run("state", "--control", "127.0.0.1:1", **without(tmp_path, "aiohttp", "yaml", "resource"))
    assert done.returncode == 1 and "127.0.0.1:1: Connection refused; check that the simulator runs" in done.stderr


@pytest.mark.parametrize(
    "library, arguments",
    [
        ("click", ["state"]),
        ("aiohttp", ["--quiet"]),
        ("yaml", ["--check", "terminate"]),
        ("yaml", ["exec", "--", "true"]),
    ],
)
def test_missing_library_is_one_line_and_exit_2(library, arguments, tmp_path):
    done = run(*arguments, **without(tmp_path, library))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"imds_simulator: {sys.executable}: there is no library {library}; install aiohttp, ")
    assert done.stderr.count("\n") == 1


# -- --check


def test_check_prints_every_problem_with_its_line(tmp_path, call):
    bad = tmp_path / "bad.yaml"
    bad.write_text("groups:\n  web:\n    vms:\n      vm1:\nevents:\n  - {type: Freez, resources: [vm2]}\n")
    problems = (
        f"{bad}:6: events[0].type: 'Freez' is not one of Freeze, Reboot, Redeploy, Preempt, Terminate, "
        "SpotRebalanceRecommendation (did you mean Freeze?)\n"
        f"{bad}:6: events[0].resources[0]: there is no VM vm2 (did you mean vm1?)\n"
    )
    assert call("--check", bad) == call("--scenario", bad) == (2, "", problems)


# -- output without a reader


def run_without_reader(*arguments: str, stream: str = "stdout", **more: str) -> tuple[int, str]:
    """Run a command whose stdout, or stderr, has no reader; return the exit code and the other stream."""
    reader, writer = os.pipe()
    os.close(reader)
    other = "stderr" if stream == "stdout" else "stdout"
    try:
        # buffered, as usual: then the error comes at the end of the process
        variables_ = {**simulator_process.environment(), "PYTHONUNBUFFERED": "", **more}
        streams = {"capture_output": False, stream: writer, other: subprocess.PIPE}
        done = simulator_process.run(*arguments, env=variables_, **streams)
    finally:
        os.close(writer)
    return done.returncode, getattr(done, other)


@pytest.mark.parametrize("option", ["--schema", "--list-faults", "--help"])
def test_printing_option_survives_a_reader_that_has_gone(option):
    assert run_without_reader(option) == (SIGPIPE, "")


def test_verb_survives_a_reader_that_has_gone_and_takes_effect(sim):
    control = {"IMDS_SIMULATOR_CONTROL": sim.control}
    arguments = ("schedule", "--name", "piped", "--type", "freeze", "--resources", "vm1")
    assert run_without_reader(*arguments, **control) == (SIGPIPE, "")
    assert sim.get("/events/piped")["type"] == "Freeze"
    assert run_without_reader("approve", "nothing", stream="stderr", **control) == (SIGPIPE, "")


def test_command_without_stdout_prints_nothing():
    done = simulator_process.run("--schema", preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


# -- verbs that send a request to a running simulator


@pytest.fixture
def verb(sim, call, monkeypatch):
    """Return a function that runs a verb and returns its answer, or its message if ``code`` is not 0."""
    monkeypatch.setenv("IMDS_SIMULATOR_CONTROL", sim.control)

    def run(line, code=0):
        done = call(*shlex.split(line))
        assert done.code == code, done.err
        return done.err if code else json.loads(done.out)

    return run


def test_verbs_for_events_use_the_control_api(verb):
    made = verb(
        "schedule --type Reboot --resources 'vm1, vm2' --notice 20m --duration 7 --name by-hand --hold on "
        "--started-for 1h --impact-for 3"
    )
    assert (made["name"], made["type"], made["resources"]) == ("by-hand", "Reboot", ["vm1", "vm2"])
    assert verb("approve by-hand")["approved_by"] == ["control-plane"]
    assert verb(f"approve {made['id']} --as other-tenants")["name"] == "by-hand"
    assert verb("approve by-hand --as arm")["approved_by"] == ["arm", "control-plane"]
    assert verb("change by-hand --description new")["description"] == "new"
    verb("advance 1s")
    assert verb("complete by-hand")["status"] == "Gone"
    assert "it has ended" in verb("cancel by-hand", code=1)
    assert verb("fail vm1 --type Redeploy")["status"] == "Started"
    assert verb("events")["events"] and verb("state")["vms"]
    assert verb("requests --vm vm1")["counts"] is not None
    assert verb("note vm1 'is ready' --event by-hand") is not None


def test_schedule_prints_warnings_of_the_control_api(sim, call):
    event = {"type": "Terminate", "resources": ["pool_0", "pool_3"], "notice": "20m"}
    warnings = sim.post("/events", event)["warnings"]
    assert [each.split(":")[0] for each in warnings] == ["notice", "resources"]
    assert sim.post("/events", {**event, "type": "Reboot"})["warnings"] == []
    options = ("--type", "Terminate", "--resources", "pool_0,pool_3", "--notice", "20m")
    done = call("schedule", *options, "--control", sim.control)
    assert done.code == 0 and json.loads(done.out)["warnings"] == warnings
    assert done.err.splitlines() == [f"imds_simulator: warning: {each}" for each in warnings]


def test_verbs_quote_names_in_paths(verb):
    verb("schedule --type Freeze --resources vm1 --name 'a/b?c#d %2F'")
    assert verb("cancel 'a/b?c#d %2F'")["name"] == "a/b?c#d %2F"
    assert "there is no fault 1/2" in verb("fault clear 1/2", code=1)


def test_verb_fault_clears_nothing_if_an_option_names_a_vm(verb):
    verb("fault inject gone --vm vm1")
    for options in ("--vm vm2", "--for 1m", "--set status=503"):
        verb(f"fault clear {options}", code=2)
    assert [each["kind"] for each in verb("fault list")["faults"]] == ["gone"]


def test_verbs_for_faults_knobs_and_groups_use_the_control_api(sim, verb):
    own = '--set status=418 --set body=123 --set \'headers={"X-A": "b=c"}\' --set retry_after=1.5m'
    fault = verb(f"fault inject status --vm vm1 --requests 1-2 --for 5m {own}")
    status, headers, body = send_request(sim.endpoints["vm1"])
    assert (status, body, headers["X-A"], headers["Retry-After"], fault["last"]) == (418, b"123", "b=c", "90", 2)
    assert "status: '4x' is not a whole number" in verb("fault inject status --set status=4x", code=1)
    verb("fault inject gone")
    assert [each["kind"] for each in verb("fault list")["faults"]] == ["status", "gone"]
    assert verb(f"fault clear {fault['number']}") == {"cleared": 1}
    assert send_request(sim.endpoints["vm1"]).status == 410
    assert "there is no fault" in verb(f"fault clear {fault['number']}", code=1)
    assert verb("fault clear") == {"cleared": 1}
    assert "hang" in verb("fault kinds")
    assert verb("knob etag=off enable_delay=3s")["etag"] is False
    assert verb("knob")["enable_delay"] == 3
    assert verb("knob etag enable_delay") == {"etag": False, "enable_delay": 3}
    assert "there is no knob etagg (did you mean etag?)" in verb("knob etagg", code=1)
    assert verb("incarnation web --to 9") == {"incarnation": [9]}
    verb("knob enable_delay=0")
    send_request(sim.endpoints["vm1"])
    assert verb("disable web")["scopes"] == ["web"]
