# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Name, properties, state and result of the unit of a hook. tests/system/hosts/test_hook_units.py has real ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hook_runner.config.settings import HookSettings
from hook_runner.hooks import units
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.one_run import RunOrder
from hook_runner.records import Cause

ORDER = RunOrder(7, Hook("prepare", "10-drain", "/x", HookSettings(unit={"MemoryMax": "1G"}), None), b"", {}, 65.0, 5.0)
NAME = "azure-scheduled-events-hook-prepare-10-drain-7.service"


def test_names_say_which_hook_it_is_and_hold_nothing_that_systemd_refuses() -> None:
    assert units.unit_name("prepare", "10-drain", 7) == NAME
    assert len(units.unit_name("emergency", "x" * 255, 1 << 50)) < 255
    assert units.unit_name("prepare", "a b@", 7) == "azure-scheduled-events-hook-prepare-a_b_-7.service"
    assert units.number_of(NAME) == 7
    assert units.number_of("azure-scheduled-events-hook-nowhere-10-drain-7.service") is None


def test_unit_ends_as_a_whole_and_after_the_daemon() -> None:
    found = units.properties(ORDER, NAME, 252)
    assert {
        "Type=exec",
        "RemainAfterExit=yes",
        "RuntimeMaxSec=65.000s",
        "TimeoutStopSec=5.000s",
        "KillMode=control-group",
        "OOMPolicy=continue",
        "Before=azure-scheduled-events.service",
        "After=network.target",
        "MemoryMax=1G",
    } <= set(found)


@pytest.mark.parametrize(
    "version, unknown",
    [(239, {"Type", "LogRateLimitIntervalSec", "LogRateLimitBurst", "OOMPolicy"}), (241, {"OOMPolicy"}), (257, set())],
)
def test_properties_that_an_older_systemd_does_not_know_are_left_out(version: int, unknown: set[str]) -> None:
    names = {each.partition("=")[0] for each in units.properties(ORDER, NAME, 257)}
    assert names - {each.partition("=")[0] for each in units.properties(ORDER, NAME, version)} == unknown


def test_variables_keep_their_value_in_the_file_for_the_unit(tmp_path: Path) -> None:
    hostile = "a $HOME `id` \"b\" 'c' \\ \\n #d\nlast"
    (tmp_path / "environment").write_bytes(units.environment_file({"ONE": hostile, "TWO": ""}))
    # the quotes mean the same to a shell
    script = f'. {tmp_path}/environment; printf "%s|%s" "$ONE" "$TWO"'
    assert subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout == hostile + "|"


def shown(active: str, sub: str, result: str, code: int, status: int, ended: float = 12.5) -> str:
    return (
        f"Id={NAME}\nActiveState={active}\nSubState={sub}\nResult={result}\nMainPID=0\nExecMainCode={code}\n"
        f"ExecMainStatus={status}\nExecMainStartTimestampMonotonic=10000000\n"
        f"ExecMainExitTimestampMonotonic={int(ended * 1e6)}\n"
    )


@pytest.mark.parametrize(
    "state, exit_status, cause",
    [
        (("active", "exited", "success", 1, 0), 0, Cause.NONE),
        (("active", "exited", "success", 2, 15), -15, Cause.NONE),
        (("failed", "failed", "exit-code", 1, 3), 3, Cause.NONE),
        (("failed", "failed", "signal", 2, 9), -9, Cause.NONE),
        (("failed", "failed", "core-dump", 3, 11), -11, Cause.NONE),
        (("failed", "failed", "timeout", 2, 9, 90.0), -9, Cause.TIME_LIMIT),
        (("failed", "failed", "timeout", 1, 7, 90.0), 7, Cause.TIME_LIMIT),
        (("failed", "failed", "timeout", 1, 0, 90.0), 0, Cause.NONE),
        # an operator stopped the unit, and the hook ignored TERM
        (("failed", "failed", "timeout", 2, 9, 20.0), -9, Cause.UNIT_STOPPED),
        (("failed", "failed", "exit-code", 1, 203), None, Cause.NOT_STARTED),
        (("failed", "failed", "resources", 0, 0), None, Cause.NOT_STARTED),
        (("inactive", "dead", "success", 0, 0), None, Cause.UNIT_STOPPED),
    ],
)
def test_only_exit_status_0_of_the_main_process_is_a_success(
    state: tuple[str, str, str, int, int], exit_status: int | None, cause: Cause
) -> None:
    found = units.parse_states(shown(*state))[NAME]
    result = units.result_of(found, 65.0, "text")
    assert found.has_ended
    assert (result.exit_status, result.cause, result.output) == (exit_status, cause, "text")
    assert bool(result.error) is (cause is not Cause.NONE)


@pytest.mark.parametrize(
    "active, sub", [("activating", "start"), ("active", "running"), ("deactivating", "stop-sigterm")]
)
def test_unit_with_processes_has_not_ended(active: str, sub: str) -> None:
    assert not units.parse_states(shown(active, sub, "success", 0, 0))[NAME].has_ended


def test_states_of_several_units_are_read_and_a_missing_value_is_an_error() -> None:
    text = shown("active", "exited", "success", 1, 0)
    assert list(units.parse_states(text + "\n" + text.replace("-7.", "-8."))) == [NAME, NAME.replace("-7.", "-8.")]
    assert units.parse_states("") == {}
    with pytest.raises(KeyError, match="ExecMainCode"):
        units.parse_states(text.replace("ExecMainCode", "Other"))
