# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Arrows between the rooms point one way: doors import the helper, the helper imports nobody, the simulator shares nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.imports import foreign, sources

REPOSITORY = Path(__file__).resolve().parents[2]
HELPER = REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events"
SIMULATOR = REPOSITORY / "roles" / "imds_simulator" / "files" / "imds_simulator"
DOORS = [REPOSITORY / "plugins" / "modules", REPOSITORY / "plugins" / "module_utils"]

HELPER_MAY_IMPORT = {"requests", "urllib3", "yaml"}
# multidict is what aiohttp keeps headers in
SIMULATOR_MAY_IMPORT = {"aiohttp", "multidict", "jsonschema", "yaml", "imds_simulator"}


def relative_name(file: Path) -> str:
    return file.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("file", sources(HELPER), ids=relative_name)
def test_helper_imports_itself_relatively_and_no_door(file: Path) -> None:
    assert foreign(file) <= HELPER_MAY_IMPORT


def test_one_file_imports_requests() -> None:
    inside = [file for file in sources(HELPER) if "requests" in foreign(file)]
    outside = [file for door in DOORS for file in sources(door) if HELPER not in file.parents and "requests" in foreign(file)]
    assert len(inside) == 1
    assert outside == []


@pytest.mark.parametrize("file", sources(SIMULATOR), ids=relative_name)
def test_simulator_shares_no_code_with_the_helper(file: Path) -> None:
    assert foreign(file) <= SIMULATOR_MAY_IMPORT
