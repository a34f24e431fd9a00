# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/other-handlers.md names a repository and a commit for each program."""

from __future__ import annotations

import re

import pytest

from hook_runner.config.settings import Settings
from imds_simulator.api_versions import EVENT_TYPES
from support.daemon.documents import rows
from support.repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "other-handlers.md").read_text(encoding="utf-8")
REFERENCE = (REPOSITORY / "docs" / "reference" / "scheduled-events.md").read_text(encoding="utf-8")
TABLES = (
    "Where they run",
    "Events and preparation",
    "Approval",
    "Recovery and restarts",
    "Errors of IMDS",
    "Messages and metrics",
)
OURS = {"hook runner", "playbook", "Salt"}
VERSIONS = {cells[0]: cells[1:] for cells in rows(PAGE, "Versions")}


@pytest.mark.parametrize("heading", TABLES)
def test_each_program_of_a_table_has_a_version(heading: str) -> None:
    named = {name for cells in rows(PAGE, heading) for name in cells[0].split(", ")}
    assert named - OURS <= set(VERSIONS) and "hook runner" in named


def test_each_version_is_a_commit_of_a_public_repository() -> None:
    for name, (repository, commit) in VERSIONS.items():
        assert re.match(r"\[([\w-]+/[\w-]+)\]\(https://github\.com/\1\)", repository), name
        assert re.fullmatch(r"[0-9a-f]{7,8}(, 20\d\d-\d\d-\d\d)?", commit), name


def test_commits_are_those_of_the_reference_where_it_cites_the_program() -> None:
    for repository, commit in VERSIONS.values():
        owner_and_name = repository.partition("]")[0].strip("[")
        cited = re.findall(rf"{re.escape(owner_and_name)}[^|]*? at ([0-9a-f]{{12}})", REFERENCE)
        assert not cited or any(full.startswith(commit.split(",")[0]) for full in cited), owner_and_name


def test_row_of_the_hook_runner_has_its_defaults() -> None:
    plain = Settings()
    (events,) = [cells for cells in rows(PAGE, "Events and preparation") if cells[0] == "hook runner"]
    (errors,) = [cells for cells in rows(PAGE, "Errors of IMDS") if cells[0] == "hook runner"]
    assert events[1] == f"{plain.interval:g} s"
    assert events[2] == f"{', '.join(EVENT_TYPES)}, for each hook"
    assert errors[1] == f"{plain.timeout:g} s; {plain.first_timeout:g} s for the first answer"
