# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Rules that the roles keep among themselves and about their own files."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import yaml
from ansible.plugins.filter.core import FilterModule
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._ready_hooks import LIBRARY, MARK, STAGES

from azure_scheduled_events.options import parse_seconds
from azure_scheduled_events.yaml_lines import load_with_lines
from hook_runner.config.settings import RESTART_ONLY_SETTINGS
from ready_hooks import hooks
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


def test_hook_runner_reads_a_configuration_with_a_value_in_two_places() -> None:
    environment = jinja2.Environment(trim_blocks=True)
    environment.filters.update(FilterModule().filters())
    template = environment.from_string((ROLES / "hook_runner/templates/config.yml.j2").read_text(encoding="utf-8"))
    types = ["Reboot", "Redeploy"]
    configuration = {"hooks": {"10-a": {"types": types}, "20-b": {"types": types}}, "interval": "2s"}
    text = template.render(hook_runner__configuration=configuration)
    assert load_with_lines(text, "config.yml", "configuration")[0] == configuration


def test_hook_runner_restarts_for_the_settings_of_the_daemon_that_need_it() -> None:
    assert sorted(loaded("hook_runner/vars/main.yml")["hook_runner__restart_only_settings"]) == sorted(
        RESTART_ONLY_SETTINGS
    )


def test_maintenance_passes_a_short_rest_of_a_round_as_a_duration() -> None:
    (read,) = (
        task["azure_imds.scheduled_events.hook_runner_info"]
        for task in loaded("maintenance/tasks/coordinate_round.yml")
        if "azure_imds.scheduled_events.hook_runner_info" in task
    )
    # as Ansible without native types renders it
    environment = jinja2.Environment()
    environment.globals["now"] = lambda: datetime.fromtimestamp(1.0, UTC)
    assert parse_seconds(environment.from_string(read["timeout"]).render(maintenance__read={"until": 1.00001})) == 0


def test_imds_simulator_deploys_all_of_its_files() -> None:
    tasks = loaded("imds_simulator/tasks/present.yml")
    (variables,) = [task["vars"] for task in tasks if "imds_simulator__source_files" in task.get("vars", {})]
    files = ROLES / "imds_simulator" / "files"
    # the other files make the package for pip
    assert deployed_by(files, variables["imds_simulator__source_files"]) == sources(files / "imds_simulator")


def test_ready_hooks_deploys_all_of_its_files() -> None:
    patterns = loaded("ready_hooks/vars/main.yml")["ready_hooks__source_files"]
    role = ROLES / "ready_hooks"
    assert deployed_by(role, patterns) - {role / "files" / "ready_hooks"} == sources(role / "files")


def test_role_knows_all_kinds_of_ready_hooks() -> None:
    assert tuple(STAGES) == hooks.NAMES
    assert {path.name for path in (ROLES / "ready_hooks" / "files").iterdir() if path.is_symlink()} == set(STAGES)
    source = ROLES / "ready_hooks" / "files" / "ready_hooks" / "hooks"
    written = [name for name in hooks.NAMES if list(source.glob(name.replace("-", "_") + "*"))]
    assert {name: hooks.load(name).stages for name in written} == {name: STAGES[name] for name in written}


def test_hook_runner_and_ready_hooks_agree_on_names() -> None:
    variables = loaded("hook_runner/vars/main.yml")
    assert variables["hook_runner__ready_mark"] == MARK
    assert variables["hook_runner__ready_library"] == LIBRARY
    assert loaded("ready_hooks/vars/main.yml")["ready_hooks__library"] == LIBRARY
