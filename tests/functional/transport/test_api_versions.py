# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A list of api-versions of which IMDS knows some, over real sockets."""

from __future__ import annotations

import pytest

from azure_scheduled_events import Imds, ImdsError, ImdsRefused
from support.ready_hooks.clock import Clock
from support.simulator_process import Simulator
from support.transport.fault_helpers import fault, requests_of, schedule

NEW = "2031-01-01"
LIST = [NEW, "2019-04-01", "2020-07-01"]


@pytest.fixture(autouse=True)
def usual_versions(azure: Simulator) -> None:
    azure.post("/knobs", {"unknown_version_status": 400, "extra_api_versions": []})


def tried(azure: Simulator, since: int = 0) -> list[str]:
    """Return the versions of the requests for events."""
    return [request["version"] for request in requests_of(azure)[since:]]


@pytest.mark.parametrize("status", [400, 404])
def test_poll_continues_with_the_next_version(azure: Simulator, endpoint: str, status: int) -> None:
    azure.post("/knobs", {"unknown_version_status": status})
    schedule(azure, source="User")
    imds = Imds(endpoint, LIST)
    document = imds.events()
    (event,) = document.events
    assert document.api_version == "2019-04-01" and event.source is None and event.description is not None
    imds.approve(event.event_id)
    assert azure.get(f"/events/{event.event_id}")["approved_by"] == ["vm1"]


@pytest.mark.parametrize("status", [400, 404])
def test_none_of_the_versions_works(azure: Simulator, endpoint: str, status: int) -> None:
    azure.post("/knobs", {"unknown_version_status": status})
    imds = Imds(endpoint, [NEW, "2031-02-02", "2031-03-03"])
    for _poll in range(2):
        with pytest.raises(ImdsRefused) as caught:
            imds.events()
        text = str(caught.value)
        assert text.startswith("none of the api-versions works: ") and text.count(f"answered {status}") == 3
        assert all(version in text for version in (NEW, "2031-02-02", "2031-03-03"))
        assert (caught.value.status, caught.value.retryable) == (status, status == 404)


def test_first_version_is_tried_again_after_an_hour(azure: Simulator, endpoint: str) -> None:
    clock = Clock()
    imds = Imds(endpoint, LIST, clock=clock)
    imds.events()
    azure.post("/knobs", {"extra_api_versions": [NEW]})
    before = len(requests_of(azure))
    for _poll in range(40):
        clock.now += 89
        assert imds.events().api_version == "2019-04-01"
    clock.now += 89
    assert imds.events().api_version == NEW
    assert tried(azure, before) == ["2019-04-01"] * 40 + [NEW]


def test_version_that_has_answered_is_not_left_for_a_404(azure: Simulator, endpoint: str) -> None:
    """IMDS is being updated in the middle of an event."""
    schedule(azure)
    imds = Imds(endpoint, ["2019-08-01", "2020-07-01"])
    imds.events()
    fault(azure, "status", status=404)
    before = len(requests_of(azure))
    with pytest.raises(ImdsRefused, match="answered 404"):
        imds.events()
    assert tried(azure, before) == ["2019-08-01"]


def test_version_that_has_not_answered_for_two_minutes_is_left_for_a_404(azure: Simulator, endpoint: str) -> None:
    """The VM moved to another host of Azure, whose IMDS lists no versions."""
    azure.post("/knobs", {"extra_api_versions": [NEW]})
    clock = Clock()
    imds = Imds(endpoint, LIST, clock=clock)
    imds.events()
    azure.post("/knobs", {"unknown_version_status": 404, "extra_api_versions": []})
    clock.now += 119
    with pytest.raises(ImdsRefused, match="answered 404"):
        imds.events()
    clock.now += 2
    assert imds.events().api_version == "2019-04-01"
    before = len(requests_of(azure))
    assert imds.events().api_version == "2019-04-01" and tried(azure, before) == ["2019-04-01"]


def test_version_that_imds_no_longer_supports_is_left_at_once(azure: Simulator, endpoint: str) -> None:
    """The VM moved to another host of Azure."""
    azure.post("/knobs", {"extra_api_versions": [NEW]})
    imds = Imds(endpoint, LIST)
    assert imds.events().api_version == NEW
    azure.post("/knobs", {"extra_api_versions": []})
    before = len(requests_of(azure))
    event_id = schedule(azure)
    for _poll in range(2):
        assert imds.events().api_version == "2019-04-01"
    assert tried(azure, before) == [NEW, "2019-04-01", "2019-04-01"]
    imds.approve(event_id)
    assert azure.get(f"/events/{event_id}")["approved_by"] == ["vm1"]


def test_other_error_of_the_first_version_is_not_hidden(azure: Simulator, endpoint: str) -> None:
    fault(azure, "status", status=503)
    before = len(requests_of(azure))
    with pytest.raises(ImdsRefused, match="answered 503"):
        Imds(endpoint, LIST).events()
    assert tried(azure, before) == [NEW]


def test_other_error_of_the_first_version_does_not_end_the_use_of_another(azure: Simulator, endpoint: str) -> None:
    clock = Clock()
    imds = Imds(endpoint, LIST, clock=clock)
    imds.events()
    fault(azure, "status", status=500, requests="1")
    clock.now += 3601
    assert imds.events().api_version == "2019-04-01"


@pytest.mark.parametrize("kind", ["html", "truncated"])
def test_trial_of_another_version_costs_at_most_one_poll_an_hour(azure: Simulator, endpoint: str, kind: str) -> None:
    clock = Clock()
    imds = Imds(endpoint, LIST, clock=clock)
    for _poll in range(41):
        imds.events()
        clock.now += 89
    fault(azure, kind, requests="1")
    before = len(requests_of(azure))
    with pytest.raises(ImdsError):
        imds.events()
    for _poll in range(2):
        assert imds.events().api_version == "2019-04-01"
    assert tried(azure, before)[-2:] == ["2019-04-01"] * 2 and NEW not in tried(azure, before)[1:]


def test_cached_document_of_another_version_is_not_used(azure: Simulator, endpoint: str) -> None:
    schedule(azure, source="User")
    azure.post("/knobs", {"extra_api_versions": [NEW]})
    clock = Clock()
    imds = Imds(endpoint, ["2031-05-05", "2019-04-01"], clock=clock)
    assert imds.events().events[0].source is None
    azure.post("/knobs", {"extra_api_versions": ["2031-05-05"]})
    clock.now += 3601
    assert imds.events().events[0].source == "User"
