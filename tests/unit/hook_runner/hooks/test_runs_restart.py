# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A hook in a unit outlives the daemon that started it, and the next daemon knows its result."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from hook_runner.config.settings import HookSettings
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.one_run import RunOrder
from hook_runner.hooks.runs import FoundUnit, HookRuns
from hook_runner.hooks.systemd import Stopping, Systemd
from hook_runner.hooks.units import DAEMON
from hook_runner.records import INTERRUPTED, Cause
from support.daemon.child_processes import die, fill_up, in_child, on_small_disk
from support.daemon.runs_harness import LONG, RunsHarness, marked
from support.wait import wait_until

UNIT = "azure-scheduled-events-hook-prepare-10-hook-1.service"
MEMO = b"noted"


@pytest.fixture
def in_units() -> bool:
    return True


def until_killed(runs: RunsHarness, path: str, delay: float | None = None) -> None:
    """Start a hook by a daemon of its own, and kill it after some seconds; None: when it has started the hook."""
    group = runs.folder / "group"

    def live() -> None:
        os.setsid()
        group.write_text(str(os.getpid()))
        hook_runs = runs.restarted()
        hook = Hook("prepare", "10-hook", path, HookSettings(), None)
        order = RunOrder(1, hook, b"{}", {"PATH": os.environ["PATH"], "MARK": runs.mark}, LONG, 5.0, MEMO)
        if delay is not None:
            signal.setitimer(signal.ITIMER_REAL, delay)  # SIGALRM ends it as suddenly as SIGKILL
        hook_runs.start_unit(order)
        die()

    assert in_child(live) in (-signal.SIGALRM, -signal.SIGKILL)
    # systemd-run goes on, as PID 1 would; its group shows it also while it is executed, without a command line
    look = ["pgrep", "--pgroup", group.read_text()]
    wait_until(lambda: subprocess.run(look, capture_output=True, check=False).returncode == 1, "the end of the group")


def waiting(runs: RunsHarness, then: str = "") -> str:
    script = f"echo up >{runs.folder}/up\nwhile [ ! -e {runs.folder}/go ]; do sleep 0.02; done\n"
    return runs.hook(script + then).path


def stubborn(runs: RunsHarness) -> str:
    """Return the path of a hook that ignores TERM, and makes the file `up` then."""
    return runs.hook(f"trap '' TERM\necho up >{runs.folder}/up\nwhile :; do sleep 0.05; done\n").path


def adopted(runs: RunsHarness, hook_runs: HookRuns | None = None) -> bool:
    """Adopt the unit of the hook; return False if there is none."""
    daemon = hook_runs or runs.hook_runs
    found = daemon.find_units()
    for unit in found:
        daemon.adopt(unit, LONG)
    return [unit.name for unit in found] == [UNIT]


def test_result_stays_until_it_was_recorded(runs: RunsHarness) -> None:
    until_killed(runs, runs.hook("exit 6\n").path)
    for _daemon in range(2):
        later = runs.restarted()
        assert adopted(runs, later) and runs.result(hook_runs=later).exit_status == 6
    later.remove_collected()
    wait_until(lambda: runs.systemd.units() == [], "the end of the unit")
    assert not adopted(runs) and runs.files() == []


def test_adopted_hook_can_be_ended(runs: RunsHarness) -> None:
    until_killed(runs, stubborn(runs))
    assert adopted(runs)
    runs.wait_for("up")
    runs.hook_runs.stop(1, 0.2)
    assert runs.result().exit_status == -signal.SIGKILL


def test_unit_that_another_program_stops_has_no_exit_status(runs: RunsHarness) -> None:
    until_killed(runs, waiting(runs))
    assert adopted(runs)
    runs.systemd.forget()
    runs.kill()
    result = runs.result()
    assert (result.exit_status, result.cause, result.state) == (None, Cause.UNIT_STOPPED, INTERRUPTED)


def test_unit_of_an_adopted_hook_that_an_operator_stops_is_interrupted(runs: RunsHarness) -> None:
    until_killed(runs, stubborn(runs))
    runs.wait_for("up")
    assert adopted(runs)
    (runs.systemd.folder / "units" / UNIT / "timeout").write_text("0.100s\n")
    subprocess.run([runs.systemd.folder / "systemctl", "stop", "--", UNIT], check=True)
    result = runs.result()
    assert (result.exit_status, result.cause) == (-signal.SIGKILL, Cause.UNIT_STOPPED)


def test_hook_has_run_once_and_is_known_or_has_not_run_whenever_the_daemon_is_killed(runs: RunsHarness) -> None:
    ran = runs.folder / "ran"
    path = runs.hook(f"echo x >>{ran}\nexit 5\n").path
    found = []
    # and at last when it has started the hook, however long that takes
    for delay in [*(number * 0.002 for number in range(1, 13)), 0.05, 0.1, None]:
        ran.write_text("")
        until_killed(runs, path, delay)
        later = runs.restarted()
        found.append(adopted(runs, later))
        if found[-1]:
            assert runs.result(hook_runs=later).exit_status == 5
            later.remove_collected()
            wait_until(lambda: runs.systemd.units() == [], "the end of the unit")
        assert ran.read_text() == ("x\n" if found[-1] else "")
    assert found[-1] is True


@pytest.mark.parametrize("what", ["host", "daemon"])
def test_no_hook_starts_for_a_while_when_systemd_ends_the_host_or_the_daemon(runs: RunsHarness, what: str) -> None:
    now = [0.0]
    hook_runs = runs.restarted(clock=lambda: now[0])
    runs.systemd.refuse("Transaction is destructive")
    if what == "host":
        runs.systemd.set_host_state("stopping")
    else:
        runs.systemd.set_unit_state(DAEMON, "deactivating", "stop-sigterm")
    with pytest.raises(Stopping):
        runs.start(runs.hook("exit 0\n"), hook_runs=hook_runs)
    assert "next start" in (hook_runs.obstacle(60) or "") and hook_runs.next_check_in() == 30.0
    now[0] = 30.0
    assert hook_runs.obstacle(60) is None and runs.files() == []


def test_unit_is_found_with_its_memo(runs: RunsHarness) -> None:
    until_killed(runs, waiting(runs))
    assert runs.hook_runs.find_units() == [FoundUnit(UNIT, 1, MEMO)]
    assert adopted(runs) and runs.hook_runs.obstacle(60) is None
    (runs.folder / "go").touch()
    assert runs.result().exit_status == 0


def test_files_of_a_unit_that_was_never_made_are_removed(runs: RunsHarness) -> None:
    until_killed(runs, waiting(runs))
    files = runs.files()
    (runs.folder / "run/runs/12.memo").write_bytes(MEMO)  # the daemon was killed before it started the unit
    assert len(runs.hook_runs.find_units()) == 1 and runs.files() == files
    (runs.folder / "go").touch()


def test_unit_that_is_not_needed_is_ended_before_another_hook_begins(runs: RunsHarness) -> None:
    until_killed(runs, waiting(runs))
    (runs.folder / "run/runs/1.memo").unlink()
    (unit,) = runs.hook_runs.find_units()
    assert unit == FoundUnit(UNIT, 1, b"")
    runs.hook_runs.end_unit(unit)
    assert runs.hook_runs.obstacle(60) == "the end of hooks that no record has"
    assert runs.hook_runs.next_check_in() is not None
    wait_until(lambda: runs.hook_runs.obstacle(60) is None, "the end of the unit")
    assert marked(runs.mark) == [] and runs.systemd.units() == [] and runs.files() == []


def test_unit_that_is_not_needed_delays_a_hook_for_a_part_of_its_time(runs: RunsHarness) -> None:
    until_killed(runs, stubborn(runs))
    runs.wait_for("up")
    (runs.systemd.folder / "units" / UNIT / "timeout").write_text("600.000s\n")
    now = [0.0]
    hook_runs = runs.restarted(clock=lambda: now[0])
    hook_runs.end_unit(*hook_runs.find_units())
    assert hook_runs.obstacle(40) is not None
    now[0] = 9.0
    assert hook_runs.obstacle(40) is not None and marked(runs.mark) != []
    now[0] = 10.0
    wait_until(lambda: hook_runs.obstacle(40) is None, "the end of the unit")
    assert marked(runs.mark) == [] and runs.systemd.units() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts units of systemd")
@pytest.mark.parametrize(
    "state, has_units", [("running", True), ("degraded", True), ("unknown", True), ("offline", False)]
)
def test_hooks_run_in_units_unless_systemd_does_not_run_the_host(
    runs: RunsHarness, state: str, has_units: bool
) -> None:
    runs.systemd.set_host_state(state)
    assert Systemd(str(runs.systemd.folder)).has_units() is has_units
    assert not Systemd(str(runs.folder)).has_units()


def test_units_of_other_kinds_do_not_hide_those_of_hooks(runs: RunsHarness) -> None:
    until_killed(runs, waiting(runs))
    other = runs.systemd.folder / "units" / "azure-scheduled-events-hook-limits.slice"
    other.mkdir()
    (other / "state").write_text(f"Id={other.name}\nActiveState=active\nSubState=active\n")
    assert adopted(runs)
    (runs.folder / "go").touch()
    assert runs.result().exit_status == 0


def test_states_of_hooks_that_cannot_be_read_are_not_those_of_none(runs: RunsHarness) -> None:
    unit = runs.systemd.folder / "units" / UNIT
    unit.mkdir()
    (unit / "state").write_text(f"Id={UNIT}\nActiveState=active\n")
    with pytest.raises(OSError, match="cannot be read"):
        runs.hook_runs.find_units()
    unit.rename(unit.with_name("removed"))


@pytest.mark.parametrize("what", ["boot", "units"])
def test_daemon_waits_for_an_answer_of_systemd(runs: RunsHarness, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    until_killed(runs, runs.hook("exit 0\n").path)
    ask = Systemd(str(runs.systemd.folder)).boot if what == "boot" else runs.hook_runs.find_units
    before = ask()
    runs.systemd.execute_again(0.5)
    assert before and ask() == before
    monkeypatch.setattr("hook_runner.hooks.systemd.START_TIMEOUT", 0.1)
    (runs.systemd.folder / "away").touch()
    with pytest.raises(OSError, match="no answer"):
        ask()


def test_unit_that_systemd_refuses_is_not_started(runs: RunsHarness) -> None:
    with pytest.raises(OSError, match="MemoryMax=lots"):
        runs.start(runs.hook("exit 0\n", unit={"MemoryMax": "lots"}))
    assert runs.files() == [] and runs.systemd.units() == []


def test_hook_starts_and_goes_on_while_systemd_executes_itself_again(runs: RunsHarness) -> None:
    runs.systemd.execute_again(0.5)
    runs.start(Hook("prepare", "10-hook", waiting(runs), HookSettings(), None))
    assert runs.systemd.units() == [UNIT]
    runs.systemd.execute_again(0.5)
    assert adopted(runs, runs.restarted()) and runs.hook_runs.collect_finished() == []
    (runs.folder / "go").touch()
    assert runs.result().exit_status == 0


def test_interpreter_that_is_missing_is_the_reason_of_the_failure(runs: RunsHarness) -> None:
    result = runs.run(runs.hook("#!/no/such/interpreter\n"))
    assert (result.exit_status, result.cause) == (None, Cause.NOT_STARTED) and "interpreter" in result.error


def test_files_of_a_run_are_for_their_owner_only_and_no_argument_has_a_value(runs: RunsHarness) -> None:
    runs.start(runs.hook("exit 0\n"), variables={"EVENT_ID": "E-77"}, environment={"PASSWORD": "secret"})
    folder = runs.folder / "run/runs"
    assert {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {"0o600"}
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    words = " ".join(runs.systemd.arguments(UNIT))
    assert "secret" not in words and "E-77" not in words
    runs.result()


def test_hook_outlives_its_daemon_and_its_run_directory(runs: RunsHarness) -> None:
    until_killed(runs, waiting(runs, "exit 6\n"))
    runs.wait_for("up")  # the stand-in for systemd has read the files of the hook
    subprocess.run(["rm", "-r", str(runs.folder / "run")], check=True)
    assert adopted(runs)
    (runs.folder / "go").touch()
    assert runs.result().exit_status == 6
    runs.hook_runs.remove_collected()
    assert runs.run(runs.hook("exit 0\n"), number=2).exit_status == 0


def test_full_run_directory_delays_a_hook_and_then_it_runs_as_a_child(runs: RunsHarness) -> None:
    disk = runs.folder / "disk"
    hook = runs.hook("cat; echo $EVENT_ID\n")

    def work() -> None:
        now = [1000.0]
        hook_runs = HookRuns(str(disk), lambda: now[0], Systemd(str(runs.systemd.folder)))
        assert hook_runs.obstacle(40) is None
        fill_up(disk / "others")
        # while no hook waits, its time does not pass
        assert hook_runs.obstacle(None) == "room in /run" and hook_runs.next_check_in() is None
        now[0] += 100
        assert hook_runs.obstacle(40) == "room in /run" and hook_runs.next_check_in() == 1101.0
        now[0] += 9
        assert hook_runs.obstacle(40) == "room in /run"
        now[0] += 1
        assert hook_runs.obstacle(40) is None
        order = RunOrder(1, hook, b"given ", {"EVENT_ID": "E-1"}, 40, 5.0)
        assert not hook_runs.start_unit(order)
        hook_runs.start_child(order)
        ((number, result),) = wait_until(hook_runs.collect_finished, "the result")
        assert (number, result.exit_status, result.output) == (1, 0, "given E-1\n")
        hook_runs.remove_collected()
        assert runs.systemd.units() == []
        (disk / "others").unlink()
        assert hook_runs.obstacle(40) is None and hook_runs.next_check_in() is None

    on_small_disk(disk, 1 << 17, work)


def test_hook_whose_input_finds_no_room_in_the_run_directory_runs_as_a_child(runs: RunsHarness) -> None:
    disk = runs.folder / "disk"
    hook = runs.hook("wc -c\n")

    def work() -> None:
        hook_runs = HookRuns(str(disk), systemd=Systemd(str(runs.systemd.folder)))
        assert hook_runs.obstacle(40) is None
        order = RunOrder(1, hook, bytes(200_000), {}, 40, 5.0)
        assert not hook_runs.start_unit(order)
        hook_runs.start_child(order)
        ((_number, result),) = wait_until(hook_runs.collect_finished, "the result")
        assert (result.exit_status, result.output.strip()) == (0, "200000")
        assert runs.systemd.units() == [] and list((disk / "runs").iterdir()) == []

    on_small_disk(disk, 1 << 17, work)
