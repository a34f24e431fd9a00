# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The event filter reads the reports of the ready hook notify and of Salt's reactor as one shape."""

from __future__ import annotations

import json
from datetime import timedelta, timezone
from typing import Any

import jinja2
import pytest
import yaml
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven import change
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.change import KINDS
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_filter import EventFilter
from hypothesis import given
from hypothesis import strategies as st

from azure_events_engine.beacon_report import change_of
from azure_scheduled_events.change_record import change_record
from azure_scheduled_events.changes import GONE
from azure_scheduled_events.document import ScheduledEvent, parse_document
from azure_scheduled_events.hook_input import HookInput
from ready_hooks.core.event import from_environment
from ready_hooks.core.occurrences import Occurrence
from ready_hooks.hooks.notify.stage_record import stage_record
from support.repository import REPOSITORY
from support.salt.scripted import ScriptedImds

REACTOR = REPOSITORY / "salt" / "reactor" / "azure_events_push.sls"
EVENT: dict[str, Any] = {
    "event_id": "AB-1",
    "event_type": "Reboot",
    "status": "Scheduled",
    "resources": ["vm1", "vm2"],
    "resource_type": "VirtualMachine",
    "not_before": "2026-11-21T12:15:00Z",
    "description": 'It says "{{ 1 }}".\n- second: line \U0001f600',
    "source": "Platform",
    "duration_seconds": 9,
}
LISTED = {
    **ScriptedImds.event("AB-1", "vm1", "vm2", kind="Reboot"),
    "NotBefore": "Sat, 21 Nov 2026 12:15:00 GMT",
    "Description": EVENT["description"],
    "DurationInSeconds": 9,
}

# the other members are of any value that their types allow; known values have their usual spelling
EVENTS = st.builds(
    ScheduledEvent,
    event_id=st.text().filter(str.strip),
    not_before=st.none() | st.datetimes(timezones=st.just(timezone.utc)),
    duration=st.none() | st.integers(0, 10**6).map(lambda seconds: timedelta(seconds=seconds)),
).map(lambda event: ScheduledEvent.from_json(event.as_dict()))


def read(delivery: Any) -> dict[str, Any]:
    result = EventFilter().apply({"payload": delivery}, {})
    assert isinstance(result, dict)
    return result


def reacted(data: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the runner that the reactor file makes of a beacon's data."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    environment.filters["json"] = json.dumps
    (state,) = yaml.safe_load(environment.from_string(REACTOR.read_text()).render(data=data)).values()
    given: dict[str, Any] = {}
    for argument in state["runner.azure_events.push"][0]["args"]:
        given.update(argument)
    return given


def pushed_by_salt(data: dict[str, Any]) -> dict[str, Any] | None:
    return change_of(json.loads(reacted(data)["report"]))


def of_salt(**more: Any) -> dict[str, Any]:
    return {
        **EVENT,
        "id": "minion1",
        "resource_name": "vm1",
        "change": "scheduled",
        "sequence": 4,
        "changed_at": "2026-11-21T12:00:00Z",
        **more,
    }


def test_notify_and_salt_report_an_event_in_the_same_shape() -> None:
    (event,) = parse_document(json.dumps({"Events": [LISTED]})).events
    about = from_environment(HookInput(event.as_dict(), "prepare", "vm1").variables())
    pushed = read(json.loads(json.dumps(stage_record(Occurrence(about, 0.0, None, ()), 0.0))))
    salt = read(pushed_by_salt(of_salt()))
    assert set(pushed["scheduled_event"]) == set(salt["scheduled_event"])
    for each, by in ((pushed, "notify"), (salt, "salt")):
        got = each["scheduled_event"]
        text = EVENT["description"].replace("{{", "{ {")
        # a variable of a hook has one line
        text = text.replace("\n", "?") if by == "notify" else text
        assert got["event"] == {**EVENT, "description": text}
        assert (got["change"], got["outcome"], got["reported_by"], got["hosts"]) == (
            "appeared",
            None,
            by,
            ["vm1", "vm2"],
        )


@given(EVENTS, st.lists(EVENTS, max_size=2), st.sampled_from(KINDS))
def test_record_of_any_event_is_read_as_it_was_written(
    event: ScheduledEvent, others: list[ScheduledEvent], kind: str
) -> None:
    outcome = "completed" if kind == GONE else None
    shown = [each.as_dict() for each in others]
    record = change_record(kind, event.as_dict(), "7", "2026-11-21T12:00:00Z", "test", "vm1", outcome, None, shown)
    assert change.read(json.loads(json.dumps(record))) == change.without_templates(record)


def test_end_of_a_preempt_that_salt_pushes_is_news_although_the_vm_does_not_return() -> None:
    """The IDs of the minions are not the names of their VMs."""
    received = EventFilter()
    evicted = {**EVENT, "event_type": "Preempt", "resources": ["vm1"]}
    news = []
    for minion, name, changed in (
        ("minion1", "vm1", "scheduled"),
        ("minion2", "vm2", "scheduled"),
        ("minion2", "vm2", "gone"),
    ):
        data = of_salt(**evicted, id=minion, resource_name=name, change=changed)
        got = received.apply({"payload": pushed_by_salt(data)}, {})
        assert isinstance(got, dict)
        news.append((got["scheduled_event"]["reporter"], got["scheduled_event"]["is_news"]))
    assert news == [("vm1", True), ("vm2", False), ("vm2", True)]


def test_report_of_salt_without_the_name_of_the_vm_has_the_id_of_the_minion() -> None:
    got = read(pushed_by_salt(of_salt(resource_name=None)))
    assert got["scheduled_event"]["reporter"] == "minion1"


def test_report_of_salt_whose_list_of_vms_is_omitted_selects_no_host() -> None:
    data = of_salt(resources_omitted=9000, cut=["description"])
    del data["resources"]
    got = read(pushed_by_salt(data))
    assert got["scheduled_event"]["hosts"] == [] and got["meta"]["hosts"] == ["!all"]


@pytest.mark.parametrize("other", [{"change": "problem"}, {"change": ""}, {"event_id": None}])
def test_report_of_salt_without_a_change_is_not_pushed(other: dict[str, Any]) -> None:
    assert change_of(of_salt(**other)) is None


def test_reactor_has_no_secret_in_the_arguments_of_its_runner() -> None:
    """Arguments are on the event bus of the master."""
    given = reacted(of_salt())
    assert set(given) == {"url", "header_file", "report"} and given["url"].startswith("https:")
