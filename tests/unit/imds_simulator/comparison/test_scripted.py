# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Every check finds a server that behaves otherwise, and agrees with one that follows the reference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from imds_simulator.comparison.registry import statements
from imds_simulator.comparison.results import Row, compare
from imds_simulator.comparison.verdict import Outcome
from imds_simulator.recording.recorder import Settings
from support.simulator.recordings import SettableClock, record
from support.simulator.scripted_imds import EVENT, Script, scripted_imds

Change = Callable[[Script], None]


SETTINGS_OF_REST = Settings(1800, 60, ("2020-07-01",), probe=True, probe_rate=True)


def verdicts(tmp_path: Path, change: Change, settings: Settings) -> dict[str, Row]:
    """Record a changed script and return the row of each statement."""
    clock = SettableClock()
    script = Script(clock)
    change(script)
    with scripted_imds(script) as endpoint:
        recording = record(tmp_path / "recording", endpoint, clock, settings)
    assert not recording.problems
    return {row.number: row for row in compare(recording, False)}


def nothing(_script: Script) -> None:
    """Change nothing."""


def status_of(name: str, status: int, body: Any = None) -> Change:
    def change(script: Script) -> None:
        script.probes[name] = (status, script.probes[name][1] if body is None else body)

    return change


def event(**members: Any) -> Change:
    return lambda script: script.add_event(**members)


def frames(*steps: tuple[float, int, dict[str, Any] | None]) -> Change:
    """Let EVENT appear with other members at each step; None: it is absent."""

    def change(script: Script) -> None:
        soon = script.date(960)
        script.frames = [
            (since, incarnation, [] if members is None else [{**EVENT, "NotBefore": soon, **members}])
            for since, incarnation, members in steps
        ]

    return change


def types_shown(script: Script) -> None:
    script.add_event(EventType="Terminate", notice=600)
    script.hidden_types = {}


def attribute(name: str, value: Any) -> Change:
    return lambda script: setattr(script, name, value)


def compute(**members: Any) -> Change:
    def change(script: Script) -> None:
        for name, value in members.items():
            if value is None:
                del script.instance["compute"][name]
            else:
                script.instance["compute"][name] = value

    return change


def header(name: str, value: str) -> Change:
    return lambda script: script.headers.update({name: value})


STARTED = {"EventStatus": "Started", "NotBefore": ""}
NEWEST = {"error": "x", "newest-versions": ["2025-04-07"]}
ALL_REFUSED = {poll: 404 for poll in range(1, 200)}
# statement -> a change of the script that contradicts it
CONTRADICTIONS: dict[str, Change] = {
    "1.1.1": attribute("statuses", ALL_REFUSED),
    "1.1.3": status_of("path-case", 404),
    "1.1.5": status_of("double-slash", 200),
    "1.1.6": status_of("format-json", 400),
    "1.1.7": status_of("duplicate-parameter", 200),
    "1.1.8": attribute("closes", True),
    "1.2.1": status_of("no-header", 200),
    "1.2.2": status_of("preview-no-header", 400),
    "1.2.3": status_of("header-case", 400),
    "1.2.4": status_of("header-false", 200),
    "1.2.5": status_of("forwarded", 403),
    "1.2.7": attribute("etag", False),
    "1.2.9": status_of("unknown-path-no-header", 404),
    "1.3.1": attribute("shown_members", ("Description",)),
    "1.3.2": types_shown,
    "1.3.3": status_of("version-2021-12-13", 200),
    "1.3.4": status_of("instance-events-version", 200),
    "1.3.5": status_of("latest-version", 200),
    "1.3.6": status_of("no-version", 400, {"error": "without a list"}),
    "1.3.8": status_of("versions", 400),
    "1.4.1": attribute("bodies", {13: b'{"Events":{}}'}),
    "1.4.2": attribute("spaces", True),
    "1.4.3": event(EventId=EVENT["EventId"].lower()),  # type: ignore[attr-defined]
    "1.4.4": event(EventStatus="Completed"),
    "1.4.5": event(EventType="Pause"),
    "1.4.6": event(ResourceType="Disk"),
    "1.4.7": event(EventSource="Operator"),
    "1.4.9": event(DurationInSeconds="5"),
    "1.4.10": event(Description=None),
    "1.4.14": header("Server", "nginx"),
    "1.4.15": compute(count=3),
    "1.6.1": status_of("no-header", 400, {"error": "Bad request"}),
    "1.6.2": status_of("no-version", 400, NEWEST),
    "1.6.3": status_of("forwarded", 403),
    "1.6.4": status_of("leaf-as-json", 200),
    "1.6.5": status_of("unknown-path", 400),
    "1.6.6": status_of("head", 200),
    "1.6.7": attribute("statuses", {poll: 410 for poll in range(14, 24)}),
    "1.6.8": attribute("too_many", {}),
    "1.6.13": status_of("root-version", 200),
    "1.7.1": attribute("limit", 100),
    "1.7.3": attribute("instance_limited", False),
    "1.8.1": attribute("delays", {1: 125.0}),
    "2.1 (1)": frames((0, 2, None), (60, 2, {})),
    "2.1 (2)": frames((0, 1, None), (60, 2, {}), (960, 2, STARTED), (1500, 3, None)),
    "2.1 (4a)": frames((0, 1, None), (20, 2, {**STARTED, "EventType": "Freeze"})),
    "2.1 (5)": frames((0, 1, None), (60, 2, {}), (960, 3, STARTED), (1500, 3, None)),
    "2.1 (6)": frames((0, 1, None), (60, 2, {}), (300, 3, STARTED), (600, 4, {})),
    "2.1 (7)": event(EventStatus="Canceled"),
    "2.2.1": frames((0, 1, None), (60, 2, {})),
    "2.2.8": event(EventType="Terminate", Resources=["vm1", "vm2"]),
    "2.3.1": event(NotBefore="2027-01-15T08:00:00Z"),
    "2.3.2": frames((0, 1, None), (60, 2, {}), (960, 3, {"EventStatus": "Started"})),
    "2.3.3": event(NotBefore="2027-01-15T08:00:00Z"),
    "2.3.7": event(NotBefore="Fr., 15 März 2027 08:00:00 GMT"),
    "2.4": event(EventType="Reboot", notice=300),
    "2.4.4": event(notice=10 * 86400),
    "2.5.1": frames((0, 1, None), (60, 1, {})),
    "2.5.2": frames((0, 0, None)),
    "3.2": attribute("underscore", False),
    "3.2.1": event(Resources=["host1"]),
    "3.3.1": compute(tags=None),
    "3.3.2": status_of("versions", 200, {"apiVersions": ["2021-02-01"]}),
    "3.3.3": status_of("unknown-element", 200),
    "3.3.5": compute(storageProfile={"resourceDisk": {"size": "16"}}),
    "3.3.7": compute(osType="Windows", osProfile={"disablePasswordAuthentication": "false"}),
    "3.3.8": compute(plan=""),
    "3.3.9": compute(aLaterOne=""),
    "3.3.10": compute(priority="High"),
    "3.3.11": compute(tagsList=[{"name": "a", "value": "b"}], tags="b:a"),
    "3.3.12": compute(host={"id": "/host"}, hostGroup={"id": "/group"}),
    "3.3.13": compute(customData="IyEvYmluL3No"),
    "3.3.14": compute(physicalZone="1"),
    "3.3.15": compute(storageProfile={"dataDisks": [{"lun": "0"}]}),
    "4.1.2": attribute("delays", {1: 125.0}),
    "4.1.5": event(EventType="Reboot", EventSource="User", notice=60),
    "5.5": event(EventType="Terminate", notice=3600),
    "5.6": event(EventType="Preempt", notice=600),
    "5.8": event(EventType="Terminate", EventSource="Autoscale"),
}
# statements that say what may occur: nothing contradicts them
NEVER = {
    *("1.4.8", "1.4.11", "1.4.13", "1.6.9", "1.8.4", "2.1 (3)", "2.1 (4)", "2.1 (4b)", "2.3.4", "2.3.5", "2.3.6"),
    *(
        "2.4.1",
        "2.4.2",
        "2.4.5",
        "2.4.6",
        "2.4.8",
        "2.5.3",
        "2.5.5",
        "2.5.6",
        "3.1.2",
        "3.2.4",
        "3.3.4",
        "4.1.1",
        "4.1.3",
        "4.1.7",
    ),
}
OLD_VERSIONS = ("2017-03-01", "2019-01-01", "2020-07-01")
# statement -> settings other than those of the rest
SETTINGS = {
    "1.3.1": SETTINGS_OF_REST._replace(versions=OLD_VERSIONS),
    "1.3.2": SETTINGS_OF_REST._replace(versions=OLD_VERSIONS),
    "2.3.3": SETTINGS_OF_REST._replace(versions=OLD_VERSIONS),
    "3.2": SETTINGS_OF_REST._replace(versions=OLD_VERSIONS),
    "2.1 (4a)": SETTINGS_OF_REST._replace(length=120, interval=5),
}


def test_every_statement_has_a_contradiction_or_none_is_possible() -> None:
    numbers = {each.number for each in statements()}
    assert set(CONTRADICTIONS) | NEVER == numbers and not set(CONTRADICTIONS) & NEVER


@pytest.mark.parametrize("number", CONTRADICTIONS)
def test_other_behaviour_contradicts_the_statement(tmp_path: Path, number: str) -> None:
    row = verdicts(tmp_path, CONTRADICTIONS[number], SETTINGS.get(number, SETTINGS_OF_REST))[number]
    assert row.outcome is Outcome.CONTRADICTS
    written = (tmp_path / "recording").read_text(encoding="utf-8").splitlines()
    assert row.lines and all(json.loads(written[line - 1])["kind"] == "answer" for line in row.lines)


def test_behaviour_of_the_reference_contradicts_nothing(tmp_path: Path) -> None:
    rows = verdicts(tmp_path, nothing, SETTINGS_OF_REST._replace(versions=OLD_VERSIONS))
    assert [number for number, row in rows.items() if row.outcome is Outcome.CONTRADICTS] == []
    confirmed = {number for number, row in rows.items() if row.outcome is Outcome.CONFIRMS}
    # the others need an event of another kind, or a service that fails
    assert len(confirmed) > 60


def test_slow_answers_confirm_what_is_said_about_latency(tmp_path: Path) -> None:
    rows = verdicts(tmp_path, attribute("delays", {1: 60.0, 14: 3.0}), SETTINGS_OF_REST)
    assert {rows[number].outcome for number in ("1.8.1", "1.8.4", "4.1.1", "4.1.2")} == {Outcome.CONFIRMS}


def test_failing_service_leaves_statements_about_requests_open(tmp_path: Path) -> None:
    def change(script: Script) -> None:
        script.probes = dict.fromkeys(script.probes, (503, {"error": "unavailable"}))

    rows = verdicts(tmp_path, change, SETTINGS_OF_REST)
    assert {rows[number].outcome for number in ("1.1.3", "1.2.1", "1.3.8", "1.6.5", "3.3.2")} == {Outcome.OPEN}


OLD_WORDING = {"error": "Bad request. api-version was not specified in the request."}
ESCAPED = b'{"DocumentIncarnation":1,"Events":[{"EventId":"A","Description":"a\\u0027s \\u003c b"}]}'
# statements -> a change of the script that the reference says is possible
POSSIBLE: dict[str, Change] = {
    "1.3.6,1.6.2": status_of("no-version", 400, OLD_WORDING),
    "1.4.2": attribute("bodies", {13: ESCAPED}),
    "1.6.3": status_of("forwarded", 400, "no JSON"),
    "1.6.7": attribute("statuses", {**dict.fromkeys(range(14, 22), 404), 22: 410}),
    "2.1 (1),2.1 (2),2.1 (5)": frames((0, 9, None), (60, 8, {}), (960, 7, STARTED), (1500, 6, None)),
    "2.1 (6)": frames((0, 1, None), (60, 2, {}), (300, 3, None), (420, 4, {})),
    "2.3.1,2.3.7": event(NotBefore="soon"),
    "2.4,2.4.2": event(notice=768),
    "2.4,5.6": event(EventType="Preempt", notice=8),
    "2.4.5,2.4.6": event(EventType="Reboot", lasts=120),
    "2.5.1": frames((0, 1, None), (60, 2, {}), (300, 2, {"EventStatus": "SCHEDULED"})),
    "3.2.1": compute(name="set_7", vmScaleSetName="set", resourceId="/virtualMachines/set_7"),
    "3.3.14": compute(physicalZone="useast-AZ01"),
}


@pytest.mark.parametrize("numbers", POSSIBLE)
def test_possible_behaviour_contradicts_nothing(tmp_path: Path, numbers: str) -> None:
    settings = Settings(120, 5, ("2020-07-01",)) if numbers.startswith("2.4,") else SETTINGS_OF_REST
    rows = verdicts(tmp_path, POSSIBLE[numbers], settings)
    assert [each for each in numbers.split(",") if rows[each].outcome is Outcome.CONTRADICTS] == []
