# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An approval rests on two documents, because one may lack a VM that it would release."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from azure_scheduled_events import Selection
from azure_scheduled_events.approval import approve
from azure_scheduled_events.approval_plan import ApprovalCriteria
from azure_scheduled_events.policy import Policy
from azure_scheduled_events.session import ConnectionOptions, ImdsSession
from support.simulator_process import Simulator
from support.transport.fault_helpers import requests_of, schedule

FOR_BOTH = Policy.from_mapping({"rules": [{"when": {"resources": {"all": ["vm1", "vm2"]}}, "approve": "now"}]})


class Approver:
    """Approves for vm1; time passes only while it sleeps."""

    def __init__(self, azure: Simulator, folder: Path) -> None:
        self.azure = azure
        self.folder = folder

    def approve(
        self,
        *ids: str,
        between: Callable[[], object] = lambda: None,
        policy: Policy | None = None,
        send: bool = True,
        timeout: float = 60.0,
    ) -> tuple[dict[str, str], list[str]]:
        """Return the outcome of each event, and the methods of the requests; ``between`` changes the events."""
        selection = Selection.parse({"event_ids": ids, "affects": "any"})
        criteria = ApprovalCriteria(selection, None, release_others=policy is not None, policy=policy)
        options = ConnectionOptions(self.azure.endpoints["vm1"], ("2020-07-01",), "vm1", timeout)
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            between()

        session = ImdsSession(options, clock=lambda: sum(slept), sleep=sleep)
        start = len(requests_of(self.azure))
        items = approve(session, criteria, str(self.folder), send=send).items
        methods = [request["method"] for request in requests_of(self.azure)[start:]]
        return {item.event_id: item.outcome for item in items}, methods


@pytest.fixture
def approver(azure: Simulator, tmp_path: Path) -> Approver:
    return Approver(azure, tmp_path)


@pytest.mark.parametrize(("policy", "vms"), [(None, ["vm1"]), (FOR_BOTH, ["vm1", "vm2"])], ids=["own", "both"])
def test_event_is_approved_after_a_second_document(
    azure: Simulator, approver: Approver, policy: Policy | None, vms: list[str]
) -> None:
    event_id = schedule(azure, resources=vms)
    assert approver.approve(event_id, policy=policy) == ({event_id: "approved"}, ["GET", "GET", "POST"])


@pytest.mark.parametrize(
    ("policy", "first", "second", "outcome"),
    [
        (None, ["vm1"], ["vm1", "vm2"], "others_affected"),
        (None, ["vm1", "vm2"], ["vm1"], "others_affected"),
        (FOR_BOTH, ["vm1", "vm2", "vm3"], ["vm1", "vm2"], "not_due"),
        (FOR_BOTH, ["vm1", "vm2"], ["vm1", "vm3"], "not_due"),
        (FOR_BOTH, ["vm1", "vm2"], ["vm1"], "others_affected"),
    ],
)
def test_one_document_without_another_vm_does_not_release_it(
    azure: Simulator, approver: Approver, policy: Policy | None, first: list[str], second: list[str], outcome: str
) -> None:
    event_id = schedule(azure, resources=first)
    change = partial(azure.post, f"/events/{event_id}/change", {"resources": second})
    outcomes, methods = approver.approve(event_id, between=change, policy=policy)
    assert outcomes == {event_id: outcome} and "POST" not in methods
    assert azure.get(f"/events/{event_id}")["approved_by"] == []


def test_event_that_the_second_document_lacks_is_not_approved(azure: Simulator, approver: Approver) -> None:
    event_id = schedule(azure)
    outcomes, methods = approver.approve(event_id, between=partial(azure.post, f"/events/{event_id}/cancel"))
    assert outcomes == {event_id: "not_found"} and "POST" not in methods


def test_event_that_only_the_second_document_lists_is_not_approved(azure: Simulator, approver: Approver) -> None:
    listed, late = schedule(azure), "F3A1C5B8-0D52-4E7C-9B7E-6C1D8A2E4F90"
    outcomes, _methods = approver.approve(listed, late, between=partial(schedule, azure, id=late))
    assert outcomes == {listed: "approved", late: "not_due"}
    assert azure.get(f"/events/{late}")["approved_by"] == []


def test_nothing_is_read_twice_if_nothing_is_sent(azure: Simulator, approver: Approver) -> None:
    event_id, of_others = schedule(azure), schedule(azure, resources=["vm1", "vm2"])
    assert approver.approve(event_id, send=False) == ({event_id: "approve"}, ["GET"])
    assert approver.approve(of_others) == ({of_others: "others_affected"}, ["GET"])
    approver.approve(event_id)
    assert approver.approve(event_id) == ({event_id: "already_approved"}, ["GET"])
    azure.post(f"/events/{event_id}/cancel")
    assert approver.approve(event_id) == ({event_id: "not_found"}, ["GET"])


def test_nothing_is_sent_without_time_for_a_second_document(azure: Simulator, approver: Approver) -> None:
    event_id = schedule(azure)
    assert approver.approve(event_id, timeout=1) == ({event_id: "failed"}, ["GET", "GET"])
