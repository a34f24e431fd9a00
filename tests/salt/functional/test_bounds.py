# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A call of the beacon blocks the minion's loop no longer than docs/bounds.md states."""

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
from support.salt.azure import Azure, failing
from support.salt.loaded import Beacons, Minion

BOUNDS = (REPOSITORY / "docs" / "bounds.md").read_text(encoding="utf-8")
(STATED,) = re.findall(r"never holds the minion's loop longer than (\d+\.?\d*) seconds", BOUNDS)
BOUND = float(STATED)
# a call that waited for an answer would take at least LONG_TIMEOUT seconds; a busy machine may need a
# multiple of BOUND for a call that does not wait
LONG_TIMEOUT, LIMIT = 12, 10 * BOUND


def test_documented_bound_is_ten_times_the_poll_timeout() -> None:
    assert 10 * watchers._POLL_TIMEOUT <= BOUND


@pytest.mark.parametrize("kind", ["refuse", "reset", "hang", "trickle", "trickle-header", "server-error", "oversized"])
def test_failing_imds_does_not_block_the_beacon(azure: Azure, watch: Callable[..., Beacons], kind: str) -> None:
    with failing(azure, kind):
        beacons = watch(timeout=LONG_TIMEOUT, first_timeout=LONG_TIMEOUT)
        assert beacons.for_seconds(2) == []
    assert beacons.slowest < LIMIT


def test_slow_first_answer_does_not_block_the_beacon_and_is_sent(tmp_path: Path, watch: Callable[..., Beacons]) -> None:
    # a running clock, because a delay uses the simulator's clock
    with simulator_process.start(args=["--vms", "vm1"]) as imds:
        imds.post("/events", {"type": "Reboot", "resources": ["vm1"]})
        imds.post("/faults", {"kind": "slow-first-answer", "delay": 1.5 * LIMIT})
        beacons = watch(
            on=Minion(tmp_path, imds.endpoints["vm1"]), timeout=LONG_TIMEOUT, first_timeout=10 * LONG_TIMEOUT
        )
        began = time.monotonic()
        beacons.tick_until(bool)
        assert time.monotonic() - began > LIMIT
    assert beacons.slowest < LIMIT


def test_hundreds_of_events_do_not_block_the_beacon(azure: Azure, watch: Callable[..., Beacons]) -> None:
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
    assert beacons.slowest < LIMIT


def test_close_does_not_block(azure: Azure, watch: Callable[..., Beacons]) -> None:
    with failing(azure, "hang"):
        beacons = watch(timeout=LONG_TIMEOUT, first_timeout=LONG_TIMEOUT)
        beacons.for_seconds(0.5)
        began = time.perf_counter()
        beacons.close()
        assert time.perf_counter() - began < LIMIT
