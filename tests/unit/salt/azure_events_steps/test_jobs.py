# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Concurrent jobs of one minion, and killed ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from azure_events_steps.answers import Job
from azure_events_steps.preparation import prepare
from azure_events_steps.recovery import recover
from support.salt.azure import Azure
from support.salt.job_process import JobProcess, is_running, pid_in
from support.salt.steps import WINDOWS, append, python, sleep, slow_append
from support.salt.steps_minion import StepsMinion
from support.wait import wait_until


def test_two_jobs_prepare_once(minion: StepsMinion, azure: Azure) -> None:
    minion.configure(prepare=[{"command": slow_append("once", minion.log)}])
    event_id = azure.announce("vm1")
    with JobProcess(minion, "prepare", event_id) as first, JobProcess(minion, "prepare", event_id) as second:
        assert sorted([first.outcome(), second.outcome()]) == ["already_prepared", "prepared"]
    assert minion.ran == ["once"]


def test_two_jobs_that_are_threads_of_one_process_prepare_once(minion: StepsMinion, azure: Azure) -> None:
    """As on a minion with ``multiprocessing: False``."""
    minion.configure(prepare=[{"command": slow_append("once", minion.log)}])
    event_id = azure.announce("vm1")
    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(minion.prepare, [event_id, event_id])) == ["already_prepared", "prepared"]
    assert minion.ran == ["once"]


def test_two_jobs_recover_once(minion: StepsMinion, azure: Azure) -> None:
    minion.configure(recover=[{"command": slow_append("once", minion.log)}], prepare=[])
    event_id = azure.announce("vm1")
    minion.prepare(event_id)
    azure.cancel(event_id)
    with JobProcess(minion, "recover", event_id) as first, JobProcess(minion, "recover", event_id) as second:
        assert sorted([first.outcome(), second.outcome()]) == ["not_prepared", "recovered"]
    assert minion.ran == ["once"]


def test_waiting_job_gives_up_in_time_and_names_the_other_event(minion: StepsMinion, azure: Azure) -> None:
    event_id, other = azure.announce("vm1"), azure.announce("vm1", kind="Freeze")
    minion.configure(prepare=[{"command": sleep(300)}])
    late = minion.minion(lock_timeout=0.2)
    with JobProcess(minion, "prepare", event_id) as running:
        wait_until(lambda: minion.call("status")["working"] == event_id, "a job at work")
        wait_until(lambda: [one["state"] for one in minion.call("status")["records"]] == ["preparing"], "its record")
        answer = prepare(late, Job("prepare", other))
        assert answer["outcome"] == "busy" and event_id in answer["reason"]
        assert recover(late, Job("recover", None))["outcome"] == "busy"
        running.kill()
    assert minion.call("status")["working"] is None


@pytest.mark.parametrize("then", ["prepare", "recover"])
def test_after_a_killed_preparation(minion: StepsMinion, azure: Azure, tmp_path: Path, then: str) -> None:
    flag, pid = tmp_path / "flag", tmp_path / "pid"
    code = (
        "import os, sys, time; os.path.exists(sys.argv[1]) or "
        "(open(sys.argv[2], 'w').write(str(os.getpid())), time.sleep(300))"
    )
    minion.configure(
        prepare=[append("one", minion.log), {"command": python(code, flag, pid)}, append("three", minion.log)],
        recover=[append("recovered", minion.log)],
    )
    event_id = azure.announce("vm1")
    with JobProcess(minion, "prepare", event_id) as running:
        step = pid_in(pid)
        running.kill()
    # the processes of the job end with it; otherwise a second job would run concurrently
    wait_until(lambda: not is_running(step), "the end of the step")
    assert [one["state"] for one in minion.call("status")["records"]] == ["preparing"]
    assert minion.approve(event_id, "vm1") == "not_prepared"
    flag.touch()
    if then == "prepare":
        assert minion.prepare(event_id) == "prepared"
        assert minion.ran == ["one", "three"]
    else:
        azure.cancel(event_id)
        assert minion.recover(event_id) == "recovered"
        assert minion.ran == ["one", "recovered"]


@pytest.mark.skipif(WINDOWS, reason="Windows ends the processes of a job with it")
def test_job_waits_until_the_processes_of_a_killed_job_have_ended(minion: StepsMinion, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    stubborn = (
        "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(300)"
    )
    code = "import os, sys; sys.exit(os.path.exists('/proc/' + open(sys.argv[1]).read()))"
    minion.configure(prepare=[{"command": python(stubborn, pid)}], recover=[{"command": python(code, pid)}])
    with JobProcess(minion, "prepare", None) as running:
        pid_in(pid)
        running.kill()
        assert minion.recover() == "recovered"
    assert minion.call("status")["working"] is None
