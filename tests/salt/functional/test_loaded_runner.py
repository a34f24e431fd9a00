# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The runner without minions: who is who, who may work, and what it does not believe. tests/salt/live has the rest."""

from __future__ import annotations

import getpass
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from azure_scheduled_events.changes import ABSENCES_NEEDED
from conftest import ROOT
from salt.config import DEFAULT_MASTER_OPTS, master_config
from salt.exceptions import CommandExecutionError, SaltInvocationError
from salt.loader import runner
from salt_lab.until import until

EVENT = {"event_id": "A1", "resources": ["vm1", "VM2", "_vm3", "vm10"], "changed_at": "2026-11-21T10:00:00Z", "change": "scheduled"}
PUBLIC = ("fleet", "look", "react", "maintain", "approve", "await_end")


@pytest.fixture
def runners(tmp_path: Path) -> Any:
    opts = DEFAULT_MASTER_OPTS.copy()
    folders = {"root_dir": tmp_path, "cachedir": tmp_path / "cache", "extension_modules": tmp_path / "ext", "conf_file": tmp_path / "master"}
    opts.update({name: str(path) for name, path in folders.items()}, runner_dirs=[str(ROOT / "_runners")])
    return runner(opts)


@pytest.fixture
def inside(runners: Any) -> dict[str, Any]:
    """What the runner's module has in it."""
    function: Any = inspect.unwrap(getattr(runners["azure_events.fleet"], "func", runners["azure_events.fleet"]))
    names: dict[str, Any] = function.__globals__
    return names


def work(inside: dict[str, Any]) -> list[str]:
    """The files of those that work on an event."""
    return os.listdir(os.path.join(inside["__opts__"]["cachedir"], "azure_events", "work"))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_function_shows_how_it_is_called_and_what_it_returns(runners: Any, name: str) -> None:
    text = inspect.getdoc(runners["azure_events." + name]) or ""
    assert "CLI Example:\n\n.. code-block:: bash\n\n    salt-run azure_events." + name in text
    assert "Returns" in text


def test_there_are_no_other_functions(runners: Any) -> None:
    assert {name for name in runners if name.startswith("azure_events.")} == {"azure_events." + name for name in PUBLIC}


def test_minions_are_known_by_whole_names_in_any_letter_case(inside: dict[str, Any]) -> None:
    names = {"a": "vm1", "b": "vm2", "c": "vm3", "d": "vm", "e": "vm100"}
    assert inside["_minions_of"](EVENT, names) == {"vm1": "a", "VM2": "b", "_vm3": "c", "vm10": None}


def test_name_that_is_taken_twice_in_the_fleet_counts_only_where_the_event_is_known(inside: dict[str, Any]) -> None:
    seen = {
        "here": {"azure_events": {"resource_name": "vm1", "events": [dict(EVENT, event_id="a1")]}},
        "elsewhere": {"azure_events": {"resource_name": "vm1", "events": []}},
        "unknown": {"azure_events": {"resource_name": None, "events": []}},
    }
    assert inside["_knowing"](seen, "A1") == {"here": "vm1"}


@pytest.mark.parametrize("event_id", ["", " ", "a\nb", "x" * 201, None, 7, ["A1"]])
@pytest.mark.parametrize("name", ["react", "maintain", "look"])
def test_what_is_no_id_is_refused(runners: Any, name: str, event_id: Any) -> None:
    with pytest.raises(SaltInvocationError, match="event_id"):
        runners["azure_events." + name](event_id)


def test_unknown_change_is_refused(runners: Any) -> None:
    with pytest.raises(SaltInvocationError, match="change: expected one of"):
        runners["azure_events.react"]("A1", "vm1", "exploded")


def test_one_event_is_worked_on_by_one_at_a_time(runners: Any, inside: dict[str, Any]) -> None:
    lock, unlock = inside["_lock"], inside["_unlock"]
    mine = lock("A1")
    assert mine and lock("a1") is None
    other = lock("B2")
    assert other
    assert runners["azure_events.react"]("A1", "vm1", "scheduled") == {"outcome": "running", "event_id": "A1"}
    assert runners["azure_events.maintain"]("A1")["outcome"] == "running"
    unlock("B2", other)
    unlock("A1", mine)
    again = lock("A1")
    assert again
    unlock("A1", again)
    assert work(inside) == []


def test_reaction_has_a_process_of_its_own_that_holds_the_lock_from_the_beginning(tmp_path: Path) -> None:
    """It is no fork: that of a reactor, which has threads, hangs now and then, and would hold the lock for ever."""
    told = "%s/began:\n  file.managed:\n    - contents: {{ pillar['azure_events'] | json | json }}\n" % tmp_path
    wait = "until it may go on:\n  cmd.run:\n    - name: while ! test -e %s/go; do sleep 0.05; done\n" % tmp_path
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "waiting.sls").write_text(told + wait)
    (tmp_path / "var/cache/salt/master/proc").mkdir(parents=True)
    config = {"root_dir": str(tmp_path), "conf_file": str(tmp_path / "master"), "user": getpass.getuser(), "file_roots": {"base": [str(tmp_path / "root")]}}
    settings = {"runner_dirs": [str(ROOT / "_runners")], "azure_events": {"orchestration": "waiting"}}
    (tmp_path / "master").write_text(json.dumps({**config, **settings}))
    here = runner(master_config(str(tmp_path / "master")))
    folder = tmp_path / "var/cache/salt/master/azure_events/work"
    assert here["azure_events.react"]("12 #34", "vm 1: '\"", "scheduled") == {"outcome": "started", "event_id": "12 #34"}
    try:
        assert here["azure_events.react"]("12 #34", "vm2", "scheduled")["outcome"] == "running"
        until((tmp_path / "began").exists, "the orchestration")
        assert here["azure_events.maintain"]("12 #34")["outcome"] == "running"
    finally:
        (tmp_path / "go").touch()
    until(lambda: not list(folder.iterdir()), "the end of it")
    given = json.loads((tmp_path / "began").read_text())
    assert (given["event_id"], given["minion"]) == ("12 #34", "vm 1: '\"")


def test_an_end_that_is_told_meanwhile_is_followed_by_one_more_maintenance(runners: Any, inside: dict[str, Any]) -> None:
    changes = ["gone", "gone", "started"]
    ran = []

    def orchestrate(mods: str, pillar: dict[str, Any]) -> dict[str, Any]:
        ran.append(pillar["azure_events"]["event_id"])
        for _time in range(2 if len(ran) == 1 else 1):
            assert runners["azure_events.react"]("a1", "vm1", changes.pop(0))["outcome"] == "running"
        return {"run": len(ran)}

    inside["__salt__"] = {"state.orchestrate": orchestrate}
    assert runners["azure_events.maintain"]("A1", "vm1") == {"run": 2}
    assert (ran, changes) == (["A1", "A1"], [])
    assert work(inside) == []


def test_lock_goes_with_the_process_that_holds_it(inside: dict[str, Any]) -> None:
    held = inside["_lock"]("A1")
    left = Path(held.name)
    inside["_unlock"]("A1", held)
    program = "import fcntl, os, sys; fcntl.flock(open(sys.argv[1], 'w'), fcntl.LOCK_EX); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program, str(left)], check=False, timeout=20)
    assert left.exists()
    mine = inside["_lock"]("A1")
    assert mine
    inside["_unlock"]("A1", mine)


def test_reaction_that_cannot_be_started_says_so_and_holds_nothing(runners: Any, inside: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside["sys"], "executable", "/nowhere/python")
    with pytest.raises(CommandExecutionError, match="A1 could not be started: .*/nowhere/python"):
        runners["azure_events.react"]("A1", "vm1", "scheduled")
    assert work(inside) == []


def test_settings_of_the_master_are_checked(inside: dict[str, Any]) -> None:
    inside["__opts__"]["azure_events"] = {"unknown_resources": "ignore"}
    with pytest.raises(SaltInvocationError, match="hold or approve"):
        inside["_settings"]()
    inside["__opts__"]["azure_events"] = None
    assert inside["_settings"]()["unknown_resources"] == "hold"


def test_seconds_of_the_master_may_be_words(inside: dict[str, Any]) -> None:
    inside["__opts__"]["azure_events"] = {"patience": "1h", "answer": "5s"}
    assert (inside["_settings"]()["patience"], inside["_settings"]()["answer"]) == (3600, 5)


WRONG: list[Any] = [{"patience": "soon"}, {"patience": -1}, {"answer": "0s"}, {"answer": True}, {"minions": ""}, {"orchestration": None}, "hold"]


@pytest.mark.parametrize("given", WRONG)
@pytest.mark.parametrize(("function", "words"), [("react", ()), ("maintain", ()), ("approve", ({"vm1": "a"},)), ("await_end", (["a"],))])
def test_wrong_setting_is_told_before_anything_is_done(
    runners: Any, inside: dict[str, Any], function: str, words: tuple[Any, ...], given: Any
) -> None:
    inside["__opts__"]["azure_events"] = given
    inside["_returns"] = None
    with pytest.raises(SaltInvocationError, match="azure_events: %s" % (next(iter(given)) if isinstance(given, dict) else "expected keys")):
        runners["azure_events." + function]("A1", *words)


LISTED = dict(EVENT, resources=["vm1", "vm2"], event_type="Reboot", status="Scheduled")


class Fleet:
    """Minions as the runner's commands find them: what watch_status says, who lists the event, and who should answer at all."""

    def __init__(self, inside: dict[str, Any], names: dict[str, str | None], listing: dict[str, Any], silent: tuple[str, ...] = ()) -> None:
        self.approvals: list[dict[str, Any]] = []
        self.names = names
        self.listing = listing
        self.silent = silent
        inside["_returns"] = self.returns
        inside["_expected"] = lambda tgt, tgt_type: {*self.names, *self.silent}

    def returns(self, tgt: Any, fun: str, tgt_type: str, kwarg: Any = None) -> dict[str, Any]:
        if fun == "azure_events.watch_status":
            found: dict[str, Any] = {one: {"azure_events": {"resource_name": name, "events": []}} for one, name in self.names.items()}
            return {one: {"ret": found[one], "retcode": 0} for one in found if one not in self.silent}
        if fun == "azure_events.get":
            return {one: {"ret": self.listing[one], "retcode": 0} for one in tgt if one in self.listing}
        self.approvals.append(kwarg)
        return {tgt[0]: {"ret": {"approvals": [{"outcome": "approved", "reason": "fine"}]}, "retcode": 0}}


@pytest.mark.parametrize("silent", [(), ("m2",)], ids=["answers watch_status", "is silent"])
@pytest.mark.parametrize("listing", [{"m1": LISTED}, {"m1": LISTED, "m2": None}], ids=["no answer", "not listed yet"])
def test_minion_that_did_not_say_that_it_lists_the_event_is_not_released(
    runners: Any, inside: dict[str, Any], silent: tuple[str, ...], listing: dict[str, Any]
) -> None:
    fleet = Fleet(inside, {"m1": "vm1", "m2": "vm2"}, {"m1": LISTED, "m2": LISTED})
    assert runners["azure_events.look"]("A1", "m1")["minions"] == {"vm1": "m1", "vm2": "m2"}
    fleet.listing, fleet.silent = listing, silent
    look = runners["azure_events.look"]("A1", "m1")
    assert (look["minions"], look["unknown_resources"], look["unready"]) == ({"vm1": "m1"}, [], ["m2"])
    with pytest.raises(CommandExecutionError, match="it may hit m2"):
        runners["azure_events.approve"]("A1", look["minions"], "approve")
    assert fleet.approvals == []


def test_silent_minion_whose_name_was_never_told_may_be_any_vm(runners: Any, inside: dict[str, Any]) -> None:
    fleet = Fleet(inside, {"m1": "vm1"}, {"m1": LISTED}, silent=("m9",))
    look = runners["azure_events.look"]("A1", "m1")
    assert (look["unknown_resources"], look["unready"], look["silent"]) == (["vm2"], ["m9"], ["m9"])
    fleet.silent = ()
    fleet.names["m9"] = None
    assert runners["azure_events.look"]("A1", "m1")["unready"] == ["m9"]
    fleet.names["m9"] = "vm9"
    assert runners["azure_events.look"]("A1", "m1")["unready"] == []
    # it is known from now on
    fleet.silent = ("m9",)
    assert runners["azure_events.look"]("A1", "m1")["unready"] == []


def test_only_names_that_no_minion_has_are_released_with_the_minions(runners: Any, inside: dict[str, Any]) -> None:
    fleet = Fleet(inside, {"m1": "vm1"}, {"m1": LISTED})
    runners["azure_events.approve"]("A1", {"vm1": "m1"}, "approve")
    runners["azure_events.approve"]("A1", {"vm1": "m1"}, "hold")
    assert [words["policy"]["rules"][0]["when"]["resources"]["all"] for words in fleet.approvals] == [["vm1", "vm2"], ["vm1"]]


def test_names_that_cannot_be_read_are_begun_anew(runners: Any, inside: dict[str, Any], tmp_path: Path) -> None:
    Fleet(inside, {"m1": "vm1"}, {"m1": LISTED})
    names = tmp_path / "cache" / "azure_events" / "names.json"
    names.parent.mkdir(parents=True)
    for broken in ("", "[]", "{"):
        names.write_text(broken)
        assert runners["azure_events.look"]("A1", "m1")["listed"] is True
        assert names.read_text() == '{"m1": "vm1"}'


def test_minion_without_the_module_is_none_of_these(runners: Any, inside: dict[str, Any]) -> None:
    fleet = Fleet(inside, {"m1": "vm1"}, {"m1": LISTED}, silent=("db1",))
    plain = fleet.returns

    def returns(tgt: Any, fun: str, tgt_type: str, kwarg: Any = None) -> dict[str, Any]:
        lacking = {"db1": {"ret": "'azure_events.watch_status' is not available.", "retcode": 254}}
        return {**plain(tgt, fun, tgt_type, kwarg), **(lacking if fun == "azure_events.watch_status" else {})}

    inside["_returns"] = returns
    look = runners["azure_events.look"]("A1", "m1")
    assert (look["unknown_resources"], look["unready"], look["silent"]) == (["vm2"], [], [])


def answering(inside: dict[str, Any], *rounds: dict[str, Any]) -> None:
    """Let minions answer like that, round after round, and no time pass between."""
    left = list(rounds)
    inside["_seen"] = lambda tgt, tgt_type: (set(), {})
    inside["_ask"] = lambda minions, event_id: {one: answer for one, answer in (left.pop(0) if len(left) > 1 else left[0]).items() if one in minions}
    inside["_PAUSE"] = 0.01


def test_end_needs_two_sights_and_nobody_who_lists_it(runners: Any, inside: dict[str, Any]) -> None:
    answering(inside, {"a": None, "b": EVENT}, {"a": None, "b": None}, {"a": None}, {"a": None, "b": None})
    assert runners["azure_events.await_end"]("A1", ["a", "b"])["over"] == ["a", "b"]


def test_minion_that_is_down_does_not_fail_the_wait(runners: Any, inside: dict[str, Any]) -> None:
    inside["_GRACE"] = 0.5
    answering(inside, {}, {"a": EVENT}, {}, {"a": None})
    ended = runners["azure_events.await_end"]("A1", ["a", "b"], patience=20)
    assert (ended["over"], ended["waiting"]) == (["a"], ["b"])


def test_who_listed_it_and_fell_silent_does_not_hold_up_what_all_others_know(runners: Any, inside: dict[str, Any]) -> None:
    inside["_GRACE"] = 0.5
    answering(inside, {"a": EVENT, "b": EVENT}, {"a": None}, {"a": None})
    ended = runners["azure_events.await_end"]("A1", ["a", "b"], patience=20)
    assert (ended["over"], ended["waiting"], ended["lost"]) == (["a"], ["b"], [])


@pytest.mark.parametrize("kind", ["Preempt", "terminate"])
def test_vm_that_is_no_more_ends_the_wait(runners: Any, inside: dict[str, Any], kind: str) -> None:
    inside["_GRACE"], inside["_LOST"] = 0.2, 0.5
    answering(inside, {"a": dict(EVENT, event_type=kind)}, {})
    ended = runners["azure_events.await_end"]("A1", ["a"], patience="1m")
    assert (ended["over"], ended["lost"]) == ([], ["a"])
    assert "count as lost" in ended["comment"] and "a" in ended["comment"]


def test_vm_that_never_answered_is_lost_by_what_the_orchestration_knows(runners: Any, inside: dict[str, Any]) -> None:
    inside["_LOST"] = 0.5
    answering(inside, {})
    assert runners["azure_events.await_end"]("A1", ["a"], patience=20, event_type="Preempt")["lost"] == ["a"]
    with pytest.raises(CommandExecutionError, match="did not say so"):
        runners["azure_events.await_end"]("A1", ["a"], patience=2, event_type="Reboot")


def test_a_neighbour_tells_of_the_end_of_a_vm_that_is_no_more(runners: Any, inside: dict[str, Any]) -> None:
    inside["_GRACE"] = 0.5
    listed = dict(EVENT, event_type="Terminate")
    answering(inside, {"next": listed, "far": None}, {"a": listed, "next": listed}, {"next": listed}, {"next": None, "far": None})
    inside["_seen"] = lambda tgt, tgt_type: (set(), {"a": {}, "next": {}, "far": {}})
    ended = runners["azure_events.await_end"]("A1", ["a"], patience=20)
    assert (ended["over"], ended["lost"]) == (["next"], ["a"])


@pytest.mark.parametrize("answers", [{}, {"a": EVENT}, {"a": None, "b": EVENT}])
def test_unknown_is_not_over(runners: Any, inside: dict[str, Any], answers: dict[str, Any]) -> None:
    inside["_GRACE"] = 0.1
    answering(inside, answers)
    with pytest.raises(CommandExecutionError, match="did not say so"):
        runners["azure_events.await_end"]("A1", ["a", "b"], patience=1)


def test_runner_counts_absences_as_the_helper_does(inside: dict[str, Any]) -> None:
    """A master has no helper to import the number from."""
    assert inside["_ABSENCES_NEEDED"] == ABSENCES_NEEDED
