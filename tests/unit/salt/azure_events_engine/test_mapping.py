# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which minion is which VM, and which source of the name takes precedence."""

from __future__ import annotations

import pytest

from azure_events_engine.mapping import Names
from azure_scheduled_events.identity import vm_key

MINIONS = frozenset(("web1", "web2", "db.example.com", "other"))


def names(**given: dict[str, str]) -> Names:
    return Names().learn(given.get("table", {}), given.get("pillar", {}), MINIONS)


@pytest.mark.parametrize(("one", "other"), [("Web1", "web1"), ("_web1", "WEB1"), ("straße", "STRASSE")])
def test_names_of_one_vm_are_equal(one: str, other: str) -> None:
    assert vm_key(one) == vm_key(other)


def test_table_comes_before_pillar_and_pillar_before_the_minion() -> None:
    known = names(table={"web1": "A"}, pillar={"web1": "B", "web2": "C"}).claim("web1", "D").claim("web2", "E")
    assert (known.vm_of("web1"), known.how("web1")) == ("a", "table")
    assert (known.vm_of("web2"), known.how("web2")) == ("c", "pillar")
    assert known.complaint("web1") == "reports that its VM is d, but the master's table has a"


def test_minion_id_is_used_if_the_minion_reports_it() -> None:
    known = names().claim("web1", "WEB1")
    assert (known.vm_of("web1"), known.how("web1"), known.minion_of("web1")) == ("web1", "id", "web1")


def test_other_name_is_bound_at_its_first_report() -> None:
    known = names().claim("db.example.com", "db")
    assert (known.vm_of("db.example.com"), known.how("db.example.com"), known.minion_of("db")) == (
        "db",
        "observed",
        "db.example.com",
    )
    changed = known.claim("db.example.com", "elsewhere")
    assert changed.minion_of("db") == "db.example.com" and changed.minion_of("elsewhere") is None
    assert changed.complaint("db.example.com") == "reports that its VM is elsewhere, but it first reported db"


@pytest.mark.parametrize("before", [MINIONS, MINIONS - {"web2"}], ids=["accepted", "accepted later"])
def test_vm_of_a_silent_minion_cannot_be_claimed(before: frozenset[str]) -> None:
    known = Names().learn({}, {}, before).claim("other", "web2").learn({}, {}, MINIONS)
    assert known.minion_of("web2") == "web2" and known.vm_of("other") is None
    assert known.complaint("other") == "reports that its VM is web2, which is the VM of minion web2"
    assert known.claim("web2", "web2").learn({}, {}, MINIONS).minion_of("web2") == "web2"


def test_second_claimant_is_a_rival_of_an_observed_name_only() -> None:
    observed = names().claim("db.example.com", "db").claim("other", "db")
    assert observed.rivals("db") == ("other",)
    by_id = names().claim("web1", "web1").claim("other", "web1")
    assert by_id.rivals("web1") == () and by_id.complaint("other")
    by_table = names(table={"db.example.com": "db"}).claim("db.example.com", "db").claim("other", "db")
    assert by_table.rivals("db") == ()


def test_minion_whose_key_is_deleted_is_forgotten() -> None:
    known = names().claim("db.example.com", "db").learn({}, {}, MINIONS - {"db.example.com"})
    assert (
        known.minion_of("db") is None
        and known.learn({}, {}, MINIONS).claim("db.example.com", "new").vm_of("db.example.com") == "new"
    )


def test_minions_without_a_name_are_listed() -> None:
    assert names(table={"web1": "web1"}).claim("web2", "web2").nameless() == ("db.example.com", "other")


@pytest.mark.parametrize(
    ("minion", "vm"), [("web1", "web1"), ("web2", "a"), ("db.example.com", "db"), ("other", "web1")]
)
def test_repeated_report_changes_nothing(minion: str, vm: str) -> None:
    """A change has the engine poll the minion again."""
    known = names(table={"web2": "A"}).claim(minion, vm)
    assert known.claim(minion, vm) is known
