# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""Which VMs an approval releases, and why it may not be sent, for any documents of any reporters."""

from __future__ import annotations

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    EventDocument,
    OwnNameUnknown,
    ScheduledEvent,
    Tracker,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.identity import vm_key
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.release import (
    ONE_DOCUMENT,
    Obstacle,
    Report,
    approver_order,
    obstacles,
    own_obstacles,
    release_set,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.tracking import (
    Sighting,
)

hypothesis = pytest.importorskip("hypothesis", reason="ansible-test's own Python has no hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

VMS = ["vm1", "vm2", "vm3"]


def event(*resources, **changes):
    usual = ScheduledEvent("a", "Reboot", "Scheduled", resources, "VirtualMachine", None, None, "Platform", None)
    return usual._replace(**changes)


def report(*resources, prepared=True, listed=True, named=None, readable=True, obstacle=None, **changes):
    names = frozenset(map(vm_key, resources if named is None else named))
    sighting = Sighting(event(*resources, **changes), listed, names if listed else frozenset(), readable)
    return Report(sighting, prepared, obstacle)


def codes(reports):
    return [obstacle.code for obstacle in obstacles(reports, "no host is this VM")]


def test_prepared_vms_are_released_in_the_order_of_their_names():
    reports = {"vm2": report("VM2", "_vm1"), "vm1": report("vm1", "vm2")}
    assert codes(reports) == []
    assert approver_order(reports) == ["vm1", "vm2"]
    assert release_set(reports.values()) == {"vm2": "VM2", "vm1": "_vm1"}


@pytest.mark.parametrize(
    "second, code",
    [
        (report("vm1", "vm2", prepared=False), "not_prepared"),
        (report("vm1", "vm2", named=["vm1"]), "not_listed"),
        (report("vm1", "vm2", listed=False), "not_listed"),
        (Report(Sighting(event("vm1", "vm2"), False, frozenset({"vm2"}), True), True), "not_listed"),
        (report("vm1"), "not_listed"),
        (report("vm1", prepared=False), "not_listed"),
        (report("vm1", "vm2", prepared=False, named=["vm1"]), "not_prepared"),
        (Report(None, True), "not_listed"),
        (report("vm1", "vm2", obstacle=Obstacle("paused", "it is paused")), "paused"),
        (report("vm1", "vm2", status="Started"), "started"),
        (report("vm1", "vm2", status="Paused"), "unknown_status"),
        (report("vm1", "vm2", source="Autoscaler"), "unknown_source"),
        (report("vm1", "vm2", resource_type="Disk"), "unknown_resource_type"),
        (report("vm1", "vm2", readable=False), "unreadable"),
        (report("vm1", "vm2", event_type="Redeploy"), "types_differ"),
    ],
)
def test_one_vm_prevents_the_approval(second, code):
    assert codes({"vm1": report("vm1", "vm2"), "vm2": second}) == [code]


def test_unknown_type_prevents_the_approval():
    reports = {"vm1": report("vm1", "vm2"), "vm2": report("vm1", "vm2", event_type="Hibernate")}
    assert codes(reports) == ["unknown_type", "types_differ"]
    assert codes({"vm1": report("vm1", event_type="Hibernate")}) == ["unknown_type"]


def test_vm_without_a_report_prevents_the_approval():
    (obstacle,) = obstacles({"vm1": report("vm1", "vm9")}, "no host is this VM")
    assert obstacle == ("unknown_vm", "no host is this VM", "vm9") and str(obstacle) == "vm9: no host is this VM"


def test_vms_without_a_report_may_be_released_and_those_with_one_may_not():
    reports = {"vm1": report("vm1", "vm2", "vm9"), "vm2": report("vm1", "vm2", prepared=False)}
    found = obstacles(reports, "no host is this VM", releases_others=True)
    assert [(obstacle.code, obstacle.vm) for obstacle in found] == [("not_prepared", "vm2")]
    assert approver_order(reports) == ["vm1", "vm2"]


def test_event_of_an_api_version_without_source_and_resource_type_is_released():
    assert codes({"vm1": report("vm1", source=None, resource_type=None)}) == []


def test_vms_of_a_report_whose_own_vm_is_unknown_count():
    assert codes({"vm1": report("vm1"), "host h2": report("vm1", "vm2")}) == ["unknown_vm"]


def test_a_vm_alone_approves_no_event_that_its_last_document_lacks():
    for seen in (Report(None, True), report("vm1", listed=False)):
        found = own_obstacles(seen, "vm1", releases_others=True)
        assert {obstacle.code for obstacle in found} == {"not_listed"}


def test_event_that_no_last_document_lists_is_not_approved():
    assert codes({"vm1": report("vm1", listed=False)})[0] == "not_listed"
    assert codes({"vm1": report()}) == ["no_vm"]


def own(*resources, obstacle=None, own_name="vm1", releases_others=False):
    found = own_obstacles(report(*resources, readable=bool(resources), obstacle=obstacle), own_name, releases_others)
    return [each.code for each in found]


@pytest.mark.parametrize(
    "resources, expected",
    [
        (("vm1",), []),
        (("VM1", "_vm1"), []),
        (("vm1", "vm2"), ["others_affected"]),
        (("vm2",), ["others_affected"]),
        ((), ["unreadable"]),
    ],
)
def test_own_obstacles_protect_other_vms(resources, expected):
    assert own(*resources) == expected
    assert own(*resources, releases_others=True) == [each for each in expected if each != "others_affected"]


@pytest.mark.parametrize("resources", [("vm1",), ("vm1", "vm2"), ("vm2",)])
def test_own_obstacles_of_a_vm_that_the_event_does_not_affect_count(resources):
    assert "one_document" in own(*resources, obstacle=ONE_DOCUMENT, releases_others=True)


def test_vm_that_the_last_document_lacks_is_not_released_by_a_word():
    seen = report("vm1", "vm2")
    seen = seen._replace(sighting=seen.sighting._replace(named=frozenset(["vm1"])))
    assert [each.code for each in own_obstacles(seen, "vm1", releases_others=True)] == ["leaving"]
    assert [each.code for each in own_obstacles(seen, "vm1", releases_others=False)] == ["others_affected"]


@pytest.mark.parametrize("name", [None, ""])
def test_own_obstacles_without_own_name_raise(name):
    with pytest.raises(OwnNameUnknown):
        own("vm1", own_name=name)
    assert own("vm1", own_name=name, releases_others=True) == []


def test_own_obstacles_name_the_vms_in_printable_form():
    (obstacle,) = own_obstacles(report("vm1", "vm\ud800"), "vm1", releases_others=False)
    assert obstacle.text == "an approval would release other VMs too (vm1, vm\\ud800)"


def test_obstacles_are_printable():
    reports = {"vm1": report("vm1", "vm\x1b2"), "h": report("vm1", event_type="Re\x1bboot")}
    assert [str(obstacle) for obstacle in obstacles(reports, "no host is this VM")][1:] == [
        "its VMs list it with different types (Re?boot, Reboot)",
        "vm?2: no host is this VM",
    ]


DOCUMENTS = st.builds(
    lambda events, complete: EventDocument(1, tuple(events), complete=complete),
    st.lists(st.builds(event, st.sampled_from(VMS), st.sampled_from(VMS)), max_size=1),
    st.booleans(),
)
COURSES = st.lists(st.tuples(DOCUMENTS, st.sampled_from([1.0, 1.0, 5.0, 90.0])), min_size=1, max_size=12)


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(VMS), COURSES, min_size=1), st.sets(st.sampled_from(VMS)))
def test_no_approval_releases_an_unprepared_vm_that_one_of_the_last_documents_names(courses, prepared):
    reports, named = {}, set()
    for vm, course in courses.items():
        tracker, at, seen = Tracker(), 0.0, None
        for document, after in course:
            at += after
            seen = tracker.observe(document._replace(sent_at=at, sent_by=at))
        for document, _after in course[-2:]:
            named |= {name for each in document.events for name in each.resources}
        reports[vm] = Report(seen.events.get("a"), vm in prepared)
    assert named <= set(release_set(reports.values()))
    if not codes(reports):
        assert named <= prepared & set(courses)
