# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The run of steps: their environment, their ends, and their output."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from support.salt.azure import Azure
from support.salt.job_process import is_running, pid_in
from support.salt.scripted import ScriptedImds
from support.salt.steps import ENVIRONMENT, append, python, require, shell
from support.salt.steps_minion import StepsMinion

# starts a child, one in a session of its own, and one that ignores SIGTERM, and waits for them
HANGING_FAMILY = """
import subprocess, sys
sleep = "import os, signal, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(300)"
detached = {"creationflags": 0x208} if sys.platform == "win32" else {"start_new_session": True}
deaf = sleep.replace("open", "signal.signal(signal.SIGTERM, signal.SIG_IGN); open")
for code, file, options in zip((sleep, sleep, deaf), sys.argv[1:], ({}, detached, detached)):
    child = subprocess.Popen([sys.executable, "-c", code, file], **options)
child.wait()
"""


def test_variables_are_sanitised(tmp_path: Path, scripted: ScriptedImds) -> None:
    minion = StepsMinion(tmp_path, scripted.endpoint)
    minion.configure(prepare=[{"command": shell(ENVIRONMENT)}])
    scripted.events = [
        dict(scripted.event("A\x7f\n$(touch x)", "vm1", "\ud800\0 b"), Description="\u2028" + "x" * 200000)
    ]
    answer = minion.call("prepare", "A\x7f\n$(touch x)")
    assert answer["outcome"] == "prepared"
    assert not (tmp_path / "x").exists()


def test_steps_run_in_order_and_stop_at_the_first_failure(minion: StepsMinion, azure: Azure) -> None:
    minion.configure(
        prepare=["echo one", {"name": "two", "command": python("print('why'); raise SystemExit(3)")}, "echo three"]
    )
    event_id = azure.announce("vm1")
    answer = minion.call("prepare", event_id)
    assert answer["outcome"] == "failed"
    assert [(step["outcome"], step["output"]) for step in answer["steps"]] == [
        ("done", "one"),
        ("failed", "why\n\nexit code 3"),
        ("skipped", "a step before it has failed"),
    ]
    (found,) = minion.call("status")["records"]
    assert (found["state"], found["steps_done"], found["this_boot"]) == ("prepare_failed", 1, True) and "why" in found[
        "why_not"
    ]


def test_failed_preparation_resumes_with_the_step_that_failed(
    minion: StepsMinion, azure: Azure, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    minion.configure(prepare=[append("one", minion.log), require(flag), append("three", minion.log)])
    event_id = azure.announce("vm1")
    assert minion.prepare(event_id) == "failed"
    flag.touch()
    assert minion.prepare(event_id) == "prepared"
    assert minion.ran == ["one", "three"]


def test_timeout_ends_everything_that_the_step_has_started(minion: StepsMinion, azure: Azure, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("plain", "session", "deaf")]
    minion.configure(prepare=[{"name": "hangs", "command": python(HANGING_FAMILY, *files), "timeout": 3}])
    answer = minion.call("prepare", azure.announce("vm1"))
    assert (answer["outcome"], answer["steps"][0]["outcome"]) == ("failed", "timeout")
    assert [file.name for file in files if is_running(pid_in(file))] == []


def test_processes_of_a_successful_step_stay(minion: StepsMinion, azure: Azure, tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; print('start', flush=True); "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)']); "
        "open(sys.argv[1], 'w').write(str(child.pid))"
    )
    minion.configure(prepare=[{"name": "service", "command": python(code, tmp_path / "pid")}])
    began = time.monotonic()
    assert minion.prepare(azure.announce("vm1")) == "prepared"
    pid = pid_in(tmp_path / "pid")
    assert is_running(pid) and time.monotonic() - began < 30
    # on Windows any signal ends a process at once
    os.kill(pid, signal.SIGTERM)


def test_output_is_bounded_and_its_end_is_kept(minion: StepsMinion, azure: Azure) -> None:
    code = "print('x' * 5000000 + '\\nlast')"
    minion.configure(prepare=[{"name": "talks", "command": python(code)}])
    (step,) = minion.call("prepare", azure.announce("vm1"))["steps"]
    assert step["outcome"] == "done" and step["output"].endswith("x\nlast") and len(step["output"]) < 2100
