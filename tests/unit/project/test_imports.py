# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Imports point one way.

Frontends import the helper, the helper imports no frontend, the simulator shares no code, ready
hooks import only the standard library, and packages import only packages below them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.repository import REPOSITORY
from tools.repository.imports import foreign, internal_imports, sources
from tools.repository.layers import HELPER, HOOK_RUNNER, LAYERS, READY_HOOKS, SIMULATOR

ARCHITECTURE = REPOSITORY / "docs" / "architecture.md"
FRONTENDS = [REPOSITORY / "plugins" / "modules", REPOSITORY / "plugins" / "module_utils"]

HELPER_MAY_IMPORT = {"requests", "urllib3", "yaml"}
# multidict is what aiohttp keeps headers in; only the recorder imports requests and its errors of urllib3
SIMULATOR_MAY_IMPORT = {"aiohttp", "multidict", "jsonschema", "requests", "urllib3", "yaml", "imds_simulator"}


def test_helper_imports_no_frontend() -> None:
    assert {file.name: found for file in sources(HELPER) if (found := foreign(file) - HELPER_MAY_IMPORT)} == {}


def test_one_file_imports_requests() -> None:
    inside = [file for file in sources(HELPER) if "requests" in foreign(file)]
    outside = [
        file
        for folder in FRONTENDS
        for file in sources(folder)
        if HELPER not in file.parents and "requests" in foreign(file)
    ]
    assert len(inside) == 1
    assert outside == []


def test_simulator_shares_no_code_with_the_helper() -> None:
    assert {file.name: found for file in sources(SIMULATOR) if (found := foreign(file) - SIMULATOR_MAY_IMPORT)} == {}


def test_ready_hooks_import_only_the_standard_library() -> None:
    assert {file.name: found for file in sources(READY_HOOKS) if (found := foreign(file) - {"ready_hooks"})} == {}


def test_ready_hook_imports_no_other_hook() -> None:
    hooks = {module: found for module, found in internal_imports(READY_HOOKS).items() if module.startswith("hooks.")}
    others = [
        (module, imported)
        for module, found in hooks.items()
        for imported in found
        if imported.startswith("hooks.") and imported.split(".")[1] != module.split(".")[1]
    ]
    assert hooks and others == []


@pytest.mark.parametrize("package", LAYERS, ids=lambda package: package.name)
def test_package_imports_only_packages_below_it(package: Path) -> None:
    floor = {name: number for number, names in enumerate(LAYERS[package]) for name in names}
    upwards = [
        (module, imported)
        for module, found in internal_imports(package).items()
        for imported in found
        if module.partition(".")[0] != imported.partition(".")[0]
        and floor[imported.partition(".")[0]] >= floor[module.partition(".")[0]]
    ]
    assert upwards == []


@pytest.mark.parametrize("package", [HOOK_RUNNER, SIMULATOR], ids=lambda package: package.name)
def test_architecture_page_shows_the_layers(package: Path) -> None:
    pattern = rf"!\[[^]]+, from the top: ([^]]+)\]\(images/import-order-{package.name}\.svg\)"
    (order,) = re.findall(pattern, ARCHITECTURE.read_text("utf-8"))
    layers = [names for names in LAYERS[package] if names not in ({""}, {"__main__"})]
    assert [set(row.split(", ")) for row in order.split("; ")] == layers[::-1]


@pytest.mark.parametrize("package", [*LAYERS, HELPER], ids=lambda package: package.name)
def test_package_has_no_import_cycle(package: Path) -> None:
    left = {module: found - {""} for module, found in internal_imports(package).items()}
    while free := [module for module, found in left.items() if not found & (left.keys() - {module})]:
        left = {module: found for module, found in left.items() if module not in free}
    assert left == {}
