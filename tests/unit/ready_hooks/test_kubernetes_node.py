# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import json

import pytest

from ready_hooks.hooks.kubernetes.node import Node, parse_node


def test_parse_node_reads_what_the_hook_needs() -> None:
    answer = {
        "kind": "Node",
        "metadata": {"name": "web1", "annotations": {"a": "b"}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": "True"}],
            "nodeInfo": {"bootID": "1"},
        },
    }
    assert parse_node(json.dumps(answer)) == Node("web1", True, True, "1", {"a": "b"})


@pytest.mark.parametrize("conditions", [None, [], [{"type": "Ready", "status": "Unknown"}], [{"type": "Ready"}], [1]])
def test_parse_node_without_a_good_condition_is_not_ready(conditions: object) -> None:
    answer = {"kind": "Node", "metadata": {"name": "web1"}, "spec": {}, "status": {"conditions": conditions}}
    assert parse_node(json.dumps(answer)) == Node("web1", False, False, "", {})


@pytest.mark.parametrize("answer", ["", "[]", "null", '{"kind": "Pod"}', "error"])
def test_parse_node_refuses_other_answers(answer: str) -> None:
    with pytest.raises(ValueError):
        parse_node(answer)
