# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Rules for all files of this repository."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from azure_scheduled_events.event_types import EVENT_TYPES
from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree, tracked_or_new

FILES = sorted(tracked_or_new(REPOSITORY))

SOURCES = {".cjs", ".py", ".sls", ".example", ".yml", ".yaml", ".sh", ".toml", ".cfg", ".ini", ".j2", ".service", ".mk"}
SOURCES_WITHOUT_SUFFIX = {"Makefile", "run"}
GENERATED = {Path("changelogs/changelog.yaml")}

# Each is written so that it does not match itself.
NOT_FOR_THE_REPOSITORY = {
    "the path of a checkout": r"(?<![\w.])/wor[k]/(main|shared)|/root/[.]pyenv|/home/\w+/",
    "a package registry's host": r"py[p]i\.[o]rg|python[h]osted|[n]pmjs\.|[d]eb\.debian",
    "work that is not done": r"\b(TOD[O]|FIXM[E]|XX[X])\b",
    "a conflict that is not resolved": r"^(<{7}|>{7})( |$)",
}

# a new type of event is one line of one file
EVENT_TYPE_FILE = Path("plugins/module_utils/azure_scheduled_events/event_types.py")
PRODUCT = ("extensions", "plugins", "roles", "salt")
# it shares no code with the product that it tests
SIMULATOR = Path("roles/imds_simulator")
# a default that users can change: after these events a job cannot go on
DEFAULTS = {(Path("roles/ready_hooks/files/ready_hooks/hooks/slurm/__init__.py"), ("Preempt", "Redeploy"))}


def text_of(name: Path) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8", errors="replace")


def is_source(name: Path) -> bool:
    return (name.suffix in SOURCES or name.name in SOURCES_WITHOUT_SUFFIX) and name not in GENERATED


def test_source_files_name_their_licence() -> None:
    texts = {name: text_of(name) for name in FILES if is_source(name)}
    assert [
        str(name) for name, text in texts.items() if text.strip() and "SPDX-License-Identifier: " not in text[:1000]
    ] == []


@pytest.mark.parametrize("text", NOT_FOR_THE_REPOSITORY)
def test_no_file_contains(text: str) -> None:
    pattern = re.compile(NOT_FOR_THE_REPOSITORY[text], re.MULTILINE)
    found = [
        f"{name}: {match[0]}"
        for name in FILES
        if not (REPOSITORY / name).is_symlink() and name.suffix != ".png"
        for match in pattern.finditer(text_of(name))
    ]
    assert found == []


def test_licences_that_files_name_are_in_the_repository() -> None:
    named = set(
        re.findall(
            r"^\W*SPDX-License-Identifier: ([\w.-]+)", "\n".join(map(text_of, filter(is_source, FILES))), re.MULTILINE
        )
    )
    assert named <= {file.stem for file in (REPOSITORY / "LICENSES").iterdir()}


def test_no_sanity_check_is_ignored() -> None:
    assert [name for name in FILES if name.parts[:2] == ("tests", "sanity")] == []


def test_version_of_each_package_is_that_of_the_collection() -> None:
    collection = yaml.safe_load(text_of(Path("galaxy.yml")))["version"]
    for package in ("hook_runner", "imds_simulator"):
        file = Path("roles", package, "files", package, "__init__.py")
        found = re.search(r'^__version__ = "(.+)"$', text_of(file), re.MULTILINE)
        assert found is not None and found[1] == collection, file
    assert tomllib.loads(text_of(Path("salt/pyproject.toml")))["project"]["version"] == collection


def test_copy_for_ansible_follows_the_repository_and_keeps_what_ansible_test_stored(tmp_path: Path) -> None:
    source = tmp_path / "source"
    subprocess.run(["git", "init", "--quiet", source], check=True)
    for name, text in {"stays": "1", "goes": "2", "ignored": "3", ".gitignore": "ignored\n"}.items():
        (source / name).write_text(text)
    (source / "link").symlink_to("stays")
    copy = copy_tree(source, tmp_path / "copy")
    assert sorted(file.name for file in copy.iterdir()) == [".git", ".gitignore", "goes", "link", "stays"]
    assert os.readlink(copy / "link") == "stays"

    kept = copy / "tests" / "output" / "venv"
    kept.mkdir(parents=True)
    (source / "goes").unlink()
    (source / "stays").write_text("changed")
    copy_tree(source, tmp_path / "copy")
    assert not (copy / "goes").exists() and kept.exists() and (copy / "stays").read_text() == "changed"


def lists_of_types(source: str) -> Iterator[tuple[str, ...]]:
    """Yield the types that each list, tuple, set or dictionary of a program names, if there are several."""
    known = {kind.casefold() for kind in EVENT_TYPES}
    for node in ast.walk(ast.parse(source)):
        members = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
        named = tuple(
            str(member.value)
            for member in members
            if isinstance(member, ast.Constant) and str(member.value).casefold() in known
        )
        if len(named) > 1:
            yield named


def test_types_are_listed_in_one_file() -> None:
    found = {
        (name, named)
        for name in tracked_or_new(REPOSITORY)
        if name.suffix == ".py" and name.parts[0] in PRODUCT and SIMULATOR not in name.parents
        for named in lists_of_types((REPOSITORY / name).read_text(encoding="utf-8"))
    }
    real = {each for each in found if not (REPOSITORY / each[0]).is_symlink()}
    assert real - DEFAULTS == {(EVENT_TYPE_FILE, EVENT_TYPES)}
