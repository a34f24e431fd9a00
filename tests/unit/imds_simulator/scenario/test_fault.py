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
    registry = FaultRegistry()
    for fault in faults:
        registry.inject(fault_from(fault), base, Rules(Knobs(), speed))
    return registry


def matching_requests(registry, count, vm="vm1", route="scheduledevents", method="GET", now=0.0):
    return [bool(registry.match(vm, route, method, now)) for _each in range(count)]


@pytest.mark.parametrize(
    "requests, expected",
    [(None, [1, 1, 1, 1]), (2, [0, 1, 0, 0]), ("2", [0, 1, 0, 0]), ("3-", [0, 0, 1, 1]), ("2-3", [0, 1, 1, 0])],
)
def test_requests_window_selects_requests(requests, expected):
    registry = make_registry({"kind": "empty", **({"requests": requests} if requests else {})})
    assert matching_requests(registry, 4) == list(map(bool, expected))


def test_requests_window_counts_each_vm_separately():
    registry = make_registry({"kind": "empty", "requests": 2})
    assert matching_requests(registry, 1, "vm1") + matching_requests(registry, 1, "vm2") + matching_requests(
        registry, 1, "vm1"
    ) == [False, False, True]


def test_match_requires_route_method_and_vm():
    registry = make_registry(
        {"kind": "empty", "route": "instance", "vm": ["vm1", "vm3"]}, {"kind": "gone", "method": "POST"}
    )
    assert matching_requests(registry, 1, route="instance") == [True]
    assert matching_requests(registry, 1, "vm2", route="instance") == [False]
    assert matching_requests(registry, 1) == [False]
    assert registry.match("vm2", "scheduledevents", "POST", 0).fault.kind == "gone"


def test_requests_window_counts_matching_requests_only():
    registry = make_registry({"kind": "empty", "method": "POST", "requests": 2})
    assert matching_requests(registry, 5) == [False] * 5
    assert matching_requests(registry, 2, method="POST") == [False, True]


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
    registry = make_registry({"kind": "empty", **window})
    assert [matching_requests(registry, 1, now=now)[0] for now in (5, 10, 20, 30)] == list(map(bool, active))


def test_time_window_counts_simulated_seconds_from_the_base():
    registry = make_registry({"kind": "empty", "from": 60, "for": 60}, base=1000.0, speed=60)
    assert [matching_requests(registry, 1, now=now)[0] for now in (1000.9, 1001, 1001.9, 1002)] == [
        False,
        True,
        True,
        False,
    ]


def test_requests_window_counts_inside_the_time_window():
    registry = make_registry({"kind": "empty", "from": 10, "requests": 1})
    assert matching_requests(registry, 3, now=0) == [False] * 3
    assert matching_requests(registry, 2, now=10) == [True, False]


def test_match_returns_the_first_fault_and_counts_for_all():
    registry = make_registry({"kind": "empty", "requests": 1}, {"kind": "gone", "requests": 2})
    assert registry.match("vm1", "instance", "GET", 0).fault.kind == "empty"
    assert registry.match("vm1", "instance", "GET", 0).fault.kind == "gone"


def test_clear_removes_one_fault_or_all():
    registry = make_registry({"kind": "empty"}, {"kind": "gone"})
    assert registry.clear(1) == 1 and registry.match("vm1", "instance", "GET", 0).fault.kind == "gone"
    assert registry.clear(9) == 0 and registry.clear() == 1 and not registry


def test_refusal_of_a_listener_changes_at_its_window():
    registry = make_registry({"kind": "refuse", "from": 5, "for": 5, "vm": "vm1"})
    assert matching_requests(registry, 1, now=6) == [False]
    assert [registry.is_refused(("vm1",), now) for now in (4, 5, 9.9, 10)] == [False, True, True, False]
    assert not registry.is_refused(("vm2",), 6)
    assert [registry.next_refusal_change(now) for now in (0, 5, 10)] == [5, 10, float("inf")]


def test_slow_first_answer_matches_the_first_request_only():
    assert matching_requests(make_registry({"kind": "slow-first-answer"}), 2) == [True, False]


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
        ({"kind": "empty", "headers": {"X-A": "1\x07"}}, "headers", "X-A has .* a control character"),
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


def test_fault_with_half_of_a_surrogate_pair_has_it_escaped():
    assert fault_from({"kind": "body", "body": "x\ud800"}).options["body"] == b"x\\ud800"


def test_fault_from_every_kind_succeeds():
    for name, kind in KINDS.items():
        fault = fault_from(
            {
                "kind": name,
                **({"status": 418} if "status" in kind.allowed_options and "status" not in kind.options else {}),
            }
        )
        assert (fault.kind, fault.action) == (name, kind.action)
