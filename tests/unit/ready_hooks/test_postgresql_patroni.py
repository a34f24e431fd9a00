# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook postgresql with scripts as patronictl and systemctl."""

from __future__ import annotations

import json
import os
import pwd
import time

import pytest

from ready_hooks.core.errors import HookError, OutOfTime
from ready_hooks.core.hook import WARNING
from support.ready_hooks.hook_host import HookHost

USER = pwd.getpwuid(os.geteuid()).pw_name
OTHER = {"Member": "db2", "Role": "Leader", "State": "running"}
PAIR = [
    {"Member": "db1", "Role": "Leader", "State": "running"},
    {"Member": "db2", "Role": "Replica", "State": "streaming", "Lag in MB": 0},
]
OWN = {"Member": "db1", "Role": "Replica", "State": "streaming", "Lag in MB": 0}
# the unit runs while the file has "active"
SYSTEMCTL = """case $* in
    *ActiveState*) echo "ActiveState=$(cat $FOLDER/unit)"; exit ;;
    show*) echo 'RequiredBy=multi-user.target shop.service'; exit ;;
esac
case $1 in
    stop) echo inactive >$FOLDER/unit ;;
    start) echo active >$FOLDER/unit ;;
esac"""


@pytest.fixture
def host(hook_host: HookHost) -> HookHost:
    hook_host.program("psql", "")
    hook_host.program("systemctl", SYSTEMCTL)
    # Patroni forgets a member that is stopped
    members = f"if grep -q inactive $FOLDER/unit; then echo '{json.dumps([OTHER])}'; else"
    hook_host.program("patronictl", f"{members} echo '{json.dumps([OWN, OTHER])}'; fi")
    (hook_host.folder / "unit").write_text("active\n", encoding="utf-8")
    return hook_host


def test_member_that_prepare_has_stopped_can_be_prepared_again_and_recovers(host: HookHost) -> None:
    hook = host.hook("postgresql", patroni="/etc/patroni/config.yml", member="db1", user=USER, stop=True)
    for _event in range(2):
        hook.prepare()
        assert (host.folder / "unit").read_text(encoding="utf-8") == "inactive\n"
        assert host.record("postgresql").load() == {"stopped": True}
    hook.recover()
    assert (host.folder / "unit").read_text(encoding="utf-8") == "active\n"
    assert host.record("postgresql").load() is None


def test_recover_at_the_end_of_its_time_says_that_the_member_is_not_back(host: HookHost) -> None:
    found = [{**OWN, "State": "starting"}, OTHER]
    host.program("patronictl", f"echo '{json.dumps(found)}'")
    host.record("postgresql").save({"was_leader": True})
    hook = host.hook("postgresql", seconds=10, patroni="/etc/patroni/config.yml", member="db1", user=USER)
    with pytest.raises(HookError, match="^db1: it is not back in the cluster"):
        hook.recover()


@pytest.mark.parametrize("stop", [True, False])
def test_check_names_the_units_that_stop_with_patroni(host: HookHost, stop: bool) -> None:
    hook = host.hook("postgresql", patroni="/etc/patroni/config.yml", member="db1", user=USER, stop=stop)
    warnings = [finding.text for finding in hook.check() if finding.severity == WARNING]
    assert ["patroni.service: systemd stops shop.service with it" in text for text in warnings] == [True] * stop


@pytest.mark.parametrize(
    ("seconds", "problem"),
    [
        (11, "^db2: only 10 s are left for a switchover, which has not begun"),
        (12, "^db2: it did not become the leader"),
    ],
)
def test_switchover_begins_and_asks_for_the_leader_only_while_it_has_time(
    host: HookHost, capsys: pytest.CaptureFixture[str], seconds: float, problem: str
) -> None:
    host.program("patronictl", f"case $* in *switchover*) touch $FOLDER/begun;; *) echo '{json.dumps(PAIR)}';; esac")
    hook = host.hook("postgresql", seconds, patroni="/etc/patroni/config.yml", member="db1", user=USER)
    with pytest.raises(HookError, match=problem):
        hook.prepare()
    assert ((host.folder / "begun").exists(), capsys.readouterr().err) == (seconds == 12, "")
    assert host.record("postgresql").load() is None


def test_switchover_that_has_not_ended_is_remembered(host: HookHost, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() * 8)
    host.program("patronictl", f"case $* in *switchover*) exec sleep 60;; *) echo '{json.dumps(PAIR)}';; esac")
    hook = host.hook("postgresql", 12, patroni="/etc/patroni/config.yml", member="db1", user=USER)
    with pytest.raises(OutOfTime, match="switchover"):
        hook.prepare()
    assert host.record("postgresql").load() == {"was_leader": True}
