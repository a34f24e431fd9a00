# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Recordings of the simulator confirm every statement that it can show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from imds_simulator.comparison.registry import statements
from imds_simulator.comparison.results import compare
from imds_simulator.comparison.verdict import Outcome
from imds_simulator.recording.recorder import Settings
from support.simulator.in_thread import simulator_in_thread
from support.simulator.recordings import SimulatorClock, record

VERSIONS = ("2017-03-01", "2019-01-01", "2020-07-01")


class Case(NamedTuple):
    """A recording: scenario, settings, and the statements that it confirms and contradicts."""

    scenario: str | Mapping[str, Any]
    confirms: str
    length: float = 1600
    interval: float = 40
    contradicts: str = ""
    knobs: Mapping[str, str] = MappingProxyType({})
    versions: tuple[str, ...] = VERSIONS[-1:]


def group(instance: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    vms = {"vm1": {"instance": {"compute": instance}} if instance else {}, "vm2": {}}
    return {"groups": {"web": {"kind": "availability_set", "vms": vms, **members}}}


DISK = {"lun": "0", "diffDiskSettings": {"option": ""}, "encryptionSettings": {"enabled": ""}, "osType": ""}
DETAILS = {
    "osType": "Windows",
    "osProfile": {"disablePasswordAuthentication": ""},
    "tags": "a:b;c:d",
    "tagsList": [{"name": "a", "value": "b"}, {"name": "c", "value": "d"}],
    "physicalZone": "westeurope-az1",
    "storageProfile": {"dataDisks": [DISK]},
}
FREEZE = {"type": "Freeze", "resources": ["vm1"]}
ODD = {
    **group({}),
    "knobs": {"started_not_before": "kept"},
    "events": [
        {**FREEZE, "at": "30s", "extra": {"EventSource": "platform", "Resources": ["VM1"]}},
        {**FREEZE, "at": "30s", "not_before": "soon"},
        {"type": "Reboot", "resources": ["vm1"], "at": "30s", "starts": "hardware_failure"},
    ],
}
FAILING = {
    **group({}),
    "faults": [
        {"kind": "gone", "from": "20s", "for": "60s"},
        {"kind": "status", "status": 503, "from": "200s", "for": "60s"},
        {"kind": "status", "status": 429, "from": "400s", "for": "60s"},
    ],
}
CASES = {
    "live-migration": Case(
        "live-migration",
        "1.1.1 1.1.3 1.1.5 1.1.6 1.1.7 1.1.8 1.2.1 1.2.2 1.2.3 1.2.4 1.2.5 1.2.9 1.3.1 1.3.3 1.3.4 1.3.5 1.3.6 1.3.8 "
        "1.4.1 1.4.2 1.4.3 1.4.4 1.4.5 1.4.6 1.4.7 1.4.9 1.4.14 1.4.15 1.6.1 1.6.2 1.6.3 1.6.4 1.6.5 1.6.6 1.6.13 "
        "2.1(1) 2.1(2) 2.1(5) 2.1(6) 2.1(7) 2.2.1 2.3.1 2.3.2 2.3.3 2.3.7 2.4 2.4.1 2.4.2 2.4.5 2.4.6 2.5.1 2.5.2 3.2 "
        "3.2.1 3.3.1 3.3.2 3.3.3 3.3.5 3.3.8 3.3.9 3.3.10 3.3.12 3.3.13",
        versions=VERSIONS,
    ),
    "user-reboot": Case("user-reboot", "2.4.8 4.1.5"),
    "spot-preempt": Case("spot-preempt", "1.3.2 1.4.10 5.6", 100, 10, versions=VERSIONS),
    "spot-rebalance": Case("spot-rebalance", "1.4.10", 2500, 10),
    "terminate": Case("terminate", "1.3.2 1.4.11 2.2.8 2.5.3 3.1.2 5.5", 400, versions=VERSIONS),
    "cancelled-maintenance": Case("cancelled-maintenance", "2.1(3)"),
    "predicted-failure": Case("predicted-failure", "2.4.4", 200),
    "moved-deadline": Case("moved-deadline", "2.3.6"),
    "hardware-failure": Case("hardware-failure", "2.1(4) 2.1(4a) 3.1.2", 200, 5),
    "automatic-approval": Case("automatic-approval", "2.1(4b)", 200, 5),
    "jumping-incarnation": Case("jumping-incarnation", "2.5.6", interval=20, contradicts="2.5.2"),
    "officially-impossible": Case("officially-impossible", "2.4.1", contradicts="2.1(6) 2.4"),
    "odd": Case(ODD, "1.4.8 2.3.4 2.3.5 3.2.4", 120, 5, contradicts="2.3.2"),
    "details": Case(group(DETAILS), "1.2.7 3.3.7 3.3.11 3.3.14 3.3.15", 60),
    "no-name": Case(group({"name": ""}), "3.3.4", 60),
    "failing": Case(FAILING, "1.6.7 1.6.8 1.6.9", 800),
    "enabling": Case(
        group({}), "1.4.13 4.1.1 4.1.2", 200, knobs={"enable_delay": "60s", "empty_body_until_enabled": "on"}
    ),
}
CANCELLED = {**group({}), "events": [{**FREEZE, "at": "5s", "cancel_after": "5s"}]}
# shown by test_scripted.py: the simulator counts requests and waits in real time
SCRIPTED = {"1.7.1", "1.7.3", "1.8.1", "1.8.4"}
AFTER_A_DAY = {"2.5.5", "4.1.3", "4.1.7"}
# a recording shows EventSource; the cause is known to the user only
NEVER = {"5.8"}


def numbers(text: str) -> set[str]:
    return {each.replace("(", " (") for each in text.split()}


def test_every_statement_is_confirmed_by_a_recording() -> None:
    confirmed = {number for case in CASES.values() for number in numbers(case.confirms)}
    assert confirmed | SCRIPTED | AFTER_A_DAY | NEVER == {each.number for each in statements()}


@pytest.mark.parametrize("name", CASES)
def test_recording_of_the_simulator_confirms(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    with simulator_in_thread(case.scenario, {"rate_limit": "off", **case.knobs}) as simulator:
        recording = record(
            tmp_path / "recording",
            next(iter(simulator.endpoints.values())),
            SimulatorClock(simulator),
            Settings(case.length, case.interval, case.versions, probe=True),
        )
    rows = compare(recording, False)
    assert recording.problems == ()
    assert numbers(case.confirms) <= {row.number for row in rows if row.outcome is Outcome.CONFIRMS}
    assert {row.number for row in rows if row.outcome is Outcome.CONTRADICTS} == numbers(case.contradicts)


def test_recording_that_is_continued_after_a_day_shows_a_new_start(tmp_path: Path) -> None:
    with simulator_in_thread(CANCELLED, {"rate_limit": "off"}) as simulator:
        clock, endpoint = SimulatorClock(simulator), simulator.endpoints["vm1"]
        file, settings = tmp_path / "recording", Settings(30, 10, VERSIONS[-1:])
        record(file, endpoint, clock, settings)
        clock.sleep(25 * 3600)
        recording = record(file, endpoint, clock, settings)
    rows = {row.number: row for row in compare(recording, False)}
    assert {rows[number].outcome for number in AFTER_A_DAY} == {Outcome.CONFIRMS}
