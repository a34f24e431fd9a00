# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Thousands of events in one document, and events one after the other: the work for each is constant and small."""

from __future__ import annotations

import collections
import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import psutil
import pytest

from azure_scheduled_events.document import EventDocument, parse_document
from hook_runner.reporting.metrics import Metrics
from hook_runner.reporting.status import summary, to_data, to_text
from support.daemon.daemon_process import MakeDaemon
from support.daemon.runner_harness import MakeVm, RunnerHarness
from support.daemon.simulated_azure import Azure

FEW, MANY = 100, 1000
# work that grows with the events takes as many times the effort; work that grows with their square
# takes that many times more
AT_MOST = 1.1 * MANY / FEW
# lines of Python for one event of another VM, with some room; "stay" and "tick" come round again
# each second
LINES = {"appear": 350, "stay": 15, "tick": 15, "status": 180, "metrics": 30, "missing": 50, "gone": 300}


def body(count: int, *resources: str) -> bytes:
    """Return an answer of IMDS with so many events."""
    event = {"EventType": "Freeze", "EventStatus": "Scheduled", "Resources": resources, "EventSource": "Platform"}
    event.update(ResourceType="VirtualMachine", NotBefore="Fri, 01 Jan 2100 00:00:00 GMT")
    return json.dumps(
        {"DocumentIncarnation": 1, "Events": [{**event, "EventId": f"E-{number}"} for number in range(count)]}
    ).encode()


def effort(work: Callable[[], object]) -> int:
    """Do the work; return its executed lines of Python, which are the same however busy the machine is."""
    lines = 0

    def trace(frame: FrameType, what: str, _argument: Any) -> Callable[..., Any] | None:
        nonlocal lines
        lines += what == "line"
        return trace

    earlier = sys.gettrace()  # that of a coverage run
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(earlier)
    return lines


def efforts(harness: RunnerHarness, count: int) -> dict[str, int]:
    """The cost of so many events of other VMs, which appear, stay as they are, are reported, and end."""
    harness.configure(log_level="error", resource_name="vm1")
    runner, document = harness.start(), parse_document(body(count, "vm2"))
    metrics = Metrics(str(harness.folder / "metrics.prom"))
    in_force: dict[str, Any] = {"configuration": collections.defaultdict(str)}

    work: dict[str, Callable[[], Any]] = {
        "appear": lambda: runner.document_received(document),
        "stay": lambda: runner.document_received(document),
        "tick": runner.tick,
        "status": lambda: (to_text({**to_data(runner), **in_force}), summary(runner)),
        "metrics": lambda: metrics.update(0.0, runner),
        # one document without them may be that of another backend
        "missing": lambda: runner.document_received(EventDocument(2, ())),
        "gone": lambda: runner.document_received(EventDocument(3, (), sent_at=2.0)),
    }
    return {name: effort(each) for name, each in work.items()}


def test_effort_grows_with_the_events_and_not_with_their_square(make_vm: MakeVm) -> None:
    few, many = efforts(make_vm("vm1"), FEW), efforts(make_vm("vm2"), MANY)
    assert [(name, few[name], many[name]) for name in few if many[name] > AT_MOST * few[name]] == []
    assert {name: many[name] for name, lines in LINES.items() if many[name] > lines * MANY} == {}


@pytest.mark.all
def test_process_grows_with_no_event_and_leaves_no_process(azure: Azure, make_daemon: MakeDaemon) -> None:
    vm = make_daemon()
    for stage in ("prepare", "recover"):
        vm.harness.hook(stage + "/10-a")
    vm.start()
    assert vm.process is not None
    daemon, figures = psutil.Process(vm.process.pid), []
    for _event in range(20):
        event = azure.schedule("Reboot", hold=True)
        vm.wait(lambda event=event: ("vm1", event) in azure.approvals())  # type: ignore[misc]
        azure.cancel(event)
        vm.wait(lambda: vm.data("status")[1]["maintenance"] is None and not vm.data("status")[1]["events"])
        figures.append((daemon.num_fds(), daemon.memory_info().rss))
    (descriptors, memory), (_last, at_the_end) = figures[5], figures[-1]
    # a connection may be closing
    vm.wait(lambda: daemon.num_fds() <= descriptors)
    assert at_the_end <= memory + (1536 << 10), figures
    vm.wait(lambda: vm.harness.processes() == [daemon.pid])
    assert not vm.times_logged("Traceback") and vm.command("history").returncode == 0
    vm.stop()
    assert vm.process.returncode == 0
