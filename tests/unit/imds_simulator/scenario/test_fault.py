# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Faults and the requests they match, by time, count, route and VM (T80)."""

from __future__ import annotations

import pytest

from imds_simulator.model.rules import Rules
from imds_simulator.scenario.fault_kinds import KINDS, FaultError, fault_from
from imds_simulator.scenario.knobs import Knobs
from imds_simulator.server.active_faults import FaultRegistry


def make_registry(*faults, base=0.0, speed=1.0):
    made = FaultRegistry()
    for fault in faults:
        made.inject(fault_from(fault), base, Rules(Knobs(), speed))
    return made


def hits(made, count, vm="vm1", route="scheduledevents", method="GET", now=0.0):
    return [bool(made.match(vm, route, method, now)) for _each in range(count)]


@pytest.mark.parametrize(
    "requests, expected",
    [(None, [1, 1, 1, 1]), (2, [0, 1, 0, 0]), ("2", [0, 1, 0, 0]), ("3-", [0, 0, 1, 1]), ("2-3", [0, 1, 1, 0])],
)
def test_requests_window_selects_requests(requests, expected):
    made = make_registry({"kind": "empty", **({"requests": requests} if requests else {})})
    assert hits(made, 4) == list(map(bool, expected))


def test_requests_window_counts_each_vm_separately():
    made = make_registry({"kind": "empty", "requests": 2})
    assert hits(made, 1, "vm1") + hits(made, 1, "vm2") + hits(made, 1, "vm1") == [False, False, True]


def test_match_requires_route_method_and_vm():
    made = make_registry(
        {"kind": "empty", "route": "instance", "vm": ["vm1", "vm3"]}, {"kind": "gone", "method": "POST"}
    )
    assert hits(made, 1, route="instance") == [True]
    assert hits(made, 1, "vm2", route="instance") == [False]
    assert hits(made, 1) == [False]
    assert made.match("vm2", "scheduledevents", "POST", 0).fault.kind == "gone"


def test_requests_window_counts_matching_requests_only():
    made = make_registry({"kind": "empty", "method": "POST", "requests": 2})
    assert hits(made, 5) == [False] * 5
    assert hits(made, 2, method="POST") == [False, True]


@pytest.mark.parametrize(
    "window, active",
    [
        ({"from": 10}, [0, 1, 1, 1]),
        ({"from": 10, "to": 20}, [0, 1, 0, 0]),
        ({"from": "10s", "for": "20s"}, [0, 1, 1, 0]),
        ({"to": 15}, [1, 1, 0, 0]),
    ],
)
def test_time_window_is_active_from_begin_to_end(window, active):
    made = make_registry({"kind": "empty", **window})
    assert [hits(made, 1, now=now)[0] for now in (5, 10, 20, 30)] == list(map(bool, active))


def test_time_window_counts_simulated_seconds_from_the_base():
    made = make_registry({"kind": "empty", "from": 60, "for": 60}, base=1000.0, speed=60)
    assert [hits(made, 1, now=now)[0] for now in (1000.9, 1001, 1001.9, 1002)] == [False, True, True, False]


def test_requests_window_counts_inside_the_time_window():
    made = make_registry({"kind": "empty", "from": 10, "requests": 1})
    assert hits(made, 3, now=0) == [False] * 3
    assert hits(made, 2, now=10) == [True, False]


def test_match_returns_the_first_fault_and_counts_for_all():
    made = make_registry({"kind": "empty", "requests": 1}, {"kind": "gone", "requests": 2})
    assert made.match("vm1", "instance", "GET", 0).fault.kind == "empty"
    assert made.match("vm1", "instance", "GET", 0).fault.kind == "gone"


def test_clear_removes_one_fault_or_all():
    made = make_registry({"kind": "empty"}, {"kind": "gone"})
    assert made.clear(1) == 1 and made.match("vm1", "instance", "GET", 0).fault.kind == "gone"
    assert made.clear(9) == 0 and made.clear() == 1 and not made


def test_refusal_of_a_listener_changes_at_its_window():
    made = make_registry({"kind": "refuse", "from": 5, "for": 5, "vm": "vm1"})
    assert hits(made, 1, now=6) == [False]
    assert [made.is_refused(("vm1",), now) for now in (4, 5, 9.9, 10)] == [False, True, True, False]
    assert not made.is_refused(("vm2",), 6)
    assert [made.next_refusal_change(now) for now in (0, 5, 10)] == [5, 10, float("inf")]


def test_slow_first_answer_matches_the_first_request_only():
    assert hits(make_registry({"kind": "slow-first-answer"}), 2) == [True, False]


@pytest.mark.parametrize(
    "fault, key, text",
    [
        ({"kind": "empty", "status": 500}, "status", "does not take status"),
        ({"kind": "status"}, "status", "needs the status"),
        ({"kind": "refuse", "requests": 3}, "kind", "refuse does not take requests, route or method"),
        ({"kind": "gone", "to": 5, "for": 5}, "for", "either to or for"),
        ({"kind": "gone", "from": 6, "to": 5}, "to", "ends before it begins"),
        ({"kind": "gone", "requests": "5-3"}, "requests", "before the first"),
        ({"kind": "body", "body_base64": "?"}, "body_base64", "not base64"),
        ({"kind": "empty", "headers": {"X-A": "1\r\nX-B: 2"}}, "headers", "X-A has more than one line"),
        ({"kind": "empty", "headers": {"X-A: 1\r\nX-B": "2"}}, "headers", "is not the name of a header"),
        ({"kind": "empty", "headers": {"": "2"}}, "headers", "is not the name of a header"),
        ({"kind": "redirect", "location": "http://a/\nX-B: 2"}, "location", "location has more than one line"),
        ({"kind": "body", "content_type": "text/plain\r"}, "content_type", "content_type has more than one line"),
    ],
)
def test_fault_from_invalid_data_is_an_error(fault, key, text):
    with pytest.raises(FaultError, match=text) as caught:
        fault_from(fault)
    assert caught.value.key == key


def test_fault_from_every_kind_succeeds():
    for name, kind in KINDS.items():
        made = fault_from(
            {
                "kind": name,
                **({"status": 418} if "status" in kind.allowed_options and "status" not in kind.options else {}),
            }
        )
        assert (made.kind, made.action) == (name, kind.action)
