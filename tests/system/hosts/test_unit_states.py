# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The table of docs/decisions.md on the oldest and the newest Debian."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from hook_runner.config.settings import HookSettings
from hook_runner.hooks import units
from hook_runner.hooks.discovery import Hook
from hook_runner.hooks.one_run import RunOrder, RunResult
from hook_runner.hooks.units import UnitState
from hook_runner.records import Cause
from support.daemon.hook_scripts import write_program
from support.hosts.host import Host
from support.hosts.lab import Lab
from support.hosts.rootfs import OTHER_SUITES, SUITE
from support.wait import wait_until

pytestmark = pytest.mark.all

PATH = "/root/10-hook"
LIMIT, KILL_AFTER = 5.0, 1.0


class Unit:
    """A unit of one host, with the properties of the product."""

    def __init__(self, host: Host, number: int) -> None:
        self.host = host
        self.name = units.unit_name("prepare", "10-hook", number)
        self._number = number

    def start(self, script: str, **limits: str) -> subprocess.CompletedProcess[str]:
        text = script if script.startswith("#!") else f"#!/bin/sh\n{script}\n"
        write_program(self.host.file(PATH), text)
        self.host.file("/root/input").write_text("given\n", encoding="utf-8")
        self.host.file("/root/environment").write_bytes(units.environment_file({"EVENT_ID": 'a "b" $c `d` \\'}))
        order = RunOrder(
            self._number, Hook("prepare", "10-hook", PATH, HookSettings(unit=limits), None), b"", {}, LIMIT, KILL_AFTER
        )
        version = int(self.host.run(["systemctl", "--version"]).stdout.split()[1])
        more = ["StandardInput=file:/root/input", "EnvironmentFile=/root/environment"]
        words = [f"--property={each}" for each in units.properties(order, self.name, version) + more]
        return self.host.run(["systemd-run", "--quiet", f"--unit={self.name}", *words, "--", PATH], check=False)

    def state(self) -> UnitState:
        return units.parse_states(self.host.run(["systemctl", "show", units.SHOW, "--", self.name]).stdout)[self.name]

    def result(self) -> RunResult:
        wait_until(lambda: self.state().has_ended, "the end of the unit")
        return units.result_of(self.state(), LIMIT, "")

    def output(self) -> str:
        words = ["journalctl", "--no-pager", "--output=cat", f"_SYSTEMD_UNIT={self.name}"]
        return self.host.run(words).stdout

    def end(self) -> None:
        for verb in ("stop", "reset-failed"):
            self.host.run(["systemctl", verb, "--", self.name], check=False)


@pytest.fixture(scope="module", params=[SUITE, *OTHER_SUITES])
def host(request: pytest.FixtureRequest, lab: Lab) -> Host:
    return lab.host(f"states-{request.param}", request.param)


_numbers = iter(range(1, 100))


@pytest.fixture
def unit(host: Host) -> Iterator[Unit]:
    made = Unit(host, next(_numbers))
    yield made
    made.end()
    assert not made.state().exists


def test_success_is_kept_and_the_hook_has_its_input_and_variables(unit: Unit) -> None:
    assert unit.start('cat; echo "$EVENT_ID"; exit 0').returncode == 0
    assert unit.result()[:1] == (0,)
    wait_until(lambda: unit.output() == 'given\na "b" $c `d` \\\n', unit.output)
    unit.host.run(["sleep", str(LIMIT + 1)])
    assert unit.result()[:1] == (0,)
    # the latter is what an upgrade of systemd does
    for verb in ("daemon-reload", "daemon-reexec"):
        unit.host.run(["systemctl", verb])
        assert unit.result()[:1] == (0,)


@pytest.mark.parametrize(
    "script, exit_status, cause",
    [
        ("exit 3", 3, Cause.NONE),
        ("kill -TERM $$", -15, Cause.NONE),
        ("kill -SEGV $$", -11, Cause.NONE),
        ("trap '' TERM; while :; do sleep 0.1; done", -9, Cause.TIME_LIMIT),
        ("trap 'exit 0' TERM; while :; do sleep 0.1; done", 0, Cause.NONE),
    ],
)
def test_end_of_a_hook_has_its_status_and_cause(unit: Unit, script: str, exit_status: int, cause: Cause) -> None:
    unit.start(script)  # systemd-run fails if the hook does so at once
    result = unit.result()
    assert (result.exit_status, result.cause) == (exit_status, cause)


def test_child_that_ignores_term_does_not_delay_the_result_and_ends_with_the_unit(unit: Unit) -> None:
    unit.start("(trap '' TERM; while :; do sleep 0.1; done) & exit 0")
    assert unit.result().exit_status == 0
    unit.end()
    assert unit.host.run(["pgrep", "--full", PATH], check=False).returncode == 1


def test_program_that_cannot_be_executed_is_not_started(unit: Unit) -> None:
    started = unit.start("#!/no/such/interpreter\n")
    state = unit.state()
    assert started.returncode != 0 if not state.exists else unit.result().cause is Cause.NOT_STARTED


def test_wrong_limit_is_refused_with_the_reason(unit: Unit) -> None:
    started = unit.start("exit 0", MemoryMax="lots")
    assert started.returncode != 0 and "MemoryMax" in started.stderr and not unit.state().exists


def test_unit_that_was_stopped_has_no_result(unit: Unit) -> None:
    unit.start("sleep 60")
    unit.host.run(["systemctl", "stop", unit.name])
    result = unit.result()
    assert (result.exit_status, result.cause) == (None, Cause.UNIT_STOPPED)


def test_eight_units_at_once_have_their_own_results(host: Host) -> None:
    made = [Unit(host, next(_numbers)) for _unit in range(8)]
    for each in made:
        each.start("sleep 0.5; exit 3")
    assert [each.result().exit_status for each in made] == [3] * 8
    for each in made:
        each.end()


def test_full_run_refuses_another_unit_and_keeps_the_results_of_others(host: Host, unit: Unit) -> None:
    ended, running = Unit(host, next(_numbers)), Unit(host, next(_numbers))
    ended.start("exit 3")
    assert ended.result().exit_status == 3
    running.start("until test -e /root/go; do sleep 0.1; done; exit 4")
    with host.full_run():
        assert unit.start("exit 0").returncode != 0 and not unit.state().exists
        host.file("/root/go").touch()
        assert (ended.result().exit_status, running.result().exit_status) == (3, 4)
    ended.end()
    running.end()


def test_reboot_ends_the_unit_and_forgets_it(unit: Unit) -> None:
    unit.start("sleep 60")
    unit.host.reboot()
    assert not unit.state().exists
