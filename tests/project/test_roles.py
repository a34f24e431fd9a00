# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Rules that the roles keep among themselves and about their own files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from support.repository import REPOSITORY

ROLES = REPOSITORY / "roles"
NAMES = sorted(role.name for role in ROLES.iterdir() if role.is_dir())


def loaded(path: str) -> Any:
    return yaml.safe_load((ROLES / path).read_text(encoding="utf-8"))


def deployed_by(folder: Path, patterns: list[str]) -> set[Path]:
    """Return the files that patterns in file names match, as the lookup fileglob finds them."""
    assert [pattern for pattern in patterns if "*" in str(Path(pattern).parent)] == []
    return {file for pattern in patterns for file in folder.glob(pattern)}


def sources(folder: Path) -> set[Path]:
    return {file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts}


def test_no_role_names_files_of_another_role() -> None:
    found = [
        f"{file.relative_to(ROLES)}: {match[0]}"
        for name in NAMES
        for file in (ROLES / name).rglob("*")
        if file.suffix in {".yml", ".j2"}
        for match in re.finditer(r"(?:\.\.|roles)/(\w+)/", file.read_text(encoding="utf-8"))
        if match[1] in NAMES and match[1] != name
    ]
    assert found == []


def test_hook_runner_deploys_all_of_its_files() -> None:
    patterns = loaded("hook_runner/vars/main.yml")["hook_runner__source_files"]
    role = ROLES / "hook_runner"
    helper = sources(REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events")
    deployed = {file.resolve() for file in deployed_by(role, patterns)}
    assert deployed == sources(role / "files") | helper


def test_imds_simulator_deploys_all_of_its_files() -> None:
    tasks = loaded("imds_simulator/tasks/present.yml")
    (variables,) = [task["vars"] for task in tasks if "imds_simulator__source_files" in task.get("vars", {})]
    files = ROLES / "imds_simulator" / "files"
    assert deployed_by(files, variables["imds_simulator__source_files"]) == sources(files)
