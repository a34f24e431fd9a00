# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The tables of docs/salt-reference.md have what the code has, and no more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
import yaml

from azure_events_engine.answers import OUTCOMES, RECORD_STATES
from azure_events_engine.mapping import ID, OBSERVED, PILLAR, TABLE
from azure_events_engine.progress import STEPS as ENGINE_STEPS
from azure_events_engine.settings import Settings, parse_settings
from azure_events_steps import answers
from azure_events_steps.configuration import DEFAULT_TIMEOUT, KINDS, parse_configuration, refuse_ready_hooks
from azure_events_steps.execution.cmd_syntax import without_cmd_syntax
from azure_events_steps.ready_hook_steps import USE
from azure_events_steps.record import PHASES
from azure_events_watch.ledger import Notice
from azure_events_watch.settings import parse_settings as read_beacon
from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.hook_input import HookInput
from ready_hooks import hooks
from ready_hooks.cli import COMMON
from ready_hooks.core.arguments import from_mapping
from support.daemon.documents import blocks, quoted, rows
from support.repository import REPOSITORY

pytestmark = pytest.mark.all

SALT = REPOSITORY / "salt"
GUIDE = (REPOSITORY / "docs" / "salt.md").read_text(encoding="utf-8")
REFERENCE = (REPOSITORY / "docs" / "salt-reference.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    return rows(REFERENCE, heading)


def names(heading: str) -> list[str]:
    """Return the words in backquotes of the first column, without arguments."""
    return [word.partition(" ")[0] for row in table(heading) for word in quoted(row[0])]


def functions_of(module: str) -> Iterator[str]:
    """The public functions of a module of Salt, as Salt calls them."""
    tree = ast.parse((SALT / module / "azure_events.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield "azure_events." + node.name.rstrip("_")


@pytest.mark.parametrize(
    ("heading", "module"), [("Functions", "_modules"), ("States", "_states"), ("Runner", "_runners")]
)
def test_every_function_is_listed_and_no_other(heading: str, module: str) -> None:
    assert sorted(names(heading)) == sorted(functions_of(module))


def test_settings_of_the_engine_have_their_names_and_defaults() -> None:
    shown = {row[0].strip("`"): row[1].strip("`").strip("'") for row in table("Settings of the engine")}
    assert list(shown) == list(Settings._fields)
    given: dict[str, object] = {
        key: {} if value == "{}" else int(value) if value.isdigit() else value for key, value in shown.items()
    }
    assert parse_settings(given) == Settings()


def test_keys_of_the_section_are_those_that_the_minion_takes() -> None:
    shown = names("The section azure_events")
    text = (SALT / "_utils" / "azure_events_steps" / "configuration.py").read_text(encoding="utf-8")
    known = [
        re.findall(rf"^{name} = \((.*)\)$", text, re.MULTILINE)[0]
        for name in ("_KNOWN", "_LISTS", "_SELECTION_KEYS", "_CONNECTION")
    ]
    assert sorted(shown) == sorted(re.findall(r'"(\w+)"', " ".join(known)))


def test_options_of_the_beacon_have_their_names_and_defaults() -> None:
    shown = {name: row[1] for row in table("The beacon") for name in re.findall(r"`(\w+)`", row[0])}
    defaults = {name: int(default) for name, default in shown.items() if default.isdigit()}
    assert set(shown) == {
        *defaults,
        "affects",
        "types",
        "statuses",
        "sources",
        "endpoint",
        "api_version",
        "resource_name",
    }
    given = [{name: value} for name, value in defaults.items()]
    assert read_beacon(given, {}) == read_beacon([], {}) and "interval" in defaults


def test_data_of_the_beacon_are_listed() -> None:
    shown = names("Events of the beacon")
    listed = set(shown[shown.index("event_id") :])
    event = {"duration_seconds" if field == "duration" else field for field in ScheduledEvent._fields}
    added = {"id", "resource_name", "checked", "repeated", "cut", "resources_omitted"}
    assert listed == (event | added | set(Notice._fields)) - {"event"}


def test_every_outcome_is_listed_with_its_functions_and_whether_it_is_a_success() -> None:
    shown: dict[tuple[str, str], bool] = {}
    for outcomes, functions, meaning in table("Outcomes"):
        for outcome in re.findall(r"`(\w+)`", outcomes):
            every = list(OUTCOMES) if functions == "all" else functions.split(", ")
            for function in every:
                also = re.search(r"\*\*Success\*\* of (\w+)", meaning)
                shown[function, outcome] = "**success**" in meaning or (also is not None and also[1] == function)
    stages = {"prepare": answers.PREPARE, "recover": answers.RECOVER, "approve_prepared": answers.APPROVE}
    dry = {"prepare": {answers.WOULD_PREPARE}, "recover": {answers.WOULD_RECOVER}}
    assert shown == {
        (function, outcome): answers.is_success(stages[function], outcome)
        for function, known in OUTCOMES.items()
        for outcome in known.union(dry.get(function, ()))
    }


def test_states_of_a_record_are_listed() -> None:
    (sentence,) = re.findall(r"A record has the state (.*?)\.", REFERENCE, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) == set(PHASES) == set(RECORD_STATES)


def test_kinds_of_steps_and_their_variables_are_listed() -> None:
    shown = names("Steps")
    assert shown[: shown.index("function")] == ["command"] and set(KINDS) <= set(shown)
    given = HookInput({}, "prepare").variables()
    assert {name for name in shown if name.startswith(("EVENT_", "HOOK_"))} == set(given)
    assert f"`timeout` (default {DEFAULT_TIMEOUT:g} seconds)" in REFERENCE


def test_ready_hooks_that_are_shown_have_valid_options() -> None:
    examples = [yaml.safe_load(text) for text in blocks(REFERENCE, "yaml")]
    steps = [
        step
        for example in examples
        for part in [parse_configuration(example["azure_events"])]
        for step in (*(part.prepare or ()), *(part.recover or ()))
        if step.kind == USE
    ]
    assert steps
    for step in steps:
        from_mapping((*hooks.load(step.action).options, *COMMON), step.kwargs)


def test_steps_of_a_windows_minion_are_valid_and_no_ready_hooks() -> None:
    (section,) = re.findall(r"^## Windows minions\n(.*?)^## ", GUIDE, re.MULTILINE | re.DOTALL)
    (text,) = blocks(section, "yaml")
    configuration = parse_configuration(yaml.safe_load(text)["azure_events"])
    refuse_ready_hooks(configuration)
    assert configuration.prepare and configuration.recover


def test_characters_that_cmd_would_parse_are_listed() -> None:
    (row,) = [row for row in table("Steps on Windows") if row[0] == "control characters in variables"]
    shown = re.findall(r"`([^`])`|(&#124;)", row[2].partition("the same for")[2])
    listed = {character or "|" for character, _entity in shown}
    assert listed == {chr(number) for number in range(32, 127) if without_cmd_syntax(chr(number)) != chr(number)}


def test_steps_of_the_engine_are_listed_in_their_order() -> None:
    assert [row[0].strip("`") for row in table("Events of the engine")] == list(ENGINE_STEPS)


def test_origins_of_a_name_are_listed_in_their_order() -> None:
    assert [row[0].strip("`") for row in table("Which minion is which VM")] == [TABLE, PILLAR, ID, OBSERVED]


def test_reactor_files_are_listed() -> None:
    assert sorted(row[0].strip("`") for row in table("Reactor files")) == sorted(
        file.name for file in (SALT / "reactor").glob("*.sls")
    )


def test_example_of_the_pillar_has_every_option_of_the_beacon_and_every_key_of_the_section() -> None:
    text = (SALT / "pillar.example").read_text(encoding="utf-8")
    for option in names("The beacon"):
        assert re.search(rf"^ +(?:# )?(?:- )?{option}:|# - {option}:", text, re.MULTILINE), option
    section = text[text.index("\nazure_events:") :]
    for key in {*names("The section azure_events")} - {"allow_paths"}:
        assert re.search(rf"^  (?:# )?{key}:", section, re.MULTILINE), key
