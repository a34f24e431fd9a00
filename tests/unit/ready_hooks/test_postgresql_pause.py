# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook postgresql without a switchover, with scripts as psql and systemctl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ready_hooks.core.errors import HookError
from ready_hooks.core.hook import WARNING
from ready_hooks.hooks.postgresql import checks
from ready_hooks.hooks.postgresql.decision import State
from ready_hooks.hooks.postgresql.pair import Pair
from ready_hooks.hooks.postgresql.pause import Pause
from support.ready_hooks.hook_host import HookHost

# notes the commands that change something; each PgBouncer has the database shop
PSQL = """for target do :; done
sql=$(cat)
paused=$(test -e "$FOLDER/$target.paused" && echo 1 || echo 0)
case $sql in
    SHOW*) echo "shop|h|$paused|0"; exit ;;
    PAUSE*) touch "$FOLDER/$target.paused" ;;
    RESUME*) rm "$FOLDER/$target.paused" ;;
    CHECKPOINT) test ! -e "$FOLDER/full" || exit 1 ;;
esac
echo "$sql $target" >>$FOLDER/changes"""
SYSTEMCTL = """case $* in
    *ActiveState*) echo ActiveState=active ;;
    *) echo 'RequiredBy=multi-user.target shop.service' ;;
esac"""
FIRST, SECOND = "port=6432", "port=6433"
SHOP = '"shop";'


@pytest.fixture
def host(hook_host: HookHost) -> HookHost:
    hook_host.program("psql", PSQL)
    return hook_host


def pause(host: HookHost, pgbouncer: str, data: dict[str, Any]) -> Pause:
    return Pause(Pair(host.server(pgbouncer=pgbouncer)), data)


def changes(folder: Path) -> list[str]:
    return (folder / "changes").read_text(encoding="utf-8").splitlines()


def test_clients_wait_after_the_checkpoint_only(host: HookHost) -> None:
    own = "CHECKPOINT port=5432 dbname=postgres"
    pause(host, FIRST, {}).prepare(State.PRIMARY)
    assert changes(host.folder) == [own, f"PAUSE {SHOP} {FIRST}"]


def test_clients_do_not_wait_after_a_checkpoint_that_has_failed(host: HookHost) -> None:
    (host.folder / "full").touch()
    with pytest.raises(HookError):
        pause(host, FIRST, {}).prepare(State.PRIMARY)
    assert not (host.folder / "changes").exists()


def test_clients_of_another_pgbouncer_than_that_of_the_record_go_on(host: HookHost) -> None:
    data: dict[str, Any] = {}
    pause(host, FIRST, data).prepare(State.PRIMARY)
    pause(host, SECOND, data).prepare(State.PRIMARY)
    assert [line for line in changes(host.folder) if SHOP in line] == [
        f"PAUSE {SHOP} {FIRST}",
        f"RESUME {SHOP} {FIRST}",
        f"PAUSE {SHOP} {SECOND}",
    ]
    assert host.record("postgresql").load() == {"paused": {"target": SECOND, "databases": ["shop"]}}


@pytest.mark.parametrize(("options", "stops"), [({}, False), ({"stop": True}, True), ({"replica": "host=db2"}, True)])
def test_check_names_the_units_that_stop_with_a_server_that_prepare_stops(
    host: HookHost, options: dict[str, Any], stops: bool
) -> None:
    host.program("systemctl", SYSTEMCTL)
    found = checks.findings(Pair(host.server(**options)))
    warnings = [finding.text for finding in found if finding.severity == WARNING]
    assert ["db.service: systemd stops shop.service with it" in text for text in warnings] == [True] * stops
