# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook postgresql with scripts as psql and systemctl: the other server refuses each promotion."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from ready_hooks.core.arguments import from_mapping
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.event import from_environment
from ready_hooks.core.hook import Run
from ready_hooks.core.record import Record
from ready_hooks.hooks.postgresql import HOOK
from ready_hooks.hooks.postgresql.decision import Phase
from ready_hooks.hooks.postgresql.pair import Pair
from ready_hooks.hooks.postgresql.rejoin import Rejoin
from ready_hooks.hooks.postgresql.switchover import Switchover
from support.ready_hooks.clock import Clock
from support.ready_hooks.hook_host import HookHost

PSQL = """#!/bin/sh
case $(cat) in
    *pg_promote*) echo 'ERROR:  could not create file "promote"' >&2; exit 3 ;;
    *pg_is_in_recovery*) echo t ;;
    *_lsn*) echo 0/3000000 ;;
esac
"""
REPLICA = "host=db2"
# both answer as they have to before a switchover
PRIMARY_AND_REPLICA = """case $(cat) in
    CHECKPOINT) touch $FOLDER/checkpoint ;;
    *server_version_num*) echo 150000 ;;
    *pg_promote*) echo 't|77|f|0|t|streaming|0/3000000' ;;
    *system_identifier*) echo 77 ;;
    *_lsn*) echo 0/3000000 ;;
    *IDENTIFY_SYSTEM*) echo '77|1' ;;
    *) echo t ;;
esac"""
SYSTEMCTL = """#!/bin/sh
echo "$1" >>FOLDER/units
"""


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(str(tmp_path / "records"), "postgresql", "postgresql")


@pytest.fixture
def pair(tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """This server, which is stopped, and a standby that refuses each promotion."""
    for name, script in (("psql", PSQL), ("systemctl", SYSTEMCTL)):
        path = tmp_path / name
        path.write_text(script.replace("FOLDER", str(tmp_path)), encoding="utf-8")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    data = tmp_path / "data"
    data.mkdir()
    user = pwd.getpwuid(os.geteuid()).pw_name
    options = from_mapping(HOOK.options, {"user": user, "data_directory": str(data), "unit": "db.service"})
    return Pair(Run("postgresql", options, from_environment({}), Deadline(60), record, dry_run=False))


def data_in(phase: Phase) -> dict[str, Any]:
    return {"phase": phase.value, "other": "host=db2", "checkpoint": 0x2000000}


def test_first_promotion_that_is_refused_lets_this_server_be_the_primary_again(pair: Pair, record: Record) -> None:
    with pytest.raises(HookError, match="could not create"):
        Switchover(pair, data_in(Phase.STOPPING)).promote()
    assert record.load() == data_in(Phase.STOPPING)


def test_refusal_after_a_promotion_that_may_take_effect_starts_no_primary(
    pair: Pair, record: Record, tmp_path: Path
) -> None:
    record.save(data_in(Phase.PROMOTING))
    for _attempt in range(2):
        data = record.load()
        assert data is not None
        with pytest.raises(HookError, match="could not create"):
            Rejoin(pair, data).settle()
    assert record.load() == data_in(Phase.PROMOTING)
    assert not (tmp_path / "units").exists()


class SlowCheckpoint(Clock):
    """A clock by which the checkpoint takes 55 seconds."""

    def __init__(self, checkpoint: Path) -> None:
        super().__init__()
        self._checkpoint = checkpoint

    def __call__(self) -> float:
        return super().__call__() + (55.0 if self._checkpoint.exists() else 0.0)


def test_checkpoint_that_leaves_too_little_time_for_a_switchover_changes_nothing(hook_host: HookHost) -> None:
    hook_host.program("psql", PRIMARY_AND_REPLICA)
    hook_host.program("systemctl", "echo $* >>$FOLDER/units")
    user = pwd.getpwuid(os.geteuid()).pw_name
    hook_host.clock = SlowCheckpoint(hook_host.folder / "checkpoint")
    place = {"data_directory": str(hook_host.folder), "unit": "db.service"}
    run = hook_host.hook("postgresql", user=user, replica=REPLICA, primary_conninfo=REPLICA, **place).run
    with pytest.raises(OutOfTime, match="only 2 s are left"):
        Switchover(Pair(run), {"other": REPLICA}).begin()
    assert hook_host.record("postgresql").load() is None
    assert not (hook_host.folder / "units").exists()
