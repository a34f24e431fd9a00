# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A call of the beacon holds the minion's loop no longer than docs/bounds.md says, whatever IMDS does."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azure_events_watch import watchers
from support import simulator_process
from support.repository import REPOSITORY
from support.salt.azure import Azure
from support.salt.loaded import Beacons, Minion, failing

BOUNDS = (REPOSITORY / "docs" / "bounds.md").read_text(encoding="utf-8")
(STATED,) = re.findall(r"never holds the minion's loop longer than (\d+\.?\d*) seconds", BOUNDS)
BOUND = float(STATED)
# who waited for an answer would take at least PATIENT seconds, and a machine that has much else to
# do may take a multiple of BOUND for what is done at once
PATIENT, MUCH = 20, 10 * BOUND

ILLNESSES: list[tuple[str, dict[str, Any]]] = [
    ("refuse", {}),
    ("reset", {}),
    ("hang", {}),
    ("trickle", {}),
    ("trickle-header", {}),
    ("server-error", {}),
    ("oversized", {}),
]


def test_what_the_guide_states_is_ten_times_what_is_waited() -> None:
    assert 10 * watchers._POLL_TIMEOUT <= BOUND


@pytest.mark.parametrize(("kind", "options"), ILLNESSES, ids=[kind for kind, _options in ILLNESSES])
def test_sick_imds_holds_nobody(
    azure: Azure, watch: Callable[..., Beacons], kind: str, options: dict[str, Any]
) -> None:
    with failing(azure, kind, **options):
        beacons = watch(timeout=PATIENT, first_timeout=PATIENT)
        assert beacons.for_seconds(2) == []
    assert beacons.slowest < MUCH


def test_no_imds_at_all_holds_nobody(tmp_path: Path, watch: Callable[..., Beacons]) -> None:
    beacons = watch(on=Minion(tmp_path, "http://127.0.0.1:9"))
    assert beacons.for_seconds(2) == []
    assert beacons.slowest < MUCH


def test_first_answer_that_takes_long_holds_nobody_and_is_told(tmp_path: Path, watch: Callable[..., Beacons]) -> None:
    # a clock that runs, as a delay counts by the simulator's clock
    with simulator_process.start(args=["--vm", "vm1"]) as imds:
        imds.post("/events", {"type": "Reboot", "resources": ["vm1"]})
        imds.post("/faults", {"kind": "slow-first-answer", "delay": 1.5 * MUCH})
        beacons = watch(on=Minion(tmp_path, imds.endpoints["vm1"]), timeout=PATIENT, first_timeout=10 * PATIENT)
        began = time.monotonic()
        beacons.tick_until(bool)
        assert time.monotonic() - began > MUCH
    assert beacons.slowest < MUCH


def test_healthy_imds_with_hundreds_of_events_holds_nobody(azure: Azure, watch: Callable[..., Beacons]) -> None:
    for _turn in range(150):
        azure.announce("vm1")
    beacons = watch()
    fired: list[dict[str, Any]] = []
    sizes = []
    while len(fired) < 150:
        events = beacons.tick()
        sizes.append(len(events))
        fired += events
        time.sleep(0.05)
    assert max(sizes) <= 100
    assert len({event["data"]["event_id"] for event in fired}) == 150
    assert beacons.slowest < MUCH


def test_close_holds_nobody(azure: Azure, watch: Callable[..., Beacons]) -> None:
    with failing(azure, "hang"):
        beacons = watch(timeout=PATIENT, first_timeout=PATIENT)
        beacons.for_seconds(0.5)
        began = time.perf_counter()
        beacons.close()
        assert time.perf_counter() - began < MUCH
