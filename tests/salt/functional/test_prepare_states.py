# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The states prepared and recovered, and the SLS files prepare and recover, run by Salt's compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from salt.loader import minion_mods, utils

from support.salt.azure import Azure
from support.salt.loaded import ROOT, CountingMinion
from support.salt.step_commands import SUCCEED


def apply(counting: CountingMinion, sls: str, event_id: str | None = None, **words: Any) -> dict[str, Any]:
    """Return its only state."""
    pillar = {"azure_events_event": event_id} if event_id else {}
    counting.use_the_shell()
    root = Path(counting.opts["root_dir"])
    counting.opts.update(
        file_roots={"base": [str(ROOT)]}, pillar_roots={"base": [str(root / "pillar")]}, __role="minion"
    )
    opts = dict(counting.opts, pillar=pillar)
    ran = minion_mods(opts, context={}, utils=utils(opts))["state.sls"]("azure_events." + sls, pillar=pillar, **words)
    assert isinstance(ran, dict), ran
    (state,) = ran.values()
    return dict(state)


def test_states_prepare_and_recover(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    ret = counting.state("prepared", event_id)
    assert ret["result"] is True and ret["changes"]["prepare"] == {"old": "not prepared", "new": "prepared"}
    ret = counting.state("prepared", event_id)
    assert (ret["result"], ret["changes"]) == (True, {}) and ret["comment"].startswith("already_prepared: ")
    ret = counting.state("recovered", event_id)
    assert ret["result"] is False and event_id in ret["comment"]
    azure.cancel(event_id)
    ret = counting.state("recovered", event_id)
    assert ret["result"] is True and ret["changes"]["recover"] == {"old": "prepared", "new": "recovered"}
    assert counting.state("recovered", event_id)["changes"] == {}
    assert counting.ran == ["prepare " + event_id, "recover " + event_id]


def test_states_in_test_mode_show_the_steps(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    ret = counting.state("prepared", event_id, test=True)
    assert ret["result"] is None and list(ret["changes"]["steps"].values()) == ["would_run"]
    assert counting.ran == []
    counting.prepare(event_id)
    assert counting.state("prepared", event_id, test=True)["result"] is True
    azure.cancel(event_id)
    assert counting.state("recovered", event_id, test=True)["result"] is None


def test_failed_state_shows_the_reason_and_the_steps(counting: CountingMinion, azure: Azure) -> None:
    counting.configure(prepare=[SUCCEED, "exit 7"])
    ret = counting.state("prepared", azure.announce("vm1"))
    assert ret["result"] is False and "exit code 7" in ret["comment"]
    assert list(ret["changes"]["steps"].values()) == ["done", "failed"]
    assert counting.state("prepared", "forged")["comment"].startswith("not_listed: ")
    assert counting.state("prepared", "x", by_hand="yes")["result"] is False


def test_sls_files_prepare_and_recover_for_an_event(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    assert apply(counting, "prepare", event_id)["result"] is True
    azure.cancel(event_id)
    assert apply(counting, "recover", event_id)["result"] is True
    assert counting.ran == ["prepare " + event_id, "recover " + event_id]


@pytest.mark.parametrize("hostile", ["a'b\"c: {{ 7*7 }}", "x\n- name: y", "\x7f\ufffe" + "y" * 2000])
def test_sls_files_take_any_id(counting: CountingMinion, hostile: str) -> None:
    ret = apply(counting, "prepare", hostile)
    assert ret["result"] is False and ret["comment"].startswith("not_listed: ") and ret["name"] == hostile


def test_sls_files_without_an_event_prepare_by_hand(counting: CountingMinion) -> None:
    assert apply(counting, "prepare")["result"] is True
    assert [one["event_id"] for one in counting.call("status")["records"]] == [""]
    assert apply(counting, "recover")["result"] is True
    assert counting.ran == ["prepare", "recover"]
