# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Salt gets the whole helper and the ready hooks by links; its package and its examples are complete."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from azure_events_steps.ready_hook_steps import NAMES as READY_HOOKS
from ready_hooks.hooks import NAMES as HOOKS
from support.repository import REPOSITORY
from tools.repository.collection_tree import tracked_or_new
from tools.repository.hook_links import LINKS as HOOK_LINKS
from tools.repository.hook_links import present_links, wanted_links

HELPER = REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events"
SALT = REPOSITORY / "salt"
LINKS = SALT / "_utils" / "azure_scheduled_events"
WATCH = SALT / "_utils" / "azure_events_watch"
TRACKED = {path for path in tracked_or_new(REPOSITORY) if path.suffix != ".draft"}


def tracked_names(folder: Path) -> set[str]:
    return {path.name for path in TRACKED if REPOSITORY / path.parent == folder}


def test_every_file_of_the_ready_hooks_has_a_link_and_every_link_a_file() -> None:
    """``python -m tools.repository.hook_links`` makes the links."""
    assert present_links(REPOSITORY) == wanted_links(REPOSITORY)


def test_steps_know_the_names_of_the_ready_hooks() -> None:
    launchers = {path.name for path in wanted_links(REPOSITORY) if path.parent == HOOK_LINKS} - {"run"}
    assert set(READY_HOOKS) == set(HOOKS) == launchers


def test_every_file_of_the_helper_has_a_relative_link_and_every_link_a_file() -> None:
    links = {name: os.readlink(LINKS / name) for name in tracked_names(LINKS)}
    folder = "../../../plugins/module_utils/azure_scheduled_events/"
    assert links == {name: folder + name for name in tracked_names(HELPER)}


def test_no_folder_is_a_link() -> None:
    """ansible-test and gitfs take links to files only."""
    assert [path for path in map(REPOSITORY.joinpath, TRACKED) if path.is_symlink() and path.is_dir()] == []


def test_import_of_state_file_loads_no_helper_because_the_grain_imports_it() -> None:
    program = "import sys, azure_events_watch.state_file; sys.exit('azure_scheduled_events' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=WATCH.parent, check=False).returncode == 0


def test_package_contains_every_folder_with_python() -> None:
    settings = tomllib.loads((SALT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {
        path.parent.relative_to("salt").as_posix()
        for path in TRACKED
        if path.parts[0] == "salt" and path.suffix == ".py" and HOOK_LINKS not in path.parents
    }
    assert set(settings["package-dir"].values()) == {*folders, HOOK_LINKS.relative_to("salt").as_posix()}
    assert set(settings["package-dir"]) == set(settings["packages"])


def test_arguments_of_functions_are_those_that_the_security_page_describes() -> None:
    """Of the functions and states that jobs call, docs/salt-security.md names those with ``endpoint``."""
    given = {
        (module, function.name.rstrip("_")): {
            argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)
        }
        for module in ("_modules", "_states")
        for function in ast.parse((SALT / module / "azure_events.py").read_text(encoding="utf-8")).body
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_")
    }
    with_endpoint = {name for name, arguments in given.items() if "endpoint" in arguments}
    functions = ("list", "get", "pending", "wait", "instance", "approve")
    states = ("pending", "approved", "settled")
    assert with_endpoint == {*(("_modules", name) for name in functions), *(("_states", name) for name in states)}
    known = {"event_id", "test", "resources", "forced", "event_type"}
    jobs = ("prepare", "recover", "status", "sweep", "check", "approve_prepared")
    assert [name for name in jobs if given["_modules", name] - known] == []
    page = " ".join((REPOSITORY / "docs" / "salt-security.md").read_text(encoding="utf-8").split())
    named = ", ".join(f"`{name}`" for name in functions[:-1])
    assert f"an argument of {named} and `approve`, and of the states `pending`, `approved` and `settled`" in page
