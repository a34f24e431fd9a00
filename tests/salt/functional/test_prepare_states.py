# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The states prepared and recovered, and the SLS files azure_events.prepare and azure_events.recover, run by Salt's own state compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from salt.loader import minion_mods, utils

from support.salt.azure import Azure
from support.salt.loaded import ROOT, Counted


def apply(counted: Counted, sls: str, event_id: str | None = None, **words: Any) -> dict[str, Any]:
    """The one state of it."""
    pillar = {"azure_events_event": event_id} if event_id else {}
    counted.opts["grains"].update(shell="/bin/sh", path="/usr/bin:/bin")
    root = Path(counted.opts["root_dir"])
    counted.opts.update(
        file_roots={"base": [str(ROOT)]}, pillar_roots={"base": [str(root / "pillar")]}, __role="minion"
    )
    opts = dict(counted.opts, pillar=pillar)
    ran = minion_mods(opts, context={}, utils=utils(opts))["state.sls"]("azure_events." + sls, pillar=pillar, **words)
    assert isinstance(ran, dict), ran
    (state,) = ran.values()
    return dict(state)


def test_states_prepare_and_recover(counted: Counted, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    ret = counted.state("prepared", event_id)
    assert ret["result"] is True and ret["changes"]["prepare"] == {"old": "not prepared", "new": "prepared"}
    ret = counted.state("prepared", event_id)
    assert (ret["result"], ret["changes"]) == (True, {}) and ret["comment"].startswith("already_prepared: ")
    ret = counted.state("recovered", event_id)
    assert ret["result"] is False and event_id in ret["comment"]
    azure.cancel(event_id)
    ret = counted.state("recovered", event_id)
    assert ret["result"] is True and ret["changes"]["recover"] == {"old": "prepared", "new": "recovered"}
    assert counted.state("recovered", event_id)["changes"] == {}
    assert counted.ran == ["prepare " + event_id, "recover " + event_id]


def test_states_in_test_mode_say_what_would_run(counted: Counted, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    ret = counted.state("prepared", event_id, test=True)
    assert ret["result"] is None and list(ret["changes"]["steps"].values()) == ["would_run"]
    assert counted.ran == []
    counted.prepare(event_id)
    assert counted.state("prepared", event_id, test=True)["result"] is True
    azure.cancel(event_id)
    assert counted.state("recovered", event_id, test=True)["result"] is None


def test_state_that_fails_says_why_and_shows_what_ran(counted: Counted, azure: Azure) -> None:
    counted.configure(prepare=["true", "exit 7"])
    ret = counted.state("prepared", azure.announce("vm1"))
    assert ret["result"] is False and "exit code 7" in ret["comment"]
    assert list(ret["changes"]["steps"].values()) == ["done", "failed"]
    assert counted.state("prepared", "forged")["comment"].startswith("not_listed: ")
    assert counted.state("prepared", "x", by_hand="yes")["result"] is False


def test_sls_files_prepare_and_recover_for_an_event(counted: Counted, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    assert apply(counted, "prepare", event_id)["result"] is True
    azure.cancel(event_id)
    assert apply(counted, "recover", event_id)["result"] is True
    assert counted.ran == ["prepare " + event_id, "recover " + event_id]


@pytest.mark.parametrize("hostile", ["a'b\"c: {{ 7*7 }}", "x\n- name: y", "\x7f\ufffe" + "y" * 2000])
def test_sls_files_take_any_id(counted: Counted, hostile: str) -> None:
    ret = apply(counted, "prepare", hostile)
    assert ret["result"] is False and ret["comment"].startswith("not_listed: ") and ret["name"] == hostile


def test_sls_files_without_an_event_prepare_by_hand(counted: Counted) -> None:
    assert apply(counted, "prepare")["result"] is True
    assert [one["event_id"] for one in counted.call("status")["records"]] == [""]
    assert apply(counted, "recover")["result"] is True
    assert counted.ran == ["prepare", "recover"]
