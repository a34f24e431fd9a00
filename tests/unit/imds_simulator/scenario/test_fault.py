# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Which request meets which fault (T80): windows of requests and of time, per route and per client."""

from __future__ import annotations

import pytest

from imds_simulator.model.rules import Rules
from imds_simulator.scenario.fault_kinds import KINDS, FaultError, fault_from
from imds_simulator.scenario.knobs import Knobs
from imds_simulator.server.active_faults import FaultRegistry


def book(*faults, base=0.0, speed=1.0):
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
def test_from_the_nth_request_to_the_mth(requests, expected):
    made = book({"kind": "empty", **({"requests": requests} if requests else {})})
    assert hits(made, 4) == list(map(bool, expected))


def test_requests_are_counted_for_each_client_by_itself():
    made = book({"kind": "empty", "requests": 2})
    assert hits(made, 1, "vm1") + hits(made, 1, "vm2") + hits(made, 1, "vm1") == [False, False, True]


def test_a_fault_concerns_a_route_a_method_and_clients():
    made = book({"kind": "empty", "route": "instance", "vm": ["vm1", "vm3"]}, {"kind": "gone", "method": "POST"})
    assert hits(made, 1, route="instance") == [True]
    assert hits(made, 1, "vm2", route="instance") == [False]
    assert hits(made, 1) == [False]
    assert made.match("vm2", "scheduledevents", "POST", 0).fault.kind == "gone"


def test_only_matching_requests_count():
    made = book({"kind": "empty", "method": "POST", "requests": 2})
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
def test_from_t1_to_t2(window, active):
    made = book({"kind": "empty", **window})
    assert [hits(made, 1, now=now)[0] for now in (5, 10, 20, 30)] == list(map(bool, active))


def test_times_are_simulated_and_count_from_the_base():
    made = book({"kind": "empty", "from": 60, "for": 60}, base=1000.0, speed=60)
    assert [hits(made, 1, now=now)[0] for now in (1000.9, 1001, 1001.9, 1002)] == [False, True, True, False]


def test_requests_are_counted_inside_the_time_window():
    made = book({"kind": "empty", "from": 10, "requests": 1})
    assert hits(made, 3, now=0) == [False] * 3
    assert hits(made, 2, now=10) == [True, False]


def test_the_first_fault_wins_but_all_count():
    made = book({"kind": "empty", "requests": 1}, {"kind": "gone", "requests": 2})
    assert made.match("vm1", "instance", "GET", 0).fault.kind == "empty"
    assert made.match("vm1", "instance", "GET", 0).fault.kind == "gone"


def test_clearing_one_and_all():
    made = book({"kind": "empty"}, {"kind": "gone"})
    assert made.clear(1) == 1 and made.match("vm1", "instance", "GET", 0).fault.kind == "gone"
    assert made.clear(9) == 0 and made.clear() == 1 and not made


def test_refusal_has_edges_in_time_and_belongs_to_listeners():
    made = book({"kind": "refuse", "from": 5, "for": 5, "vm": "vm1"})
    assert hits(made, 1, now=6) == [False]
    assert [made.is_refused(("vm1",), now) for now in (4, 5, 9.9, 10)] == [False, True, True, False]
    assert not made.is_refused(("vm2",), 6)
    assert [made.next_refusal_change(now) for now in (0, 5, 10)] == [5, 10, float("inf")]


def test_a_slow_first_answer_is_about_the_first_request():
    assert hits(book({"kind": "slow-first-answer"}), 2) == [True, False]


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
def test_faults_that_cannot_be(fault, key, text):
    with pytest.raises(FaultError, match=text) as caught:
        fault_from(fault)
    assert caught.value.key == key


def test_every_kind_can_be_made():
    for name, kind in KINDS.items():
        made = fault_from(
            {
                "kind": name,
                **({"status": 418} if "status" in kind.allowed_options and "status" not in kind.options else {}),
            }
        )
        assert (made.kind, made.action) == (name, kind.action)
