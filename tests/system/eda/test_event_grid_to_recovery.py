# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Notifications of Event Grid start the maintenance, which approves through Azure Resource Manager."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support import simulator_process
from support.eda.rulebook import Rulebook
from support.eda.three_hosts import EVENT, NAMES, ThreeHosts
from support.maintenance.control_plane import TOKEN, by_arm, without_imds
from support.maintenance.fleet import LIFE, MANUAL, TRIO
from support.repository import REPOSITORY
from support.simulator_process import Simulator, reserved_port
from support.wait import wait_until

pytestmark = pytest.mark.all

# simulated seconds
DISORDER = 5


def received_by_web_hook(folder: Path, port: int) -> Path:
    """Write the rulebook with a source that Event Grid can reach, as an event stream takes its place."""
    (ruleset,) = yaml.safe_load((REPOSITORY / "extensions/eda/rulebooks/maintenance_pushed.yml").read_text())
    ruleset["sources"][0]["eda.builtin.webhook"] = {"host": "127.0.0.1", "port": port, "token": TOKEN}
    path = folder / "event-grid.yml"
    path.write_text(yaml.safe_dump([ruleset]))
    return path


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as number:
        yield number


def azure_with_event_grid(port: int, schema: str) -> Simulator:
    """Return Azure that publishes each notification twice or late."""
    notify = {
        "url": f"http://127.0.0.1:{port}/event-grid",
        "token": TOKEN,
        "schema": schema,
        "duplicates": 0.5,
        "disorder": f"{DISORDER}s",
        "seed": 1,
        "attempts": 30,
    }
    scenario = {"groups": TRIO, "knobs": {"rate_limit": 0}, "notify": notify}
    return simulator_process.start(scenario, args=MANUAL)


@pytest.mark.parametrize(("schema", "has_imds"), [("eventgrid", True), ("cloudevents", False)])
def test_notifications_end_in_recovered_hosts(tmp_path: Path, port: int, schema: str, has_imds: bool) -> None:
    """Without IMDS the role takes the event, its end and the resource ID from the notifications alone."""
    with azure_with_event_grid(port, schema) as azure:
        arm = by_arm(azure)
        more = {name: arm if has_imds else without_imds(azure, tmp_path, name, **arm) for name in NAMES}
        hosts = ThreeHosts(azure, tmp_path, more=more)
        environment = {"ARM_TOKEN": TOKEN}
        with Rulebook(
            tmp_path, hosts.inventory, received_by_web_hook(tmp_path, port), environment=environment
        ) as rulebook:
            azure.post("/events", EVENT)
            azure.advance(DISORDER + 1)
            hosts.wait_for_approval(1, rulebook.log)
            assert set(hosts.course_of("prepare")) == set(NAMES)
            azure.advance(DISORDER + 1)
            if has_imds:
                hosts.wait_for_polls()
            else:
                wait_until(lambda: rulebook.runs() >= 1, "the end of the first run", rulebook.log)
            azure.advance(LIFE)
            azure.advance(DISORDER + 1)
            hosts.wait_for_recovery(1, rulebook.log)
            wait_until(lambda: rulebook.runs() >= 2, "the run of the end", rulebook.log)
        assert [(line["by"], line["status"]) for line in hosts.approvals()] == [("arm", 200)]
        assert sorted(hosts.course_of("prepare")) == sorted(hosts.course_of("recover")) == list(NAMES)
        assert "fatal" not in rulebook.log()
