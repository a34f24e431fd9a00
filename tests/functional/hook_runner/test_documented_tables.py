# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The tables of docs/hook-runner.md and docs/configuration.md are complete and have the defaults of the code."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest
import yaml

from azure_scheduled_events import release
from hook_runner.cli import main, output
from hook_runner.cli.verbs import parser
from hook_runner.config.settings import KEYS as SETTINGS
from hook_runner.config.settings import RESTART_ONLY_SETTINGS, ConfigError, HookSettings, Settings, load_settings
from hook_runner.config.values import LEADERS
from hook_runner.log import LEVELS
from hook_runner.maintenance import reasons
from hook_runner.maintenance.inputs import input_of
from hook_runner.maintenance.machine import PHASES
from hook_runner.records import RUN_STATES, STAGES
from support.daemon.documents import GUIDE, REFERENCE, column, quoted, rows
from support.daemon.machine_driver import Driver, event, hook
from support.repository import REPOSITORY

DAEMON = REPOSITORY / "roles" / "hook_runner" / "files" / "hook_runner"
KEYS, HOOK_KEYS = rows(REFERENCE, "Keys"), rows(REFERENCE, "Keys of one hook")


def first_words(text: str, heading: str) -> list[str]:
    """Return the texts in backquotes of the first column."""
    return [word for cells in rows(text, heading) for word in quoted(cells[0])]


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "config.yml"
    path.write_text(text)
    return load_settings(str(path))


def test_every_key_of_the_configuration_is_documented_and_no_other() -> None:
    assert first_words(REFERENCE, "Keys") == list(SETTINGS)
    assert first_words(REFERENCE, "Keys of one hook") == list(HookSettings._fields)


def test_documented_defaults_are_those_of_the_code(tmp_path: Path) -> None:
    documented = {quoted(cells[0])[0]: quoted(cells[1])[0] for cells in KEYS if cells[1]}
    read = loaded(tmp_path, "".join("{}: {}\n".format(*item) for item in documented.items()))
    plain = Settings()
    assert read.policy.name == plain.policy.name
    assert read._replace(policy=plain.policy, sources={}) == plain


def test_documented_defaults_of_a_hook_are_those_of_the_code(tmp_path: Path) -> None:
    documented = "".join(f"    {quoted(cells[0])[0]}: {quoted(cells[1])[0]}\n" for cells in HOOK_KEYS)
    read = loaded(tmp_path, "hooks:\n  10-drain:\n" + documented).hook("prepare", "10-drain")
    assert read == HookSettings() == Settings().hook("prepare", "20-other")


def bounds(table: list[list[str]]) -> list[tuple[str, str, str]]:
    found = [(quoted(cells[0])[0], re.fullmatch(r"([\d.]+) to ([\d.]+)", cells[2])) for cells in table]
    return [(key, match.group(1), match.group(2)) for key, match in found if match is not None]


@pytest.mark.parametrize(
    ("key", "least", "most"), bounds(KEYS) + [(f"hooks: {{x: {{{key}", *rest) for key, *rest in bounds(HOOK_KEYS)]
)
def test_documented_bounds_are_those_of_the_code(key: str, least: str, most: str, tmp_path: Path) -> None:
    text = f"{key}: %s{'}' * key.count('{')}\n"
    for value in (least, most):
        loaded(tmp_path, text % value)
    for outside in (float(least) / 2 or -1, int(most) + 1):
        with pytest.raises(ConfigError, match="expected"):
            loaded(tmp_path, text % outside)


def test_keys_that_need_a_restart_are_documented() -> None:
    (sentence,) = re.findall(r"These keys need a restart: (.*?)\.\n", REFERENCE, re.DOTALL)
    assert quoted(sentence) == list(RESTART_ONLY_SETTINGS)


def test_values_of_the_configuration_are_documented() -> None:
    documented = {quoted(cells[0])[0]: quoted(cells[2]) for cells in KEYS}
    assert documented["leader"] == list(LEADERS) == first_words(GUIDE, "Several VMs")
    assert documented["log_level"] == [level for level in LEVELS if level != "notice"]


def test_role_has_the_keys_and_values_of_the_configuration() -> None:
    role = REPOSITORY / "roles" / "hook_runner"
    options = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    assert options["hook_runner_leader"]["choices"] == ["", *LEADERS]
    hooks = options["hook_runner_hooks"]["options"]
    assert hooks["stage"]["choices"] == list(STAGES)
    assert re.findall(r"C\((\w+)\)", hooks["settings"]["description"]) == list(HookSettings._fields)
    shortcuts = yaml.safe_load((role / "vars" / "main.yml").read_text())["hook_runner__shortcut_settings"]
    assert set(re.findall(r"'(\w+)':", shortcuts)) <= set(SETTINGS)


def test_stages_and_states_are_documented() -> None:
    assert first_words(GUIDE, "Stages") == list(STAGES)
    assert sorted(column(GUIDE, "Run states", "state")) == sorted(RUN_STATES)
    states = (REPOSITORY / "docs" / "states.md").read_text(encoding="utf-8")
    assert column(states, "The phases of a maintenance", "phase") == list(PHASES)


def test_hook_input_is_documented() -> None:
    words = first_words(GUIDE, "Hook input")
    vm = Driver(hook("prepare/10-drain"))
    vm.read(event())
    assert vm.records.maintenance is not None
    stdin, variables = input_of(vm.runs[0], vm.records.maintenance, "vm1", vm.now)
    assert {word for word in words if word.isupper()} == set(variables)
    members = [word for word in words if word.islower()]
    assert sorted(members) == sorted(json.loads(stdin))


def test_keywords_of_the_timeline_are_documented() -> None:
    source = "".join(path.read_text() for path in (DAEMON / "maintenance").glob("*.py"))
    used = set(re.findall(r"\bnote\(\s*(?:moment\.)?now, \"([a-z-]+)\"", source))
    assert len(used) > 10 and sorted(column(GUIDE, "Timeline", "entry")) == sorted(used)


def test_reason_codes_are_documented() -> None:
    """Those of reasons.py, those of the helper that one host can have, and those of a policy and of a full /run."""
    made = (reasons.held(""), reasons.hook_runs(""), reasons.paused(""))
    named = [each for part in (reasons, release) for each in vars(part).values() if isinstance(each, release.Obstacle)]
    used = {each.code for each in (*made, *named)} | release.UNKNOWN_VALUES | {release.OTHERS_AFFECTED, release.LEAVING}
    used |= {"no_rule", "not_approving", "delay", "time_left", "hook_waits"}
    assert set(column(GUIDE, "Reason codes", "code")) == used - {release.ALREADY_APPROVED.code}


def test_exit_codes_are_documented() -> None:
    known = {
        output.OK,
        output.PROBLEM,
        2,
        output.NOT_RUNNING,
        output.NO_SUCH_EVENT,
        output.NOT_PERMITTED,
        output.BAD_CONFIG,
    }
    assert {int(cells[0]) for cells in rows(GUIDE, "The command") if cells[0].isdigit()} == known
    assert known == {0, *map(int, re.findall(r"(?:; |\n)(\d+) ", main.__doc__ or ""))}


def test_verbs_and_options_are_documented() -> None:
    documented = {
        words[1]: set(re.findall(r"--[a-z-]+", text))
        for text in first_words(GUIDE, "The command")
        for words in [text.split()]
        if len(words) > 1
    }
    (verbs,) = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    everywhere = {"--help", "--config", "--json"}
    assert documented == {
        name: {text for text in verb._option_string_actions if text.startswith("--")} - everywhere
        for name, verb in verbs.choices.items()
    }


def test_fields_of_the_log_are_documented() -> None:
    used = {
        name.upper()
        for path in DAEMON.rglob("*.py")
        for name in re.findall(r"\bazure_(?!scheduled|imds\.|events)\w+", path.read_text())
    }
    assert set(first_words(GUIDE, "Logs")) - {"status-503", "unreachable", "unreadable"} == used


def test_files_on_the_host_are_those_of_the_role_and_of_the_defaults() -> None:
    documented = {path.rstrip("/") for path in first_words(GUIDE, "Files on the host")}
    role = yaml.safe_load((REPOSITORY / "roles" / "hook_runner" / "vars" / "main.yml").read_text())
    plain = Settings()
    expected = {role["hook_runner__" + name] for name in ("command", "library", "unit_file")}
    expected |= {role["hook_runner__folder"] + "/config.yml", plain.hooks_directory + "/STAGE", plain.state_directory}
    assert expected <= documented
    assert all(path.startswith((*expected, plain.run_directory)) for path in documented if path.startswith("/"))
