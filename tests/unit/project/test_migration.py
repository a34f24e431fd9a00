# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The settings in the tables of docs/migration.md exist, and its old script handles events as the page says."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from azure_scheduled_events.conditions import CONDITIONS
from azure_scheduled_events.event_types import EVENT_TYPES
from azure_scheduled_events.hook_input import HookInput
from azure_scheduled_events.policy import PRESETS, RULE_KEYS
from hook_runner.cli.verbs import parser
from hook_runner.config.settings import KEYS, HookSettings, load_settings
from hook_runner.records import STAGES
from ready_hooks import hooks
from ready_hooks.cli import COMMON
from ready_hooks.core import arguments
from support import simulator_process
from support.daemon.documents import GUIDE, quoted, rows
from support.recipes.printed import find
from support.repository import REPOSITORY

pytestmark = pytest.mark.all

PAGE = (REPOSITORY / "docs" / "migration.md").read_text(encoding="utf-8")
# the tables whose second column has settings of this project
HEADINGS = (
    "Script with curl",
    "Microsoft's sample",
    "azure-scheduledevents-manager",
    "azure-events-az of Pacemaker",
    "aks-node-termination-handler",
    "Event Grid",
)
# texts in backquotes that are not settings of this project
OTHERS = {"kubectl", "config.yml", "hook_runner", "NotBefore", "status", "history"}
SCENARIO = {"groups": {"set": {"vms": {"web1": {}, "web2": {}}}}, "knobs": {"rate_limit": 0}}
PROGRAMS = ("leave-load-balancer", "join-load-balancer")
MISSING = [name for name in ("curl", "jq") if shutil.which(name) is None]


def settings_of(heading: str) -> list[str]:
    return [text for cells in rows(PAGE, heading) for text in quoted(cells[1]) if text not in OTHERS]


def variables_of(role: str) -> set[str]:
    specification = yaml.safe_load((REPOSITORY / "roles" / role / "meta" / "argument_specs.yml").read_text("utf-8"))
    return {name for entry in specification["argument_specs"].values() for name in entry.get("options", {})}


def words() -> set[str]:
    """Return the names that stand alone in a table."""
    metrics = {name for cells in rows(GUIDE, "Metrics") for name in quoted(cells[0])}
    of_hooks = {option.name for name in hooks.NAMES for option in hooks.load(name).options}
    return {
        *KEYS,
        *HookSettings._fields,
        *CONDITIONS,
        *RULE_KEYS,
        *PRESETS,
        *EVENT_TYPES,
        *HookInput({}, "prepare").variables(),
        *metrics,
        *of_hooks,
        *variables_of("hook_runner"),
        *variables_of("maintenance"),
    }


def is_configuration(text: str, folder: Path) -> bool:
    path = folder / "config.yml"
    path.write_text(text, encoding="utf-8")
    load_settings(str(path))
    return True


def is_ready_hook(entry: dict[str, Any]) -> bool:
    given = {name: value for name, value in entry.items() if name not in ("use", "settings")}
    arguments.from_mapping((*hooks.load(entry["use"]).options, *COMMON), given)
    return True


def is_verb(text: str) -> bool:
    (verbs,) = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return text.split()[1] in verbs.choices


def is_setting(text: str, folder: Path) -> bool:
    """Return True if this text is a setting, a name or a command of this project.

    Raises an error of the part that reads it if it has a wrong key or value.
    """
    if re.fullmatch(r"\w+", text):
        return text in words()
    if text.startswith("azure-scheduled-events "):
        return is_verb(text)
    if text.startswith("hooks.d/"):
        return text.split("/")[1] in STAGES
    given = yaml.safe_load(text)
    if not isinstance(given, dict):
        return False
    if "use" in given:
        settings = given.get("settings", {})
        return is_configuration(yaml.safe_dump({"hooks": {"21-ready": settings}}), folder) and is_ready_hook(given)
    if "when" in given:
        return is_configuration(yaml.safe_dump({"policy": {"name": "one rule", "rules": [given]}}), folder)
    if set(given) == {"settings"}:
        return is_configuration(yaml.safe_dump({"hooks": {"10-drain": given["settings"]}}), folder)
    if all(name.startswith(("hook_runner_", "maintenance_")) for name in given):
        return set(given) <= variables_of("hook_runner") | variables_of("maintenance")
    return is_configuration(text, folder)


@pytest.mark.parametrize("heading", HEADINGS)
def test_each_setting_of_a_table_exists(heading: str, tmp_path: Path) -> None:
    found = settings_of(heading)
    assert found and [text for text in found if not is_setting(text, tmp_path)] == []


def test_every_table_with_settings_is_checked() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    found = [
        text.splitlines()[0] for text in sections if re.search(r"^\| [^|]+ \| (?:Azure and )?here \|$", text, re.M)
    ]
    assert found == list(HEADINGS)


@pytest.mark.skipif(bool(MISSING), reason=f"the script of the page needs {' and '.join(MISSING)}")
def test_script_approves_one_event_for_all_its_vms_and_recovers_after_the_last(tmp_path: Path) -> None:
    calls, failing = tmp_path / "calls", tmp_path / "failing"
    for name in PROGRAMS:
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} >>"{calls}"\n! test -e "{failing}"\n', encoding="utf-8")
        program.chmod(0o755)
    with simulator_process.start(SCENARIO, ["--clock", "manual"]) as azure:
        script = find("docs/migration.md", "#!/bin/sh").text
        for theirs, ours in {
            "http://169.254.169.254": azure.endpoints["web1"],
            "/usr/local/bin": str(tmp_path),
            "/var/lib/azure-events-drained": str(tmp_path / "drained"),
        }.items():
            assert theirs in script
            script = script.replace(theirs, ours)

        def announce(*resources: str) -> str:
            return str(azure.post("/events", {"type": "Reboot", "resources": resources, "notice": "15m"})["id"])

        def run() -> tuple[int, list[str], list[str]]:
            """Return the exit code, the calls so far, and the ids of the approved events."""
            ended = subprocess.run(["sh", "-c", script], capture_output=True, timeout=60, check=False)
            approved = [line for line in azure.get("/log?what=approval")["lines"] if line["status"] == 200]
            called = calls.read_text(encoding="utf-8").split() if calls.exists() else []
            return ended.returncode, called, [event_id for line in approved for event_id in line["ids"]]

        assert run() == (0, [], [])
        first = announce("web1", "web2")
        failing.touch()
        assert run() == (1, [PROGRAMS[0]], [])
        failing.unlink()
        prepared = [PROGRAMS[0]] * 2
        assert run() == (0, prepared, [first])
        other = announce("web2")
        assert run()[1:] == (prepared, [first])
        azure.post(f"/events/{first}/cancel")
        assert run()[1:] == (prepared, [first])
        azure.post(f"/events/{other}/cancel")
        assert run() == (0, [*prepared, PROGRAMS[1]], [first])
