# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The components of the repository, by their folders, and which of them import which."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tools.repository.imports import imported_modules, sources

REPOSITORY = Path(__file__).resolve().parents[2]
COLLECTION = "ansible_collections.azure_imds.scheduled_events."
HELPER = "the helper"


class Component(NamedTuple):
    """A part of the repository.

    Attributes:
        name: as docs/architecture.md names it.
        folders: with its Python files, relative to the repository; the first one that contains a file decides.
        modules: beginnings of the dotted names by which other components import it; "" matches no other one.
    """

    name: str
    folders: tuple[str, ...]
    modules: tuple[str, ...] = ()


COMPONENTS = (
    Component(
        HELPER,
        ("plugins/module_utils/azure_scheduled_events",),
        ("azure_scheduled_events", COLLECTION + "plugins.module_utils.azure_scheduled_events"),
    ),
    Component(
        "shared by plugins",
        ("plugins/module_utils", "plugins/plugin_utils", "plugins/doc_fragments"),
        (COLLECTION + "plugins.module_utils", COLLECTION + "plugins.plugin_utils"),
    ),
    Component("modules", ("plugins/modules",), (COLLECTION + "plugins.modules",)),
    Component("action plugins, filters", ("plugins/action", "plugins/filter", "plugins/test")),
    Component("Event-Driven Ansible", ("extensions/eda/plugins",)),
    Component("hook runner", ("roles/hook_runner/files/hook_runner",), ("hook_runner",)),
    Component("ready hooks", ("roles/ready_hooks/files/ready_hooks",), ("ready_hooks",)),
    Component("simulator", ("roles/imds_simulator/files/imds_simulator",), ("imds_simulator",)),
    Component(
        "shared by Salt",
        ("salt/_utils",),
        ("azure_events_engine", "azure_events_functions", "azure_events_steps", "azure_events_watch"),
    ),
    Component("Salt on a minion", ("salt/_modules", "salt/_states", "salt/_beacons", "salt/_grains")),
    Component("Salt on a master", ("salt/_engines", "salt/_runners")),
)


def imports() -> set[tuple[str, str]]:
    """Return (importing component, imported component) for each pair."""
    found = set()
    for component in COMPONENTS:
        for folder in component.folders:
            for file in sources(REPOSITORY / folder):
                if owner_of(file) == component.name:
                    found |= {(component.name, target) for target in map(imported, imported_modules(file)) if target}
    return {(tail, head) for tail, head in found if tail != head}


def owner_of(file: Path) -> str:
    """Return the name of the component that a file belongs to, or "" if it is a link to another component's."""
    path = file.relative_to(REPOSITORY).as_posix()
    if file.is_symlink():
        return ""
    return next((each.name for each in COMPONENTS if any(path.startswith(f"{folder}/") for folder in each.folders)), "")


def imported(module: str) -> str:
    """Return the name of the component of a module, or ""."""
    return next(
        (
            each.name
            for each in COMPONENTS
            if any(module == name or module.startswith(f"{name}.") for name in each.modules)
        ),
        "",
    )
