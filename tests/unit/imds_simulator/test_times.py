# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Durations, and absolute times in scenarios and in the control API."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from imds_simulator.scenario.files import default_scenario
from imds_simulator.scenario.plans import EventPlan
from imds_simulator.server.clock import Clock
from imds_simulator.server.engine import Engine
from imds_simulator.testing import ControlError, Simulator
from imds_simulator.times import Moment, duration_text, iso, parse_duration, parse_moment, parse_signed_duration
from support.simulator.raw_http import send_request

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC).timestamp()
GROUPS = "groups: {web: {vms: {vm1: {}, vm2: {}}}}\n"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(5, 5), (0.5, 0.5), ("90", 90), ("250ms", 0.25), (" 3M ", 180), ("5d", 432000), ("1h30m", 5400)],
)
def test_parse_duration_returns_seconds(text: Any, seconds: float) -> None:
    assert parse_duration(text) == parse_signed_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "m", "5 m", "1e3", "5w", "--5", "-", None, True, [], "9999999d", "-9999999d", 10**400, -(10**400), math.nan],
)
def test_parse_duration_of_other_text_is_an_error(text: Any) -> None:
    for parse_text in (parse_duration, parse_signed_duration):
        with pytest.raises(ValueError):
            parse_text(text)


@pytest.mark.parametrize(("text", "seconds"), [("-20m", -1200), (-1.5, -1.5)])
def test_only_a_signed_duration_is_negative(text: Any, seconds: float) -> None:
    assert parse_signed_duration(text) == seconds
    with pytest.raises(ValueError):
        parse_duration(text)


@pytest.mark.parametrize("text", ["0s", "30s", "4m59s", "1h", "5d", "1d2h3m4.5s"])
def test_duration_text_is_what_parse_duration_reads(text: str) -> None:
    assert duration_text(parse_duration(text)) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2030-01-31T12:00:00Z", 0),
        ("2030-01-31t12:00:00.000z", 0),
        ("2030-01-31T13:00:00+01:00", 0),
        ("2030-01-31 12:00Z", 0),
        ("2030-01-31T13:00:00+0100", 0),
        ("2030-01-31T07:00:00-05", 0),
        # a fraction has any number of digits
        ("2030-01-31T12:00:00.5Z", 0.5),
        ("2030-01-31T12:00:00.5000000Z", 0.5),
        ("2030-01-31T12:00:00,500000000Z", 0.5),
    ],
)
def test_iso_8601_with_a_zone_is_read(text: str, seconds: float) -> None:
    assert parse_moment(text) == Moment(NOON + seconds)


def test_events_faults_and_incarnations_happen_at_their_times() -> None:
    """At any speed, because these are times of the simulator's clock; ``for`` is simulated time."""
    noon = int(time.time()) // 60 * 60 + 86400
    zone = timezone(timedelta(hours=1))
    at, earlier = (datetime.fromtimestamp(each, zone).isoformat() for each in (noon, noon - 3600))
    scenario = {
        "speed": 10,
        "groups": {"web": {"vms": {"vm1": {}, "vm2": {}}}},
        "events": [{"name": "pause", "type": "Freeze", "resources": ["vm1"], "at": at}],
        "faults": [{"kind": "gone", "from": earlier, "for": "10m"}],
        "incarnations": [{"group": "web", "add": 7, "at": at}],
    }
    with Simulator(scenario) as sim:
        assert sim.get("/events/pause")["appears_at"] == iso(noon)
        (fault,) = sim.get("/faults")["faults"]
        assert (fault["from"], fault["to"]) == (iso(noon - 3600), iso(noon - 3540))
        sim.advance((noon - sim.get("/state")["unix"]) * 10 - 10)
        assert sim.get("/events/pause")["status"] == "Planned"
        sim.advance(10)
        assert sim.get("/events/pause")["status"] == "Scheduled"
        assert [each["what"] for each in sim.get("/log")["lines"] if each["what"] == "incarnation"] == ["incarnation"]


def test_the_control_api_takes_a_time_and_refuses_one_in_the_past() -> None:
    with Simulator() as sim:
        now = sim.get("/state")["unix"]

        def schedule(seconds: float, **more: Any) -> Any:
            moment = datetime.fromtimestamp(now + seconds, UTC).isoformat()
            return sim.post("/events", {"type": "Freeze", "resources": ["vm1"], "at": moment, **more})

        assert schedule(90)["status"] == "Planned"
        # the caller's clock may show whole minutes
        assert schedule(-59)["status"] == "Scheduled"
        for seconds, more in ((-61, {}), (90, {"after": "control1"})):
            with pytest.raises(ControlError) as refused:
                schedule(seconds, **more)
            assert refused.value.status == 400
            assert refused.value.error.startswith("at: ")


@pytest.mark.parametrize("style", ["rfc1123", "iso"])
def test_a_time_after_the_year_9999_is_shown_as_its_end(style: str) -> None:
    # the lowest speed: a simulated second takes eleven days
    with Simulator(f"speed: 1.0e-6\nknobs: {{not_before_format: {style}}}\n{GROUPS}") as sim:
        made = sim.schedule(type="Freeze", resources=["vm1"], notice="36500d", name="late")
        assert made["not_before"] == "9999-12-31T23:59:59.000Z"
        (event,) = send_request(sim.endpoint).json["Events"]
        assert event["NotBefore"] == {"rfc1123": "Fri, 31 Dec 9999 23:59:59 GMT", "iso": "9999-12-31T23:59:59Z"}[style]
        assert sim.get("/state")["events"][0]["not_before"] == made["not_before"]
        sim.advance("36500d")
        sim.advance(1)
        assert sim.get("/events/late")["status"] == "Started"


def test_service_and_events_go_on_when_the_system_clock_is_set_back() -> None:
    real = NOON
    engine = Engine(default_scenario(), Clock(lambda: real), lambda _line: None)
    scope = engine.register_request(engine.world.vms["vm1"], engine.settle())
    real -= 3600
    now = engine.settle()
    assert now == NOON and engine.world.is_enabled(scope, now)
    event, _occurrences = engine.simulation.schedule(EventPlan("e", "Freeze", ("vm1",)), now)
    assert event.not_before == now + 900
    engine.simulation.approve([event], "vm1", now)
    real += 1
    engine.settle()
    assert event.status == "Started"
