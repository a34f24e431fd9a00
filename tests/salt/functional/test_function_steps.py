# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Steps that are functions or SLS files, in Salt's loader."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.salt.azure import Azure
from support.salt.loaded import CountingMinion


def steps_of(counting: CountingMinion, event_id: str) -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in counting.call("prepare", event_id)["steps"]}


def test_function_is_a_step(counting: CountingMinion, azure: Azure, tmp_path: Path) -> None:
    counting.use_states()
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
    counting.use_states(tmp_path)
    counting.configure(prepare=[step])
    answer = counting.call("prepare", azure.announce("vm1"))
    assert answer["outcome"] == "failed" and text in answer["steps"][0]["output"]


def test_sls_step_runs_concurrently_and_never_as_a_dry_run(
    counting: CountingMinion, azure: Azure, tmp_path: Path
) -> None:
    text = (
        "x:\n  file.managed:\n    - name: %s\n    - contents: {{ pillar['azure_events_event'] }} {{ pillar['who'] }}\n"
    )
    (tmp_path / "leave.sls").write_text(text % (tmp_path / "left"))
    counting.use_states(tmp_path)
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
