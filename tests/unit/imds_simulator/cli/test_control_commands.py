# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Verbs that send a request to a running simulator."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from urllib.parse import urlsplit

import pytest

from imds_simulator.__main__ import main
from support.simulator.raw_http import send_request


@pytest.fixture
def verb(frozen_simulator, monkeypatch):
    """Return a function that runs a verb and returns its answer, or its message if ``code`` is not 0."""
    monkeypatch.setenv("IMDS_SIMULATOR_CONTROL", frozen_simulator.control)

    def run(line, code=0):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            assert main(shlex.split(line)) == code, err.getvalue()
        return err.getvalue() if code else json.loads(out.getvalue())

    return run


def test_verbs_for_events_use_the_control_api(verb):
    made = verb(
        "schedule --type Reboot --resources vm1,vm2 --notice 20m --duration 7 --name by-hand --hold "
        "--started-for 1h --json '{\"impact_for\": 3}'"
    )
    assert (made["name"], made["type"], made["resources"]) == ("by-hand", "Reboot", ["vm1", "vm2"])
    assert verb("approve by-hand")["approved_by"] == ["control-plane"]
    assert verb(f"approve {made['id']} --as other-tenants")["name"] == "by-hand"
    assert verb("change by-hand --description new")["description"] == "new"
    verb("advance 1s")
    assert verb("complete by-hand")["status"] == "Gone"
    assert "it has ended" in verb("cancel by-hand", code=1)
    assert verb("fail vm1 --type Redeploy")["status"] == "Started"
    assert verb("events")["events"] and verb("state")["vms"] and verb("log --what started")["lines"]
    assert verb("requests --vm vm1")["counts"] is not None
    assert verb("note vm1 'is ready' --event by-hand") is not None


def test_schedule_prints_warnings_of_the_control_api(frozen_simulator, verb, capsys):
    event = {"type": "Terminate", "resources": ["pool_0", "pool_3"], "notice": "20m"}
    warnings = frozen_simulator.post("/events", event)["warnings"]
    assert [each.split(":")[0] for each in warnings] == ["notice", "resources"]
    assert frozen_simulator.post("/events", {**event, "resources": ["pool_0"], "notice": "15m"})["warnings"] == []
    assert frozen_simulator.post("/events", {**event, "type": "Reboot"})["warnings"] == []
    assert main(["schedule", "--type", "Terminate", "--resources", "pool_0,pool_3", "--notice", "20m"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["warnings"] == warnings
    assert err.splitlines() == [f"imds_simulator: warning: {each}" for each in warnings]


def test_verbs_accept_host_and_port_as_control(frozen_simulator, verb, monkeypatch):
    address = urlsplit(frozen_simulator.control).netloc
    monkeypatch.delenv("IMDS_SIMULATOR_CONTROL")
    assert verb(f"knob --control {address}") == frozen_simulator.get("/knobs")
    monkeypatch.setenv("IMDS_SIMULATOR_CONTROL", address + "/")
    assert verb("knob") == frozen_simulator.get("/knobs")


def test_verbs_quote_names_in_paths(verb):
    verb("schedule --type Freeze --resources vm1 --name 'a/b?c#d %2F'")
    assert verb("cancel 'a/b?c#d %2F'")["name"] == "a/b?c#d %2F"
    assert "there is no fault 1/2" in verb("fault clear 1/2", code=1)


def test_verb_fault_parses_option_types(frozen_simulator, verb):
    verb('fault inject status --set status=418 --set body=123 --set \'headers={"X-A": "b=c"}\' --set retry_after=1.5m')
    answer = send_request(frozen_simulator.endpoints["vm1"])
    headers = answer.headers
    assert (answer.status, answer.body, headers["X-A"], headers["Retry-After"]) == (418, b"123", "b=c", "90")
    assert "status: '4x' is not a whole number" in verb("fault inject status --set status=4x", code=1)


def test_verb_fault_clears_nothing_if_an_option_names_a_vm(verb):
    verb("fault inject gone --vm vm1")
    for options in ("--vm vm2", "--for 1m", "--set status=503"):
        with pytest.raises(SystemExit, match="2"):
            verb(f"fault clear {options}")
    assert [each["kind"] for each in verb("fault list")["faults"]] == ["gone"]


def test_verbs_for_faults_knobs_and_groups_use_the_control_api(frozen_simulator, verb):
    fault = verb("fault inject status --vm vm1 --requests 1-2 --for 5m --set status=418 --set body=tea")
    assert (send_request(frozen_simulator.endpoints["vm1"]).status, fault["last"]) == (418, 2)
    assert [each["kind"] for each in verb("fault list")["faults"]] == ["status"]
    assert verb(f"fault clear {fault['number']}") == {"cleared": 1} and verb("fault clear") == {"cleared": 0}
    assert "hang" in verb("fault kinds")
    assert verb("knob etag=off enable_delay=3s")["etag"] is False
    assert verb("knob")["enable_delay"] == 3
    assert verb("incarnation web --to 9") == {"incarnation": [9]}
    verb("knob enable_delay=0")
    send_request(frozen_simulator.endpoints["vm1"])
    assert verb("disable web")["scopes"] == ["web"]


def test_verb_without_a_simulator_is_exit_1(verb):
    assert "check that the simulator runs" in verb("state --control http://127.0.0.1:9", code=1)
