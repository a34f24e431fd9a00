# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/event-driven.md agrees with the rulebooks; its examples are valid. The other tests run what it starts."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import yaml

from support.daemon.documents import blocks
from support.eda.three_hosts import NAMES
from support.eda.web_hook import WebHook, change_of, notify_entry
from support.repository import REPOSITORY

RULEBOOKS = REPOSITORY / "extensions" / "eda" / "rulebooks"
PAGE = (REPOSITORY / "docs" / "event-driven.md").read_text(encoding="utf-8")
COLLECTION = "azure_imds.scheduled_events"


def ruleset(name: str) -> dict[str, Any]:
    (found,) = yaml.safe_load((RULEBOOKS / f"{name}.yml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


INVENTORY, VARIABLES, SENDER, SOURCES, RULE = map(yaml.safe_load, blocks(PAGE, "yaml"))
INSTALL, PUSHED = blocks(PAGE, "sh")


def test_rulebooks_differ_in_their_sources_alone() -> None:
    one, other = ruleset("maintenance"), ruleset("maintenance_pushed")
    assert {**one, "sources": None} == {**other, "sources": None} and one["sources"] != other["sources"]


@pytest.mark.parametrize("sources", [None, SOURCES["sources"]], ids=["own", "Service Bus"])
@pytest.mark.parametrize("rule", [None, RULE[0]], ids=["playbook", "job template"])
@pytest.mark.parametrize("name", ["maintenance", "maintenance_pushed"])
def test_rulebook_with_printed_parts_is_valid(name: str, sources: Any, rule: Any) -> None:
    validators = pytest.importorskip("ansible_rulebook.validators", reason="needs ansible-rulebook")
    whole = ruleset(name)
    if sources:
        whole["sources"] = sources
    if rule:
        whole["rules"] = [rule]
    validators.Validate.rulebook([whole])


def test_printed_rule_is_that_of_the_rulebooks_with_a_job_template() -> None:
    first = ruleset("maintenance")["rules"][0]
    assert {name: RULE[0][name] for name in ("name", "condition", "throttle")} == {
        name: first[name] for name in ("name", "condition", "throttle")
    }
    action, printed = first["action"]["run_playbook"], RULE[0]["action"]["run_job_template"]
    for name in ("lock", "retries", "delay"):
        assert printed[name] == action[name]
    assert set(printed["job_args"]["extra_vars"]) == set(action["extra_vars"])


def test_printed_inventory_has_what_the_tests_give() -> None:
    assert tuple(INVENTORY["all"]["hosts"]) == NAMES
    # ThreeHosts sets these, and the addresses and folders that only a simulation needs
    assert set(INVENTORY["all"]["vars"]) == {"maintenance_prepare", "maintenance_recover"}


def test_printed_hook_is_that_of_the_tests() -> None:
    """test_pushed_to_recovery.py runs it, with its own address and files."""
    (entry,) = SENDER["hook_runner_ready_hooks"]
    assert entry == notify_entry(entry["url"], entry["header_files"]["Authorization"], entry["ca_file"])


def test_variables_of_the_page_are_those_of_the_rulebooks(tmp_path: Any) -> None:
    text = "".join((RULEBOOKS / f"{name}.yml").read_text() for name in ("maintenance", "maintenance_pushed"))
    used = set(re.findall(r"\{\{ (maintenance_\w+)", text))
    table = PAGE.split("Variables of the rulebooks")[1].split("All other options")[0]
    assert set(re.findall(r"`(maintenance_\w+)`", table)) == used
    required = {name for name in used if f"{{{{ {name} }}}}" in text}
    assert required < set(VARIABLES) <= used
    assert required < set(WebHook(tmp_path / "hook", 1).variables) <= used


def test_printed_commands_start_the_rulebooks_of_the_collection() -> None:
    install, first = INSTALL.splitlines()
    assert shlex.split(install) == ["ansible-galaxy", "collection", "install", COLLECTION]
    for command, name in ((first, "maintenance"), (PUSHED, "maintenance_pushed")):
        program, *words = shlex.split(command)
        assert program == "ansible-rulebook"
        assert words[words.index("--rulebook") + 1] == f"{COLLECTION}.{name}"
        assert (RULEBOOKS / f"{name}.yml").is_file()


def test_page_names_the_members_of_an_event() -> None:
    from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_filter import (
        EventFilter,
    )

    result = EventFilter().apply({"payload": change_of("x", "vm1")}, {})
    assert isinstance(result, dict)
    table = PAGE.split("## The shape of an event")[1].split("\n\nWithout the filter")[0]
    named = set(re.findall(r"`scheduled_event\.(\w+)`", table))
    assert named == set(result["scheduled_event"]) - {"schema"}


def test_decision_environment_has_what_the_page_names() -> None:
    path = REPOSITORY / "extensions" / "eda" / "decision-environment" / "decision-environment.yml"
    definition = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert definition["version"] == 3
    needs = definition["dependencies"]
    azure = "azure.azcollection"
    collections = {item["name"]: item.get("version") for item in needs["galaxy"]["collections"]}
    (since,) = re.findall(rf"`{azure}` has it since ([\d.]+);", PAGE)
    assert collections == {COLLECTION: None, azure: f">={since}"} and f"    {azure}.azure_service_bus:\n" in PAGE
    assert {"ansible-rulebook>=1.3", "requests"} <= set(needs["python"])
    assert any(item.startswith("java-17") for item in needs["system"])
