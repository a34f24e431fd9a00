# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The states that drain a minion and bring it back, run by Salt's own state compiler, and what their marker keeps of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Minion
from jinja2 import Environment
from salt.loader import minion_mods, utils
from salt_lab.azure import Azure


class Host:
    """A minion whose commands write into a journal."""

    def __init__(self, minion: Minion, folder: Path) -> None:
        self._minion = minion
        self._journal = folder / "journal"
        minion.opts["grains"].update(shell="/bin/sh", path="/usr/bin:/bin")
        minion.opts.update(file_roots={"base": [str(ROOT)]}, pillar_roots={"base": [str(folder / "pillar")]}, __role="minion")
        self.pillar: dict[str, Any] = {"drain": [self.noting("drained")], "undrain": [self.noting("undrained")]}
        self.marker = Path(minion.opts["cachedir"], "azure_events", "drained")

    def noting(self, word: str) -> str:
        return "echo %s >> %s" % (word, self._journal)

    @property
    def done(self) -> list[str]:
        return self._journal.read_text().split() if self._journal.exists() else []

    def apply(self, sls: str, event_id: str | None = None, **words: Any) -> bool:
        """Whether all states of it succeeded, as a run that only tells what it would do does, too."""
        pillar = {"azure_events": self.pillar, **({"azure_events_event": event_id} if event_id else {})}
        opts = dict(self._minion.opts, pillar=pillar)
        functions = minion_mods(opts, context={}, utils=utils(opts))
        ran = functions["state.sls"]("azure_events." + sls, pillar=pillar, **words)
        assert isinstance(ran, dict), ran
        return all(state["result"] is not False for state in ran.values())


@pytest.fixture
def host(minion: Minion, tmp_path: Path) -> Host:
    return Host(minion, tmp_path)


def test_what_is_drained_for_an_event_is_not_drained_again_for_it(host: Host) -> None:
    assert host.apply("drain", "A1") and host.apply("drain", "a1")
    assert host.done == ["drained"]
    assert host.apply("drained", "A1")


def test_it_is_drained_again_for_another_event(host: Host) -> None:
    assert host.apply("drain", "A1") and not host.apply("drained", "B2")
    assert host.apply("drain", "B2") and host.apply("drained", "B2") and host.apply("drained", "A1")
    assert host.done == ["drained", "drained"]
    assert host.marker.read_text().split()[2:] == ["A1", "B2"]


def test_it_is_drained_again_after_a_reboot(host: Host) -> None:
    host.apply("drain", "A1")
    lines = host.marker.read_text().splitlines()
    host.marker.write_text("\n".join([lines[0], "another-boot", *lines[2:]]))
    assert not host.apply("drained", "A1")
    assert host.apply("drain", "A1") and host.apply("drained", "A1")
    assert host.done == ["drained", "drained"]


@pytest.mark.parametrize("before", ["drained", "draining", "drained\n", ""])
def test_marker_of_before_that_names_no_event_counts_as_nothing_done(host: Host, before: str) -> None:
    host.marker.parent.mkdir(parents=True, exist_ok=True)
    host.marker.write_text(before)
    assert not host.apply("drained", "A1") and host.apply("drain", "A1")
    assert host.done == ["drained"]


def test_dry_run_is_not_taken_for_a_drain(host: Host) -> None:
    assert host.apply("drain", "A1", test=True)
    assert host.done == [] and not host.apply("drained", "A1", test=False)


def test_failed_drain_is_not_drained_and_will_be_undone(host: Host) -> None:
    host.pillar["drain"] = ["false", host.noting("drained")]
    assert not host.apply("drain", "A1") and not host.apply("drained", "A1")
    assert host.apply("undrain", "A1")
    assert host.done == ["undrained"] and not host.marker.exists()


@pytest.mark.parametrize("commands", ["touch x", {"touch": "x"}, None, 7, [["touch"]], [{"touch": "x"}, "true"]])
def test_commands_that_are_no_list_of_texts_are_not_run(host: Host, commands: Any) -> None:
    host.pillar["drain"] = commands
    assert not host.apply("drain", "A1") and not host.marker.exists()
    host.pillar["drain"] = []
    assert host.apply("drain", "A1") and host.apply("drained", "A1")
    host.pillar["undrain"] = commands
    assert not host.apply("undrain", "A1") and host.marker.exists()
    host.pillar["undrain"] = []
    assert host.apply("undrain", "A1") and not host.marker.exists()


def test_drain_without_a_pillar_fails_and_so_does_the_way_back(host: Host) -> None:
    del host.pillar["drain"]
    assert not host.apply("drain", "A1")
    host.pillar["drain"] = [host.noting("drained")]
    host.apply("drain", "A1")
    del host.pillar["undrain"]
    assert not host.apply("undrain", "A1") and host.marker.exists()


def test_only_the_events_of_the_marker_keep_it_drained(host: Host, azure: Azure) -> None:
    mine, later, other = azure.announce("vm1"), azure.announce("vm1"), azure.announce("vm1", kind="Freeze")
    host.apply("drain", mine)
    host.apply("drain", later)
    azure.end(mine)
    assert host.apply("undrain", mine) and host.marker.exists()
    azure.end(later)
    assert host.apply("undrain", other) and host.marker.exists()
    assert host.apply("undrain", later) and not host.marker.exists()
    assert host.done == ["drained", "drained", "undrained"]


def test_nobody_is_brought_back_while_nothing_is_known(host: Host, minion: Minion) -> None:
    host.apply("drain", "A1")
    minion.opts["azure_events"] = {"endpoint": "http://127.0.0.1:9"}
    assert not host.apply("undrain", "A1") and host.marker.exists()


def test_by_hand_it_is_drained_for_all_that_is_listed(host: Host, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    assert host.apply("drain") and host.apply("drained", event_id)
    assert host.apply("undrain") and host.marker.exists()
    azure.end(event_id)
    assert host.apply("undrain") and not host.marker.exists()


UPTIME = {"since_iso": "2026-11-21T10:00:59.123456", "days": 3}


@pytest.mark.parametrize(("uptime", "boot", "skips"), [(UPTIME, "2026-11-21T10:00", True), (UPTIME, "", False), ("3 days", "", False), (None, "", False)])
def test_without_proc_the_uptime_tells_one_boot_from_another(uptime: Any, boot: str, skips: bool) -> None:
    salt: dict[str, Any] = {
        "file.file_exists": lambda path: path == "/cache/azure_events/drained",
        "file.read": lambda path: "drained\n%s\nA1\n" % boot,
        "pillar.get": lambda key: "A1",
        **({"status.uptime": lambda: uptime} if uptime else {}),
    }
    template = Environment().from_string((ROOT / "azure_events" / "marker.jinja").read_text().replace("| json", ""))
    module: Any = template.make_module({"salt": salt, "opts": {"cachedir": "/cache"}})
    assert (module.state, module.events, module.of_this_boot) == ("drained", ["A1"], skips)
