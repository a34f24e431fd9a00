# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks as children, where systemd does not run: what they inherit, their lines in the log, and their end."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from hook_runner.hooks.runs import HookRuns
from hook_runner.log import LogHandler, log_to, set_level
from hook_runner.records import Cause
from support.daemon.child_processes import die, in_child
from support.daemon.runs_harness import RunsHarness, marked
from support.wait import wait_until


@pytest.fixture
def in_units() -> bool:
    return False


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    log_to(LogHandler(stream))
    set_level("info")
    yield stream


def children() -> set[str]:
    """Return the processes that this one has started."""
    command = ["pgrep", "--parent", str(os.getpid())]
    return set(subprocess.run(command, capture_output=True, text=True, check=False).stdout.split())


def test_child_inherits_its_three_descriptors_only_and_has_a_session_of_its_own(runs: RunsHarness) -> None:
    read, write = os.pipe()
    os.set_inheritable(write, True)
    result = runs.run(
        runs.python(
            "fds = sorted(int(fd) for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd))\n"
            "print(fds, os.getcwd(), oct(os.umask(0)), os.getsid(0) == os.getpid())\n"
        )
    )
    os.close(read)
    os.close(write)
    assert result.output == "[0, 1, 2] / 0o22 True\n"


def test_lines_are_in_the_log_up_to_a_limit(runs: RunsHarness, log: io.StringIO) -> None:
    runs.run(runs.hook("echo 'first \033[31m'; yes | head -n 100000; printf last\n"), variables={"EVENT_ID": "E-1"})
    lines = log.getvalue().splitlines()
    assert lines[0].split()[1:] == ["prepare/10-hook:", "first", "?[31m", "AZURE_EVENT_ID=E-1"]
    assert any("further lines of this second are dropped" in line for line in lines)
    assert len(lines) < 5000


def test_incomplete_last_line_is_in_the_log(runs: RunsHarness, log: io.StringIO) -> None:
    runs.run(runs.hook("printf last\n"))
    assert "prepare/10-hook: last " in log.getvalue()


@pytest.mark.parametrize(
    ("end", "status"), [(lambda hook_runs: hook_runs.close(0.2), 0), (lambda _hook_runs: die(), -signal.SIGKILL)]
)
def test_children_end_with_the_daemon(runs: RunsHarness, end: Callable[[HookRuns], None], status: int) -> None:
    def live() -> None:
        hook_runs = runs.restarted()
        runs.start(runs.hook(f"trap '' TERM\necho up >{runs.folder}/up\nsleep 600\n"), hook_runs=hook_runs)
        runs.wait_for("up")
        end(hook_runs)

    assert in_child(live) == status
    wait_until(lambda: not marked(runs.mark), "the end of all processes")


def test_child_is_ended_at_its_limit(runs: RunsHarness) -> None:
    now = [0.0]
    hook_runs = runs.restarted(clock=lambda: now[0])
    runs.start(runs.hook(f"echo up >{runs.folder}/up\nsleep 60\n"), limit=30.0, hook_runs=hook_runs)
    runs.wait_for("up")
    assert hook_runs.collect_finished() == [] and (hook_runs.next_check_in() or 0) <= 30.0
    now[0] = 30.0
    result = runs.result(hook_runs=hook_runs)
    assert (result.exit_status, result.cause) == (-signal.SIGTERM, Cause.TIME_LIMIT)


def test_child_that_cannot_be_started_leaves_no_process(runs: RunsHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, blocking: bool) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    hook = runs.hook("exit 0\n")
    monkeypatch.setattr("hook_runner.hooks.children.os.set_blocking", fail)
    before = children()
    with pytest.raises(OSError, match="Too many open files"):
        runs.start(hook)
    assert children() == before


def test_no_run_of_an_earlier_daemon_is_found(runs: RunsHarness) -> None:
    assert runs.hook_runs.find_units() == []
    assert runs.hook_runs.obstacle(1) is None
