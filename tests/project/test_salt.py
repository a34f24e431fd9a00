# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Salt gets the one helper that there is, whole; and nothing but the folder salt/ knows of Salt."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from support.repository import REPOSITORY
from tools.repository.collection_tree import tracked_or_new
from tools.repository.imports import foreign, sources

HELPER = REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events"
SALT = REPOSITORY / "salt"
DOORS = [REPOSITORY / "plugins", REPOSITORY / "roles", REPOSITORY / "extensions"]
LINKS = SALT / "_utils" / "azure_scheduled_events"
WATCH = SALT / "_utils" / "azure_events_watch"
STEPS = SALT / "_utils" / "azure_events_steps"
ENGINE = SALT / "_utils" / "azure_events_engine"
MODULES = [
    path
    for kind in ("_beacons", "_engines", "_grains", "_modules", "_runners", "_states")
    for path in sorted((SALT / kind).glob("*.py"))
]
TRACKED = {path for path in tracked_or_new(REPOSITORY) if path.suffix != ".draft"}


def relative_name(file: Path) -> str:
    return file.relative_to(REPOSITORY).as_posix()


def tracked_names(folder: Path) -> set[str]:
    return {path.name for path in TRACKED if REPOSITORY / path.parent == folder}


def test_every_file_of_the_helper_has_a_link_and_every_link_a_file() -> None:
    assert tracked_names(LINKS) == tracked_names(HELPER)


@pytest.mark.parametrize("name", sorted(tracked_names(LINKS)))
def test_link_is_relative_and_leads_to_the_same_bytes(name: str) -> None:
    link = LINKS / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../../../plugins/module_utils/azure_scheduled_events/{name}"
    assert link.read_bytes() == (HELPER / name).read_bytes()


def test_no_folder_is_a_link() -> None:
    """ansible-test and gitfs take links to files only."""
    assert [path for path in map(REPOSITORY.joinpath, TRACKED) if path.is_symlink() and path.is_dir()] == []


def test_nobody_else_knows_of_salt() -> None:
    assert [
        relative_name(file)
        for door in DOORS
        for file in sources(door)
        if {"salt", "azure_events_engine", "azure_events_watch"} & foreign(file)
    ] == []


@pytest.mark.parametrize("file", [*sources(WATCH), *sources(STEPS)], ids=relative_name)
def test_the_plain_packages_know_the_helper_and_not_salt(file: Path) -> None:
    assert foreign(file) <= {"azure_scheduled_events", "azure_events_watch", "azure_events_steps"}


@pytest.mark.parametrize("file", sources(ENGINE), ids=relative_name)
def test_the_engines_logic_knows_the_helper_and_not_salt(file: Path) -> None:
    assert foreign(file) <= {"azure_scheduled_events"}


def test_state_file_is_plain_so_that_the_grain_costs_nothing() -> None:
    assert foreign(WATCH / "state_file.py") == set()


@pytest.mark.parametrize("file", MODULES, ids=relative_name)
def test_only_the_execution_module_imports_the_helper(file: Path) -> None:
    """A beacon cannot, and on the master it is not there. The grain takes the one plain file, the states read times with the package beside it."""
    allowed = (
        {"salt", "azure_scheduled_events", "azure_events_watch", "azure_events_steps"}
        if file.parent.name == "_modules"
        else {"salt"}
    )
    own = {
        "_grains": "azure_events_watch",
        "_states": "azure_events_watch",
        "_engines": "azure_events_engine",
        "_runners": "azure_events_engine",
    }
    assert foreign(file) <= allowed | {own.get(file.parent.name, "salt")}


def test_nothing_posix_is_imported_on_a_minion_but_for_locks() -> None:
    posix = {"fcntl", "grp", "posix", "pwd", "resource", "syslog", "termios"} & set(sys.stdlib_module_names)
    modules = [file for file in MODULES if file.parent.name not in ("_engines", "_runners")]
    files = [*sources(WATCH), *(file for file in sources(STEPS) if file.name != "lock.py"), *modules]
    imported = re.compile(rf"^\s*(?:import|from) ({'|'.join(posix)})\b", re.MULTILINE)
    assert [relative_name(file) for file in files if imported.search(file.read_text(encoding="utf-8"))] == []


def test_the_package_has_the_collections_version() -> None:
    project = tomllib.loads((SALT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == yaml.safe_load((REPOSITORY / "galaxy.yml").read_text(encoding="utf-8"))["version"]


def test_the_package_holds_every_folder_with_python() -> None:
    settings = tomllib.loads((SALT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {
        path.parent.relative_to("salt").as_posix()
        for path in TRACKED
        if path.parts[0] == "salt" and path.suffix == ".py"
    }
    assert set(settings["package-dir"].values()) == folders
    assert set(settings["package-dir"]) == set(settings["packages"])


@pytest.mark.parametrize(
    "path",
    sorted(path for path in TRACKED if path.parts[0] == "salt" and path.suffix in (".sls", ".example", ".md")),
    ids=str,
)
def test_file_for_salt_names_its_licence(path: Path) -> None:
    assert "SPDX-License-Identifier: Apache-2.0" in (REPOSITORY / path).read_text(encoding="utf-8")[:300]


def test_example_of_the_pillar_has_every_option_of_the_beacon() -> None:
    text = (SALT / "pillar.example").read_text(encoding="utf-8")
    known = re.search(r"^_SECONDS = (\{.*\})", (WATCH / "settings.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert known is not None
    for option in [
        *re.findall(r'"(\w+)":', known[1]),
        "interval",
        "affects",
        "types",
        "statuses",
        "sources",
        "endpoint",
        "api_version",
        "resource_name",
    ]:
        assert re.search(rf"^ +(?:# )?(?:- )?{option}:", text, re.MULTILINE) or re.search(rf"# - {option}:", text), (
            option
        )


def test_example_of_the_pillar_has_every_key_of_the_section() -> None:
    text = (SALT / "pillar.example").read_text(encoding="utf-8")
    section = text[text.index("\nazure_events:") :]
    known = re.search(r"^_KNOWN = \((.*)\)", (STEPS / "configuration.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert known is not None
    for key in [
        *re.findall(r'"(\w+)"', known[1]),
        "types",
        "sources",
        "statuses",
        "endpoint",
        "api_version",
        "resource_name",
    ]:
        assert key == "allow_paths" or re.search(rf"^  (?:# )?{key}:", section, re.MULTILINE), key
