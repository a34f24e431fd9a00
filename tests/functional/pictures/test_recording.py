# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The recorders of the time lines, by real runs of which the programs determine the times."""

from __future__ import annotations

import pytest

from tools.pictures.time_lines.drawing import drawing
from tools.pictures.time_lines.recording import ANNOUNCED, OVER, STARTED, Recording
from tools.pictures.time_lines.runs import host, playbook

STEPS = ["seen", "prepared", "approved", "started", "over", "recovered"]


def check(recording: Recording, *vms: str) -> None:
    azure, *others = recording.lanes
    assert [step.step for step in azure.steps] == [ANNOUNCED, STARTED, OVER]
    assert {lane.name: [step.step for step in lane.steps] for lane in others} == dict.fromkeys(vms, STEPS)
    assert recording.title in drawing(recording)


@pytest.mark.short
def test_host_recording_has_the_steps_and_the_hooks_in_order() -> None:
    recording = host.record({"prepare/10-drain": ":", "prepare/20-flush": ":", "recover/10-undrain": ":"})
    check(recording, "vm1")
    vm = recording.lanes[1]
    assert [work.name for work in vm.work] == ["prepare/10-drain", "prepare/20-flush", "recover/10-undrain"]
    assert all(earlier.end <= later.begin for earlier, later in zip(vm.work, vm.work[1:]))
    assert vm.work[1].end == vm.at("prepared")


def test_playbook_recording_has_the_steps_and_the_tasks_of_both_vms() -> None:
    recording = playbook.record()
    check(recording, "vm1", "vm2")
    for lane in recording.lanes[1:]:
        assert [work.name for work in lane.work] == ["prepare tasks", "recover tasks"]
        assert lane.work[0].end <= lane.at("prepared") and lane.work[1].end <= lane.at("recovered")
