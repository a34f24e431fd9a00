# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/salt.md is right: who writes its files and runs its commands gets what it promises."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from salt_lab.azure import Azure, simulated
from salt_lab.guide import Reader, snippets
from salt_lab.installed import Installed
from salt_lab.site import Site, site
from salt_lab.until import until

pytestmark = pytest.mark.xdist_group("guide")

# what is in these sections is done by a test below, or is told here why not
FOLLOWED = {"A first reaction", "Functions", "States", "A whole maintenance"}
ELSEWHERE = {("Install", "in the checkout"): "test_wheel.py builds the wheel"}


@pytest.fixture(scope="module")
def azure() -> Iterator[Azure]:
    with simulated({"web": {"vms": {"web1": {}}}}) as running:
        yield running


@pytest.fixture(scope="module")
def here(installed: Installed, azure: Azure) -> Iterator[Site]:
    with site(installed, []) as made:
        made.master.configure(pillar_roots={"base": [str(made.folder / "srv" / "pillar")]})
        made.minion("web1")
        yield made


@pytest.fixture(scope="module")
def first(here: Site, azure: Azure) -> Reader:
    """Somebody who has come to the end of the first section."""
    reader = Reader(here, "web1", azure.endpoints["web1"])
    reader.write("A first reaction")
    here.start()
    reader.run("A first reaction")
    return reader


@pytest.fixture(scope="module")
def maintaining(here: Site, first: Reader) -> Reader:
    """The same, later, with the engine in the place of the first reaction."""
    first.write("A whole maintenance")
    first.run("Install")
    here.master.kill()
    here.start()
    here.master.ask("web1", "saltutil.refresh_pillar")
    return first


def test_every_snippet_is_followed() -> None:
    known = {key: True for key in ELSEWHERE}
    assert [
        snippet
        for snippet in snippets()
        if not snippet.mark or snippet.section not in FOLLOWED and not known.get((snippet.section, snippet.place)) and snippet.place != "on the master"
    ] == []


@pytest.mark.parametrize("text", [snippet.text for snippet in snippets() if snippet.language == "yaml" and "{%" not in snippet.text])
def test_a_configuration_is_yaml(text: str) -> None:
    assert isinstance(yaml.safe_load(text), dict)


def test_the_first_reaction_happens(first: Reader, here: Site, azure: Azure) -> None:
    event_id = azure.announce("web1")
    until(first.leaving.exists, "the file that the reaction makes")
    assert here.minions["web1"].told("scheduled", event_id=event_id)
    azure.end(event_id)
    until(lambda: not first.leaving.exists(), "the end of it")


def test_the_functions_answer(first: Reader, azure: Azure) -> None:
    event_id = azure.announce("web1", source="User")
    assert event_id in first.run("Functions")
    assert azure.approvals(event_id) == []


def test_the_state_prepares_approves_waits_and_recovers(first: Reader, here: Site, azure: Azure) -> None:
    first.write("States")
    event_id = azure.announce("web1", kind="Freeze", notice="4h")
    # the reaction of the first section is at work, too
    until(first.leaving.exists, "the file that the reaction makes")
    printed: list[Any] = []
    applying = threading.Thread(target=lambda: printed.append(first.run("States")))
    applying.start()
    until(lambda: azure.approvals(event_id), "the approval")
    assert first.leaving.exists()
    azure.simulator.advance(2)
    azure.end(event_id)
    applying.join(120)
    assert printed and "Failed:    0" in printed[0] and not first.leaving.exists()


def test_the_maintenance_prepares_approves_and_recovers(maintaining: Reader, azure: Azure) -> None:
    event_id = azure.announce("web1", notice="4h")
    until(lambda: azure.approvals(event_id), "the approval")
    assert maintaining.leaving.exists()
    assert event_id in maintaining.run("A whole maintenance")
    azure.simulator.advance(2)
    azure.end(event_id)
    until(lambda: not maintaining.leaving.exists(), "the recovery")
    assert len(azure.approvals(event_id)) == 1
