# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The workflows of GitHub: what a job with rights runs, and that the code of others is pinned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from support.repository import REPOSITORY

WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
PINNED = REPOSITORY / ".github" / "requirements-release.txt"


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in WORKFLOWS:
        workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        yield from ((f"{file.stem}: {name}", job) for name, job in workflow["jobs"].items())


def steps(job: dict[str, Any], key: str) -> list[str]:
    return [step[key] for step in job.get("steps", []) if key in step]


@pytest.mark.parametrize(("name", "job"), [each for each in jobs() if "permissions" in each[1]])
def test_job_with_rights_runs_neither_the_checkout_nor_packages(name: str, job: dict[str, Any]) -> None:
    assert {used.partition("@")[0] for used in steps(job, "uses")} <= {
        "actions/download-artifact",
        "actions/deploy-pages",
    }
    assert [script.split()[0] for script in steps(job, "run")] in ([], ["gh"])


def test_actions_are_pinned_by_commit() -> None:
    used = [f"{name}: {one}" for name, job in jobs() for one in steps(job, "uses")]
    assert used and [one for one in used if not re.search(r"@[0-9a-f]{40}$", one)] == []


def test_release_is_built_with_pinned_packages() -> None:
    scripts = steps(dict(jobs())["release: build"], "run")
    assert [script for script in scripts if "install" in script] == [
        script
        for script in scripts
        if f"--require-hashes --only-binary :all: --requirement .github/{PINNED.name}" in script
    ]
    assert "make release" not in scripts and "make test" not in scripts
    requirements = re.findall(
        r"^(?!#)(\S.*?[^\\])$", PINNED.read_text(encoding="utf-8").replace("\\\n", ""), re.MULTILINE
    )
    wanted = r"[a-z0-9-]+==\S+( +--hash=sha256:[0-9a-f]{64})+"
    assert requirements and [one for one in requirements if not re.fullmatch(wanted, one)] == []
