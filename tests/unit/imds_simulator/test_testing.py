# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The simulator for tests of other programs, and its fixture for pytest."""

from __future__ import annotations

import socket
import subprocess
import sys
from datetime import UTC, datetime

import pytest
import yaml

from imds_simulator.server.listeners import CannotListen
from imds_simulator.testing import ControlError, ScenarioError, Simulator
from support import simulator_process
from support.simulator.raw_http import approve, send_request

pytest_plugins = ["pytester"]
WITH_FIXTURE = ("-p", "imds_simulator.pytest_plugin", "--strict-markers")
TEXT = """
groups: {web: {vms: {first: , second: }}}
events: [{name: patch, type: Freeze, resources: [first], at: 2126-01-01T00:00:00Z}]
"""
OF_FIXTURE = """
import pytest

pytestmark = pytest.mark.imds_simulator("live-migration")

def test_of_the_module(imds_simulator):
    imds_simulator.advance(10)
    assert imds_simulator.get("/events/migration")["status"] == "Scheduled"

@pytest.mark.imds_simulator({"groups": {"web": {"vms": {"other": {}}}}}, clock="real")
def test_of_its_own(imds_simulator):
    assert list(imds_simulator.endpoints) == ["other"] and not imds_simulator.get("/state")["manual"]
"""
WRONG_MARKERS = """
import pytest

@pytest.mark.imds_simulator(clok="real")
def test_of_an_unknown_argument(imds_simulator):
    pass

@pytest.mark.imds_simulator("user-rebot")
def test_of_an_unknown_scenario(imds_simulator):
    pass

@pytest.mark.imds_simulator("user-reboot", "real")
def test_of_two_scenarios(imds_simulator):
    pass
"""
# what Windows lacks, and what is not a library of the simulator; the libraries use some of it on POSIX
ELSEWHERE = """
import asyncio, subprocess, sys, tempfile
import aiohttp.web, click, yaml
sys.modules.update(dict.fromkeys(["fcntl", "grp", "pwd", "pytest", "resource", "termios"]))
from imds_simulator.testing import Simulator
with Simulator() as imds:
    print(imds.schedule(type="Freeze", resources=["vm1"])["status"])
"""
# the command line elsewhere; the program has imported all others that need it
NOT_ON_LINUX = """
import asyncio, subprocess, sys, tempfile
import aiohttp.web, click, yaml
sys.modules["fcntl"] = None
sys.platform = "darwin"
from imds_simulator.__main__ import main
sys.exit(main())
"""


def test_scenario_is_read_from_each_form(tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text(TEXT)
    with_colon = tmp_path / "mine: two.yaml"
    with_colon.write_text(TEXT)
    for scenario in (TEXT, file, str(file), with_colon, yaml.safe_load(TEXT)):
        with Simulator(scenario) as imds:
            assert list(imds.endpoints) == ["first", "second"] and imds.endpoint == imds.endpoints["first"]
            assert imds.get("/events/patch")["appears_at"] == "2126-01-01T00:00:00.000Z"


def test_event_is_approved_and_starts_when_the_test_advances_the_clock():
    with Simulator() as imds, Simulator("user-reboot") as other:
        assert (list(imds.endpoints), len(other.get("/events")["events"])) == (["vm1"], 1)
        event = imds.schedule(type="Reboot", resources=["vm1"], name="patch", notice="15m")
        assert approve(imds.endpoint, event["id"]).status == 200
        assert imds.get("/events/patch")["approved_by"] == ["vm1"]
        last = imds.log()[-1]["number"]
        imds.advance("2s")
        assert "started" in [line["what"] for line in imds.log(after=last)]
        assert [line["by"] for line in imds.log(what="approved")] == ["vm1"]
        assert [(each["vm"], each["method"]) for each in imds.requests(vm="vm1")] == [("vm1", "POST")]
        assert imds.post("/faults", {"kind": "gone"})["active"] and send_request(imds.endpoint).status == 410
        assert imds.delete("/faults") == {"cleared": 1}


def test_warning_of_a_scenario_is_one_of_the_test():
    event = {"type": "Terminate", "resources": ["vm1"], "notice": "1m"}
    with pytest.warns(UserWarning, match=r"^scenario:1: events\[0\]\.notice: warning: ") as warned:
        Simulator({"groups": {"web": {"vms": ["vm1"]}}, "events": [event]})
    assert warned[0].filename == __file__


def test_time_of_python_is_a_time_of_an_event():
    at = datetime(2126, 1, 1, tzinfo=UTC)
    event = {"name": "patch", "type": "Freeze", "resources": ["vm1"], "at": at}
    with Simulator({"groups": {"web": {"vms": ["vm1"]}}, "events": [event]}) as imds:
        other = imds.schedule(type="Freeze", resources=["vm1"], at=at)
        assert other["appears_at"] == imds.get("/events/patch")["appears_at"] == "2126-01-01T00:00:00.000Z"


def test_use_outside_of_its_block_is_refused_in_words():
    simulator = Simulator()
    for use in (lambda: simulator.endpoint, lambda: simulator.endpoints, simulator.log):
        with pytest.raises(RuntimeError, match="does not serve yet; write `with Simulator"):
            use()
    with simulator:
        with pytest.raises(ValueError, match="path: 'events' does not begin with /"):
            simulator.get("events")
        with pytest.raises(RuntimeError, match="one block of with only"):
            simulator.__enter__()
    with pytest.raises(RuntimeError, match="one block of with only"):
        simulator.__enter__()


def test_refused_request_names_itself_and_the_reason():
    with Simulator() as imds:
        with pytest.raises(ControlError, match=r"^POST /events: resources\[0\]: there is no VM vm9 ") as refused:
            imds.schedule(type="Reboot", resources=["vm9"])
        assert refused.value.status == 400
    with pytest.raises(ControlError, match="^GET /state: no control API at "):
        imds.get("/state")


def test_wrong_arguments_and_an_address_in_use_are_errors_of_the_test():
    with pytest.raises(ScenarioError, match=r"(?m)^scenario:1: groups\.web\.vmz: "):
        Simulator({"groups": {"web": {"vmz": {}}}})
    with pytest.raises(ScenarioError, match="user-rebot: no such file.*did you mean user-reboot"):
        Simulator("user-rebot")
    for scenario in (5, "", b"user-reboot"):
        with pytest.raises(ScenarioError, match=f"^scenario: {scenario!r} is not a path, a name, "):
            Simulator(scenario)
    with pytest.raises(ValueError, match="clock: 'none'"):
        Simulator(clock="none")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CannotListen, match=listen):
            Simulator({"groups": {"web": {"vms": {"vm1": {"listen": listen}}}}}).__enter__()


def test_fixture_has_the_arguments_of_the_nearest_marker(pytester):
    pytester.makepyfile(OF_FIXTURE)
    pytester.runpytest(*WITH_FIXTURE).assert_outcomes(passed=2)


def test_wrong_marker_is_an_error_of_one_line(pytester):
    pytester.makepyfile(WRONG_MARKERS)
    ran = pytester.runpytest(*WITH_FIXTURE)
    ran.assert_outcomes(errors=3)
    usage = "; write imds_simulator(scenario=None, *, clock='manual')"
    named, misspelt, positional = [line for line in ran.outlines if line.startswith("marker imds_simulator: ")]
    assert "'clok'" in named and named.endswith(usage) and "mean user-reboot" in misspelt
    assert "too many positional arguments" in positional and positional.endswith(usage)
    assert not any(word in str(ran.stdout) for word in ("testing.py", "pytest_plugin.py", "Error"))


def test_it_starts_without_pytest_and_without_modules_that_windows_lacks():
    command = [sys.executable, "-c", ELSEWHERE]
    assert subprocess.check_output(command, env=simulator_process.environment()) == b"Scheduled\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["record", "--output", "new"], "record: not on darwin; use Linux, or WSL on Windows"),
        (["join", "--vm", "vm1", "--", "true"], "join: not on darwin; use Linux, or WSL on Windows"),
        (
            ["exec", "--quiet", "--imds-address", "--", "true"],
            "169.254.169.254: only Linux has network namespaces; run exec without --imds-address",
        ),
        # a recording can be replayed everywhere
        (["replay", "new"], "new: No such file or directory; name a file that 'record' wrote"),
    ],
)
def test_verb_that_needs_linux_says_so(words, problem, tmp_path):
    command = [sys.executable, "-c", NOT_ON_LINUX, *words]
    environment = simulator_process.environment()
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"imds_simulator: {problem}")
    assert not any(tmp_path.iterdir())
