# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The engine between the bus and the reducer: accepted and ignored events, and the order of writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from azure_events_engine import signature
from azure_events_engine.engine import HOOK, REPLY, REQUEST, JobCacheError, MaintenanceEngine, PublishError
from azure_events_engine.messages import Known
from azure_events_engine.settings import Settings
from azure_events_engine.store import Store
from support.salt_simulation.driver import EVENT, done, event, record, status

SECRET = b"s" * 32
SWEEP = Settings().sweep


class Ports:
    """A master whose minions answer what a test sets."""

    def __init__(self) -> None:
        self.published: list[tuple[str, tuple[str, ...], Mapping[str, Any]]] = []
        self.sent: list[tuple[str, Mapping[str, Any]]] = []
        self.accepted = {"vm1", "vm2"}
        self.job_cache: dict[tuple[str, str], Any] = {}
        self.is_broken = False
        self.is_cache_broken = False
        self.looked_up: list[tuple[str, str]] = []

    def publish(self, function: str, minions: tuple[str, ...], kwargs: Mapping[str, Any]) -> str:
        if self.is_broken:
            raise PublishError("no master")
        self.published.append((function, minions, kwargs))
        return f"jid{len(self.published)}"

    def send(self, tag: str, data: Mapping[str, Any]) -> None:
        self.sent.append((tag, data))

    def known(self) -> Known:
        return Known(frozenset(self.accepted))

    def stored_return(self, job_id: str, minion: str) -> Mapping[str, Any] | None:
        self.looked_up.append((job_id, minion))
        if self.is_cache_broken:
            raise JobCacheError("no connection")
        found = self.job_cache.get((job_id, minion))
        return {"return": found} if found is not None else None

    def functions(self, minion: str) -> list[str]:
        return [function for function, minions, _kwargs in self.published if minion in minions]


class Site:
    def __init__(self, path: Path) -> None:
        self.now = 1000.0
        self.path = path
        self.ports = Ports()
        self.start()

    def start(self) -> None:
        self.store = Store(str(self.path))
        self.engine = MaintenanceEngine(
            Settings(), self.ports, self.store, SECRET, clock=lambda: self.now, wall=lambda: 5000.0 + self.now
        )
        self.engine.open()
        self.wait(0.1)

    def wait(self, seconds: float) -> None:
        for _number in range(max(1, int(seconds / 0.5))):
            self.now += 0.5
            self.engine.tick()

    def give_return(self, minion: str, answer: Any, stored: bool = True) -> None:
        """Have the minion return its last job."""
        number = max(
            index for index, (_function, minions, _kwargs) in enumerate(self.ports.published, 1) if minion in minions
        )
        if stored:
            self.ports.job_cache[f"jid{number}", minion] = answer
        self.engine.take(f"salt/job/jid{number}/ret/{minion}", {"id": minion, "return": answer})
        self.engine.tick()

    def prepare(self) -> None:
        """Have vm1 list an event and report that it is prepared."""
        self.give_return("vm1", status("vm1", event("vm1")))
        self.give_return("vm1", done("prepared"))

    def request(self, do: str, number: int = 1, /, **changes: Any) -> list[Mapping[str, Any]]:
        """Send a request of the runner; returns the replies."""
        request = {
            "request_id": str(number),
            "do": do,
            "event_id": EVENT,
            "force": False,
            "by": "alice",
            "time": 5000.0 + self.now,
        }
        self.engine.take(
            REQUEST + str(number), {**request, "signature": signature.sign(request, SECRET), "_stamp": "", **changes}
        )
        return [data for tag, data in self.ports.sent if tag == REPLY + str(number)]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "azure_events" / "engine.sqlite")


def test_return_is_used_once_the_job_cache_is_readable(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.ports.is_cache_broken = True
    site.give_return("vm1", status("vm1", event("vm1")))
    assert site.ports.functions("vm1") == ["status"]
    site.ports.is_cache_broken = False
    site.wait(1)
    assert "prepare" in site.ports.functions("vm1")
    site.ports.is_cache_broken = True
    site.give_return("vm1", done("prepared"))
    site.wait(12)
    assert "no connection" in caplog.text


def test_returns_that_no_job_awaits_are_not_looked_up(site: Site) -> None:
    site.give_return("vm1", status("vm1"))
    site.ports.looked_up.clear()
    for number in range(1000):
        for minion in (f"x{number}", "vm1", "vm2"):
            site.engine.take(f"salt/job/jid1/ret/{minion}", {})
    site.engine.tick()
    assert site.ports.looked_up == [("jid1", "vm2")]


def test_forged_announcement_does_not_shorten_the_time_of_the_return(site: Site) -> None:
    site.engine.take("salt/job/jid1/ret/vm1", {})
    site.wait(8)
    site.engine.take("salt/job/jid1/ret/vm1", {})
    site.wait(8)
    site.ports.job_cache["jid1", "vm1"] = status("vm1", event("vm1"))
    site.wait(1)
    assert "prepare" in site.ports.functions("vm1")


def test_minion_is_gone_when_two_reads_of_the_keys_lack_it(site: Site) -> None:
    """Salt reports a read that failed as one without minions, which does not count."""
    site.prepare()
    for accepted, reads, steps in (({"vm2"}, 1, []), (set(), 3, []), ({"vm2"}, 2, ["over"])):
        site.ports.accepted = accepted
        site.wait(SWEEP + 6 * reads)
        site.ports.accepted = {"vm1", "vm2"}
        site.wait(10)
        assert [tag.rpartition("/")[2] for tag, _data in site.ports.sent if tag.endswith("/over")] == steps


def test_failed_first_read_of_the_keys_is_repeated_and_forgets_no_name(site: Site) -> None:
    site.give_return("vm1", status("a"))
    site.ports.published.clear()
    site.ports.accepted = set()
    site.start()
    site.ports.accepted = {"vm1", "vm2"}
    site.wait(6)
    assert site.ports.published == [("status", ("vm1", "vm2"), {})]
    assert site.store.load(0.0).names == {"vm1": "a"} and site.engine.state.names.vm_of("vm1") == "a"


@pytest.mark.parametrize("tag", ["salt/beacon/vm1/azure_events/scheduled", "salt/minion/vm1/start", HOOK])
def test_hint_causes_a_poll(site: Site, tag: str) -> None:
    site.give_return("vm1", status("vm1"))
    site.wait(5)
    before = len(site.ports.functions("vm1"))
    site.engine.take(tag, {"event_id": "x", "post": {"minion": "vm1"}})
    site.wait(1)
    assert site.ports.functions("vm1")[before:] == ["status"]


@pytest.mark.parametrize(
    "tag",
    ["salt/beacon/vm1/inotify/x", "salt/beacon/vm1/azure_events", "salt/minion/vm1/x", "salt/job/1/ret/vm1", "x", HOOK],
)
@pytest.mark.parametrize("data", [{}, [], None, {"post": 7}])
def test_other_events_of_the_bus_do_nothing(site: Site, tag: str, data: Any) -> None:
    site.give_return("vm1", status("vm1"))
    site.wait(5)
    before = len(site.ports.published)
    site.engine.take(tag, data)
    site.wait(1)
    assert [minions for _function, minions, _kwargs in site.ports.published[before:] if "vm1" in minions] == []


def test_new_minion_is_polled(site: Site) -> None:
    site.ports.accepted.add("vm3")
    site.engine.take("salt/minion/vm3/start", {})
    site.wait(6)
    assert site.ports.functions("vm3") == ["status"]


def test_return_is_used_only_from_the_job_cache(site: Site) -> None:
    site.give_return("vm1", status("vm1", event("vm1")))
    site.give_return("vm1", done("prepared"), stored=False)
    site.wait(2)
    assert "approve_prepared" not in site.ports.functions("vm1")
    # the genuine return comes later
    site.give_return("vm1", done("prepared"))
    assert "approve_prepared" in site.ports.functions("vm1")


def test_signed_request_is_answered(site: Site) -> None:
    site.prepare()
    (reply,) = site.request("status")
    assert reply["rows"][0]["prepared"] == "prepared" and reply["problem"] == ""


@pytest.mark.parametrize("changes", [{"signature": "0" * 64}, {"do": "approve"}, {"time": 1.0}, {"request_id": "2"}])
def test_request_that_is_not_signed_is_not_answered(site: Site, changes: dict[str, Any]) -> None:
    assert site.request("status", **changes) == []


def test_repeated_request_is_not_answered_again(site: Site) -> None:
    assert len(site.request("fleet")) == 1 and len(site.request("fleet")) == 1


def test_nothing_is_approved_while_the_file_cannot_be_written(site: Site) -> None:
    site.path.unlink()
    site.path.mkdir()
    site.store.close()
    site.prepare()
    site.wait(20)
    assert "approve_prepared" not in site.ports.functions("vm1")
    (reply,) = site.request("status")
    assert "engine.sqlite" in reply["problem"] and "cannot write its state" in reply["rows"][0]["withheld"]
    site.path.rmdir()
    site.wait(6)
    site.give_return("vm1", status("vm1", event("vm1"), records=[record()]))
    assert site.ports.functions("vm1").count("approve_prepared") == 1
    (reply,) = site.request("status", 2)
    assert reply["problem"] == ""


def test_approval_is_not_sent_if_its_own_step_is_the_first_that_cannot_be_written(site: Site) -> None:
    site.give_return("vm1", status("vm1", event("vm1")))
    site.path.unlink()
    site.path.mkdir()
    site.store.close()
    site.give_return("vm1", done("prepared"))
    assert "approve_prepared" not in site.ports.functions("vm1")
    site.path.rmdir()
    site.wait(12)
    assert site.ports.functions("vm1").count("approve_prepared") == 1


def test_request_that_cannot_be_written_is_answered_with_the_problem(site: Site) -> None:
    site.path.unlink()
    site.path.mkdir()
    site.store.close()
    for number, do in enumerate(("hold", "approve", "fleet"), 1):
        (reply,) = site.request(do, number)
        assert "engine.sqlite" in reply["problem"]
    site.path.rmdir()
    site.wait(6)
    (reply,) = site.request("status", 4)
    assert (reply["problem"], len(site.store.load(0.0).maintenances)) == ("", 1)


def test_damaged_file_is_replaced_by_one_with_all_that_the_engine_knows(site: Site) -> None:
    site.prepare()
    site.path.write_bytes(b"no database at all" * 100)
    site.give_return("vm2", status("b"))
    site.wait(6)
    loaded = Store(str(site.path)).load(0.0)
    assert (list(loaded.maintenances), loaded.names) == ([EVENT.casefold()], {"vm1": "vm1", "vm2": "b"})


def test_hold_survives_the_engine(site: Site) -> None:
    site.prepare()
    site.ports.job_cache.clear()
    site.give_return("vm1", done("failed"))
    site.request("hold")
    site.start()
    site.give_return("vm1", status("vm1", event("vm1"), records=[]))
    site.wait(4)
    site.give_return("vm1", done("prepared"))
    site.wait(20)
    assert site.ports.functions("vm1").count("approve_prepared") == 1
    site.request("release", 2)
    site.wait(1)
    site.give_return("vm1", status("vm1", event("vm1"), records=[record()]))
    site.wait(1)
    assert site.ports.functions("vm1").count("approve_prepared") == 2


def test_job_that_is_not_published_is_repeated(site: Site) -> None:
    site.ports.is_broken = True
    site.engine.take("salt/beacon/vm1/azure_events/scheduled", {})
    site.wait(4)
    site.ports.is_broken = False
    site.wait(20)
    assert len(site.ports.functions("vm1")) >= 2


def test_event_id_is_one_part_of_the_tag(site: Site) -> None:
    site.give_return("vm1", status("vm1", event("vm1", event_id="a/../b c")))
    assert [tag for tag, _data in site.ports.sent] == ["salt/azure_events/a%2F..%2Fb%20c/draining"]
