# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Steps: their kinds, their ends, concurrent jobs of one minion, and killed jobs."""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from azure_events_steps.answers import Job
from azure_events_steps.configuration import parse_configuration
from azure_events_steps.minion import Minion as StepsMinion
from azure_events_steps.preparation import prepare
from azure_events_steps.recovery import recover
from support.salt.azure import Azure
from support.salt.job_process import job
from support.salt.loaded import ROOT, CountingMinion
from support.salt.scripted import ScriptedImds
from support.salt.step_commands import ENVIRONMENT, append, python, require, shell, sleep, slow_append
from support.wait import wait_until

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


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def pid_in(file: Path) -> int:
    wait_until(lambda: file.exists() and file.read_text().strip(), f"the id of a process in {file}")
    return int(file.read_text())


def steps_of(counting: CountingMinion, event_id: str) -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in counting.call("prepare", event_id)["steps"]}


def test_command_gets_the_event_in_its_environment(counting: CountingMinion, azure: Azure, tmp_path: Path) -> None:
    counting.configure(prepare=[f"{ENVIRONMENT} > {tmp_path / 'env'}"])
    event_id = azure.announce("vm1", "vm2")
    counting.prepare(event_id)
    found = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    assert {
        key: found[key]
        for key in ("EVENT_ID", "EVENT_TYPE", "EVENT_STATUS", "EVENT_RESOURCES", "EVENT_RESOURCE", "EVENT_STAGE")
    } == {
        "EVENT_ID": event_id,
        "EVENT_TYPE": "Reboot",
        "EVENT_STATUS": "Scheduled",
        "EVENT_RESOURCES": "vm1 vm2",
        "EVENT_RESOURCE": "vm1",
        "EVENT_STAGE": "prepare",
    }


def test_recovery_gets_the_recorded_fields_of_the_event(counting: CountingMinion, azure: Azure, tmp_path: Path) -> None:
    counting.configure(recover=[f"{ENVIRONMENT} > {tmp_path / 'env'}"])
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    azure.cancel(event_id)
    assert counting.recover(event_id) == "recovered"
    assert {"EVENT_ID=" + event_id, "EVENT_TYPE=Reboot", "EVENT_STAGE=recover", "EVENT_RESOURCES=vm1"} <= set(
        (tmp_path / "env").read_text().splitlines()
    )


def test_variables_are_sanitised(tmp_path: Path, scripted: ScriptedImds) -> None:
    minion = CountingMinion(tmp_path, scripted.endpoint)
    minion.configure(prepare=[{"command": shell(ENVIRONMENT)}])
    scripted.events = [
        dict(scripted.event("A\x7f\n$(touch x)", "vm1", "\ud800\0 b"), Description="\u2028" + "x" * 200000)
    ]
    answer = minion.call("prepare", "A\x7f\n$(touch x)")
    assert answer["outcome"] == "prepared"
    assert not (tmp_path / "x").exists()


def test_steps_run_in_order_and_stop_at_the_first_failure(counting: CountingMinion, azure: Azure) -> None:
    counting.configure(
        prepare=["echo one", {"name": "two", "command": python("print('why'); raise SystemExit(3)")}, "echo three"]
    )
    event_id = azure.announce("vm1")
    answer = counting.call("prepare", event_id)
    assert answer["outcome"] == "failed"
    assert [(step["outcome"], step["output"]) for step in answer["steps"]] == [
        ("done", "one"),
        ("failed", "why\n\nexit code 3"),
        ("skipped", "a step before it has failed"),
    ]
    (found,) = counting.call("status")["records"]
    assert (found["state"], found["steps_done"], found["this_boot"]) == ("prepare_failed", 1, True) and "why" in found[
        "why_not"
    ]


def test_failed_preparation_resumes_with_the_step_that_failed(
    counting: CountingMinion, azure: Azure, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    counting.configure(prepare=[append("one", counting.log), require(flag), append("three", counting.log)])
    event_id = azure.announce("vm1")
    assert counting.prepare(event_id) == "failed"
    flag.touch()
    assert counting.prepare(event_id) == "prepared"
    assert counting.ran == ["one", "three"]


def test_recovery_that_fails_is_tried_again_and_the_record_stays(
    counting: CountingMinion, azure: Azure, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    counting.configure(recover=[require(flag)])
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    azure.cancel(event_id)
    assert counting.recover(event_id) == "failed"
    assert [one["state"] for one in counting.call("status")["records"]] == ["recover_failed"]
    assert [result["outcome"] for result in counting.call("sweep")["results"]] == ["failed"]
    flag.touch()
    assert [result["outcome"] for result in counting.call("sweep")["results"]] == ["recovered"]


def test_program_that_does_not_exist_is_a_failure(counting: CountingMinion, azure: Azure) -> None:
    counting.configure(prepare=[{"command": ["/no/such/program"]}])
    assert "cannot be started" in counting.call("prepare", azure.announce("vm1"))["reason"]


def test_timeout_ends_everything_that_the_step_has_started(
    counting: CountingMinion, azure: Azure, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("plain", "session", "deaf")]
    counting.configure(prepare=[{"name": "hangs", "command": python(HANGING_FAMILY, *files), "timeout": 3}])
    answer = counting.call("prepare", azure.announce("vm1"))
    assert (answer["outcome"], answer["steps"][0]["outcome"]) == ("failed", "timeout")
    assert [file.name for file in files if is_running(pid_in(file))] == []


def test_processes_of_a_successful_step_stay(counting: CountingMinion, azure: Azure, tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; print('start', flush=True); "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)']); "
        "open(sys.argv[1], 'w').write(str(child.pid))"
    )
    counting.configure(prepare=[{"name": "service", "command": python(code, tmp_path / "pid")}])
    began = time.monotonic()
    assert counting.prepare(azure.announce("vm1")) == "prepared"
    pid = pid_in(tmp_path / "pid")
    assert is_running(pid) and time.monotonic() - began < 30
    # on Windows any signal ends a process at once
    os.kill(pid, signal.SIGTERM)


def test_output_is_bounded_and_its_end_is_kept(counting: CountingMinion, azure: Azure) -> None:
    code = "print('x' * 5000000 + '\\nlast')"
    counting.configure(prepare=[{"name": "talks", "command": python(code)}])
    (step,) = counting.call("prepare", azure.announce("vm1"))["steps"]
    assert step["outcome"] == "done" and step["output"].endswith("x\nlast") and len(step["output"]) < 2100


def test_output_of_a_command_is_unicode(counting: CountingMinion, azure: Azure) -> None:
    code = "import sys; sys.stdout.buffer.write((sys.argv[1] + ' \\u00fc\\u20ac\\u6f22').encode())"
    counting.configure(prepare=[{"name": "talks", "command": python(code, "\u00fc\u6f22")}])
    (step,) = counting.call("prepare", azure.announce("vm1"))["steps"]
    assert (step["outcome"], step["output"]) == ("done", "\u00fc\u6f22 \u00fc\u20ac\u6f22")


def test_function_is_a_step(counting: CountingMinion, azure: Azure, tmp_path: Path) -> None:
    counting.use_the_shell()
    counting.configure(
        prepare=[
            {"function": "file.write", "args": [str(tmp_path / "a"), "text"]},
            {"function": "test.echo", "kwargs": {"text": "hello \u00fc\u6f22"}},
        ]
    )
    steps = steps_of(counting, azure.announce("vm1"))
    assert {name: step["outcome"] for name, step in steps.items()} == {"file.write": "done", "test.echo": "done"}
    assert steps["test.echo"]["output"] == "hello \u00fc\u6f22" and (tmp_path / "a").read_text() == "text\n"


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ({"function": "test.false"}, "false"),
        ({"function": "cmd.run", "args": ["exit 3"]}, ""),
        ({"function": "test.exception", "kwargs": {"message": "why"}}, "why"),
        ({"function": "no.such"}, "not available"),
        ({"function": "test.sleep", "args": [60], "timeout": 1}, "ended after 1 seconds"),
        ({"sls": "no_such_sls"}, "no_such_sls"),
        ({"sls": "fails"}, "on purpose"),
    ],
    ids=["false", "retcode", "exception", "missing", "timeout", "missing-sls", "sls"],
)
def test_function_or_sls_that_fails_is_a_failure(
    counting: CountingMinion, azure: Azure, tmp_path: Path, step: dict[str, Any], text: str
) -> None:
    (tmp_path / "fails.sls").write_text("x:\n  test.fail_without_changes:\n    - comment: on purpose\n")
    prepared_for_states(counting, tmp_path)
    counting.configure(prepare=[step])
    answer = counting.call("prepare", azure.announce("vm1"))
    assert answer["outcome"] == "failed" and text in answer["steps"][0]["output"]


def prepared_for_states(counting: CountingMinion, root: Path) -> None:
    counting.use_the_shell()
    counting.opts.update(
        file_roots={"base": [str(root), str(ROOT)]}, pillar_roots={"base": [str(root / "pillar")]}, __role="minion"
    )


def test_sls_step_runs_concurrently_and_never_as_a_dry_run(
    counting: CountingMinion, azure: Azure, tmp_path: Path
) -> None:
    text = (
        "x:\n  file.managed:\n    - name: %s\n    - contents: {{ pillar['azure_events_event'] }} {{ pillar['who'] }}\n"
    )
    (tmp_path / "leave.sls").write_text(text % (tmp_path / "left"))
    prepared_for_states(counting, tmp_path)
    counting.opts["test"] = True
    counting.configure(prepare=[{"sls": "leave", "pillar": {"who": "me"}}])
    # a file by which Salt detects a state run of another job
    step_runner = Path(counting.opts["cachedir"], "proc")
    step_runner.mkdir(parents=True)
    import salt.payload

    job = {
        "fun": "state.sls",
        "jid": "20261122000000000000",
        "pid": os.getppid(),
        "arg": [],
        "tgt": "*",
        "tgt_type": "glob",
        "ret": "",
        "user": "root",
    }
    (step_runner / "20261122000000000000").write_bytes(salt.payload.dumps(job))
    event_id = azure.announce("vm1")
    assert counting.prepare(event_id) == "prepared"
    assert (tmp_path / "left").read_text().split() == [event_id, "me"]


def test_two_jobs_prepare_once(counting: CountingMinion, azure: Azure) -> None:
    counting.configure(prepare=[{"command": slow_append("once", counting.log)}])
    event_id = azure.announce("vm1")
    with job(counting, "prepare", event_id) as first, job(counting, "prepare", event_id) as second:
        assert sorted([first.outcome(), second.outcome()]) == ["already_prepared", "prepared"]
    assert counting.ran == ["once"]


def test_two_jobs_that_are_threads_of_one_process_prepare_once(counting: CountingMinion, azure: Azure) -> None:
    """As on a minion with ``multiprocessing: False``."""
    counting.configure(prepare=[{"command": slow_append("once", counting.log)}])
    event_id = azure.announce("vm1")
    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(counting.prepare, [event_id, event_id])) == ["already_prepared", "prepared"]
    assert counting.ran == ["once"]


def test_two_jobs_recover_once(counting: CountingMinion, azure: Azure) -> None:
    counting.configure(recover=[{"command": slow_append("once", counting.log)}], prepare=[])
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    azure.cancel(event_id)
    with job(counting, "recover", event_id) as first, job(counting, "recover", event_id) as second:
        assert sorted([first.outcome(), second.outcome()]) == ["not_prepared", "recovered"]
    assert counting.ran == ["once"]


def test_waiting_job_gives_up_in_time_and_names_the_other_event(counting: CountingMinion, azure: Azure) -> None:
    event_id, other = azure.announce("vm1"), azure.announce("vm1", kind="Freeze")
    counting.configure(prepare=[{"command": sleep(300)}])
    late = StepsMinion(
        counting.opts["cachedir"],
        parse_configuration(counting.opts["azure_events"]),
        lambda step, variables: (True, ""),
        lock_timeout=0.2,
    )
    with job(counting, "prepare", event_id) as running:
        wait_until(lambda: counting.call("status")["working"] == event_id, "a job at work")
        assert [one["state"] for one in counting.call("status")["records"]] == ["preparing"]
        answer = prepare(late, Job("prepare", other))
        assert answer["outcome"] == "busy" and event_id in answer["reason"]
        assert recover(late, Job("recover", None))["outcome"] == "busy"
        running.kill()
    assert counting.call("status")["working"] is None


@pytest.mark.parametrize("then", ["prepare", "recover"])
def test_after_a_killed_preparation(counting: CountingMinion, azure: Azure, tmp_path: Path, then: str) -> None:
    flag, pid = tmp_path / "flag", tmp_path / "pid"
    code = (
        "import os, sys, time; os.path.exists(sys.argv[1]) or "
        "(open(sys.argv[2], 'w').write(str(os.getpid())), time.sleep(300))"
    )
    counting.configure(
        prepare=[append("one", counting.log), {"command": python(code, flag, pid)}, append("three", counting.log)],
        recover=[append("recovered", counting.log)],
    )
    event_id = azure.announce("vm1")
    with job(counting, "prepare", event_id) as running:
        step = pid_in(pid)
        running.kill()
    # the processes of the job end with it; otherwise a second job would run concurrently
    wait_until(lambda: not is_running(step), "the end of the step")
    assert [one["state"] for one in counting.call("status")["records"]] == ["preparing"]
    assert counting.approve(event_id, "vm1") == "not_prepared"
    flag.touch()
    if then == "prepare":
        assert counting.prepare(event_id) == "prepared"
        assert counting.ran == ["one", "three"]
    else:
        azure.cancel(event_id)
        assert counting.recover(event_id) == "recovered"
        assert counting.ran == ["one", "recovered"]


def test_unwritable_record_prevents_the_preparation(counting: CountingMinion, azure: Azure) -> None:
    folder = Path(counting.opts["cachedir"])
    folder.mkdir(parents=True)
    (folder / "azure_events").write_text("a file where the folder should be")
    answer = counting.call("prepare", azure.announce("vm1"))
    assert answer["outcome"] == "failed" and "cannot be kept" in answer["reason"]
    assert counting.ran == []


def test_full_disk_does_not_prevent_the_recovery(counting: CountingMinion, azure: Azure) -> None:
    event_id = azure.announce("vm1")
    counting.prepare(event_id)
    azure.cancel(event_id)
    # from here on nothing can be written
    counting.record.with_name("prepared.json.draft").mkdir()
    assert counting.recover(event_id) == "recovered"
    assert counting.ran == ["prepare " + event_id, "recover " + event_id]
    assert counting.prepare(azure.announce("vm1")) == "failed"
    assert len(counting.ran) == 2


@pytest.mark.skipif(sys.platform != "win32", reason="ready hooks are refused on Windows only")
@pytest.mark.parametrize("key", ["ready_hooks", "recover"])
def test_ready_hook_is_refused_on_windows(counting: CountingMinion, azure: Azure, key: str) -> None:
    counting.configure(**{key: [{"use": "haproxy", "server": "web/web1"}]})
    answer = counting.call("prepare", azure.announce("vm1"))
    assert (answer["outcome"], answer["steps"], counting.ran) == ("failed", [], [])
    assert "'haproxy' is a ready hook, which runs on Linux only; replace it" in answer["reason"]
    assert counting.call("check")["outcome"] == "failed"
    assert [one["event_type"] for one in counting.call("list")["events"]] == ["Reboot"]
