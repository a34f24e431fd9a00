# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook postgresql with scripts as psql and systemctl: the other server refuses each promotion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.record import Record
from ready_hooks.hooks.postgresql.decision import Phase
from ready_hooks.hooks.postgresql.pair import Pair
from ready_hooks.hooks.postgresql.rejoin import Rejoin
from ready_hooks.hooks.postgresql.switchover import Switchover
from support.ready_hooks.clock import Clock
from support.ready_hooks.hook_host import HookHost

PSQL = """case $(cat) in
    *pg_promote*) echo 'ERROR:  could not create file "promote"' >&2; exit 3 ;;
    *pg_is_in_recovery*) echo t ;;
    *_lsn*) echo 0/3000000 ;;
esac"""
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
SYSTEMCTL = "echo $* >>$FOLDER/units"


@pytest.fixture
def record(hook_host: HookHost) -> Record:
    return hook_host.record("postgresql")


@pytest.fixture
def pair(hook_host: HookHost) -> Pair:
    """This server, which is stopped, and a standby that refuses each promotion."""
    hook_host.program("psql", PSQL)
    hook_host.program("systemctl", SYSTEMCTL)
    return Pair(hook_host.server())


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


def test_dry_run_that_continues_a_switchover_promotes_nothing(pair: Pair, record: Record) -> None:
    pair.run.dry_run = True
    Switchover(pair, data_in(Phase.PROMOTING)).promote()
    assert record.load() is None


class SlowCheckpoint(Clock):
    """A clock by which the checkpoint takes 55 seconds."""

    def __init__(self, checkpoint: Path) -> None:
        super().__init__()
        self._checkpoint = checkpoint

    def __call__(self) -> float:
        return super().__call__() + (55.0 if self._checkpoint.exists() else 0.0)


def test_checkpoint_that_leaves_too_little_time_for_a_switchover_changes_nothing(hook_host: HookHost) -> None:
    hook_host.program("psql", PRIMARY_AND_REPLICA)
    hook_host.program("systemctl", SYSTEMCTL)
    hook_host.clock = SlowCheckpoint(hook_host.folder / "checkpoint")
    pair = Pair(hook_host.server(replica=REPLICA, primary_conninfo=REPLICA))
    with pytest.raises(OutOfTime, match="only 2 s are left"):
        Switchover(pair, {"other": REPLICA}).begin()
    assert hook_host.record("postgresql").load() is None
    assert not (hook_host.folder / "units").exists()
