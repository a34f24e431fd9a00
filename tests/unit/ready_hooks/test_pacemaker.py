# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook pacemaker with scripts as the programs of the cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ready_hooks.core.arguments import from_mapping
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from ready_hooks.core.event import from_environment
from ready_hooks.core.hook import Run
from ready_hooks.core.record import Record
from ready_hooks.hooks.pacemaker import HOOK
from support.ready_hooks.clock import Clock

CLUSTER = """\
<pacemaker-result><summary><current_dc present="true" with_quorum="true"/></summary>
<nodes><node name="a" online="true" pending="false"/></nodes></pacemaker-result>
"""
CONFIGURATION = """\
cat <<END
<cib><configuration><nodes><node uname="a"><instance_attributes>
<nvpair name="standby" value="{}"/>
</instance_attributes></node></nodes></configuration></cib>
END
"""
# scripts of cibadmin
STANDBY, ONLINE = CONFIGURATION.format("on"), CONFIGURATION.format("off")
NOT_CONNECTED = "echo 'Could not connect to the CIB API: Transport endpoint is not connected' >&2; exit 102"
RECORD = {"node": "a"}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    record = Record(str(tmp_path / "records"), "pacemaker", "pacemaker")
    record.save(RECORD)
    return record


@pytest.fixture
def recover(tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Run recover on node a, with a script for each answer of cibadmin; the last one repeats."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def program(name: str, script: str) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(*answers: str) -> None:
        cases = "".join(f"{number})\n{answer}\n;;\n" for number, answer in enumerate(answers[:-1], 1))
        asked = f"{tmp_path}/asked"
        program("cibadmin", f"echo >>{asked}\ncase $(wc -l <{asked}) in\n{cases}*)\n{answers[-1]}\n;;\nesac")
        clock = Clock()
        deadline = Deadline(60, clock, clock.sleep)
        options = from_mapping(HOOK.options, {"node": "a", "tool": "crm_standby", "stable_timeout": 0})
        HOOK(Run("pacemaker", options, from_environment({}), deadline, record, dry_run=False)).recover()

    program("crm_mon", f"cat <<END\n{CLUSTER}END")
    program("crm_standby", "")
    return run


@pytest.mark.parametrize("answer", [NOT_CONNECTED, "", "echo '<cib'", "echo '<cib/>'"])
def test_recover_keeps_the_record_if_the_configuration_is_unknown(
    recover: Callable[..., None], record: Record, answer: str
) -> None:
    with pytest.raises(HookError, match="cibadmin"):
        recover(answer)
    assert record.load() == RECORD


def test_recover_that_cannot_see_its_effect_keeps_the_record(recover: Callable[..., None], record: Record) -> None:
    with pytest.raises(HookError, match="no effect"):
        recover(STANDBY, NOT_CONNECTED)
    assert record.load() == RECORD


def test_recover_asks_again_for_its_effect_after_an_error(recover: Callable[..., None], record: Record) -> None:
    recover(STANDBY, NOT_CONNECTED, STANDBY, ONLINE)
    assert record.load() is None
