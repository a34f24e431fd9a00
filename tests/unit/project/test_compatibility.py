# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/compatibility.md, and the README's table, agree with the code, the roles and the tests."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from azure_scheduled_events.document import API_VERSION
from imds_simulator.api_versions import FIELD_SINCE, SCHEDULED_EVENTS_VERSIONS, TYPE_SINCE
from support.daemon.documents import quoted, rows, section
from support.hosts import rootfs
from support.repository import REPOSITORY
from tools.windows_python.release import RELEASES

PAGE = (REPOSITORY / "docs" / "compatibility.md").read_text(encoding="utf-8")
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
WORKFLOW = REPOSITORY / ".github" / "workflows" / "test.yml"
TABLES = ("Ansible", "Python", "Salt", "Systems", "Libraries", "API versions of Scheduled Events", "Windows")
ROLES = ("hook_runner", "ready_hooks", "imds_simulator")
VERSION = re.compile(r"\d+(?:[.-]\d+)*")


def text_of(path: str) -> str:
    return (REPOSITORY / path).read_text(encoding="utf-8")


def row(heading: str, beginning: str, page: str = PAGE) -> list[str]:
    """Return the only row below a heading whose first cell begins with this text."""
    (found,) = [cells for cells in rows(page, heading) if cells[0].startswith(beginning)]
    return found


def least(cell: str) -> str:
    """Return the version in "3.9 and later"."""
    match = re.match(r"([\d.]+) and later", cell)
    assert match, cell
    return match[1]


def test_each_folder_of_the_last_columns_has_tests() -> None:
    named = {name for heading in TABLES for cells in rows(PAGE, heading) for name in quoted(cells[-1])}
    folders = named - {"ansible-test sanity"}
    assert folders and [name for name in folders if not (REPOSITORY / "tests" / name).is_dir()] == []


def test_oldest_ansible_core_is_that_of_collection_and_roles() -> None:
    (core, *_others) = [cells for cells in rows(PAGE, "Ansible") if cells[0] == "ansible-core"]
    oldest = least(core[1])
    assert yaml.safe_load(text_of("meta/runtime.yml"))["requires_ansible"] == f">={oldest}.0"
    for path in REPOSITORY.glob("roles/*/meta/main.yml"):
        assert yaml.safe_load(path.read_text(encoding="utf-8"))["galaxy_info"]["min_ansible_version"] == oldest
    assert core[2:] == [oldest, "`integration/targets`"]


def test_oldest_ansible_rulebook_is_that_of_the_tests() -> None:
    supported = row("Ansible", "ansible-rulebook")[1]
    assert f"ansible-rulebook >= {least(supported)} " in text_of("tests/requirements.txt")
    (java,) = re.findall(r"Java (\d+)", supported)
    assert f"Java {java} " in text_of("docs/event-driven.md")


def project(path: str) -> Any:
    return tomllib.loads(text_of(path))


def test_oldest_pythons_are_those_of_the_code() -> None:
    ruff = project("pyproject.toml")["tool"]["ruff"]
    targets = ruff["per-file-target-version"]
    supported = {cells[0].strip("[").partition("]")[0]: least(cells[1]) for cells in rows(PAGE, "Python")}
    (modules,) = re.findall(r"- python >= ([\d.]+)", text_of("plugins/doc_fragments/_imds.py"))
    (daemon,) = re.findall(r"sys\.version_info >= \((\d+, \d+)\)", text_of("roles/hook_runner/tasks/present.yml"))
    simulator = project("roles/imds_simulator/files/pyproject.toml")["project"]["requires-python"]
    modules_of_salt = project("salt/pyproject.toml")["project"]["requires-python"]
    assert supported == {
        "helper": dotted(ruff["target-version"]),
        "modules on managed hosts": modules,
        "hook runner": daemon.replace(", ", "."),
        "ready hooks": dotted(targets["roles/ready_hooks/**"]),
        "simulator": dotted(targets["roles/imds_simulator/**"]),
        "Salt's modules": modules_of_salt.removeprefix(">="),
        "event source and event filter": dotted(targets["extensions/**"]),
        "tests and tools": dotted(targets["tools/**"]),
    }
    assert simulator == f">={supported['simulator']}"


def dotted(target: str) -> str:
    """Return the version of a target of ruff, such as py38."""
    return target.replace("py3", "3.")


def test_pythons_of_the_page_are_those_of_the_workflow() -> None:
    configured = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["env"]["PYTHONS"].split()
    (sentence,) = re.findall(r"The GitHub workflow has Python (.*?)\. ", PAGE)
    assert VERSION.findall(sentence) == sorted(configured, key=lambda version: int(version.split(".")[1]))


def test_each_series_of_salt_is_the_pinned_one() -> None:
    tested = {cells[0]: VERSION.findall(cells[1])[0] for cells in rows(PAGE, "Salt")}
    pins = {
        series: re.findall(r"^salt==(\S+)$", text_of(f"tests/salt/requirements-{series}.txt"), re.MULTILINE)
        for series in tested
    }
    assert pins == {series: [version] for series, version in tested.items()}
    assert len(pins) == len(list((REPOSITORY / "tests" / "salt").glob("requirements-*.txt")))


@pytest.mark.parametrize("role", ROLES)
def test_each_system_of_a_role_is_listed_and_no_other(role: str) -> None:
    column = 1 + ROLES.index(role)
    listed = {cells[0].partition(" (")[0] for cells in rows(PAGE, "Systems") if cells[column] == "yes"}
    galaxy = yaml.safe_load(text_of(f"roles/{role}/meta/main.yml"))["galaxy_info"]
    assert listed == {f"{system['name']} {name}" for system in galaxy["platforms"] for name in system["versions"]}


def test_systems_with_tests_are_the_roots_of_the_tests() -> None:
    tested = {cells[0].split()[1] for cells in rows(PAGE, "Systems") if "`system/hosts`" in cells[-1]}
    assert tested == {rootfs.SUITE, *rootfs.OTHER_SUITES}
    (criu,) = [cells for cells in rows(PAGE, "Systems") if cells[0].split()[1] == rootfs.CRIU_SUITE]
    assert "`system/ready_hooks`" in criu[-1]


def test_oldest_libraries_are_those_of_the_tests() -> None:
    oldest = next(cells for cells in rows(PAGE, "Libraries") if cells[0] == "requests")
    pins = dict(
        re.findall(r"^(\w+) == ([\d.]+);", text_of("tests/functional/transport/requirements-oldest.txt"), re.MULTILINE)
    )
    assert (least(oldest[2]), oldest[3]) == (pins["requests"], f"{pins['requests']} with urllib3 {pins['urllib3']}")
    metrics = least(row("Libraries", "prometheus_client")[2])
    assert f"prometheus_client >= {metrics} " in text_of("tests/requirements.txt")
    needed = project("roles/imds_simulator/files/pyproject.toml")["project"]["dependencies"]
    supported = dict(re.findall(r"(\w+) ([\d.]+)", row("Libraries", "aiohttp")[2]))
    assert {f"{name}>={version}" for name, version in supported.items()} <= set(needed)


def test_api_versions_are_those_of_the_simulator_with_the_members_that_each_adds() -> None:
    heading = "API versions of Scheduled Events"
    table = rows(PAGE, heading)
    assert tuple(cells[0] for cells in table) == SCHEDULED_EVENTS_VERSIONS
    added = {version: name for name, version in {**TYPE_SINCE, **FIELD_SINCE}.items()}
    assert {cells[0]: cells[1].removeprefix("with ") for cells in table if cells[1].startswith("with ")} == added
    assert f"All parts ask for {API_VERSION}." in section(PAGE, heading)
    arm = text_of("plugins/plugin_utils/_maintenance/arm_acknowledge.py")
    ((stable, preview),) = re.findall(r"with version (\S+) of\s+Microsoft\.Maintenance,\s+and with (\S+) ", PAGE)
    assert f'\nAPI_VERSION = "{stable}"' in arm and f'\nPREVIEW_API_VERSION = "{preview}"' in arm


def test_pythons_of_windows_are_those_of_the_tests() -> None:
    assert VERSION.findall(row("Windows", "helper")[2]) == [release.python for release in RELEASES]


def test_table_of_the_readme_has_the_versions_of_the_page() -> None:
    python = {cells[0].strip("[").partition("]")[0]: least(cells[1]) for cells in rows(PAGE, "Python")}
    series = [cells[0] for cells in rows(PAGE, "Salt") if "has ended its support" not in cells[1]]
    versions = [cells[0] for cells in rows(PAGE, "API versions of Scheduled Events")]
    expected = {
        "ansible-core": [least(rows(PAGE, "Ansible")[0][1])],
        "Python on the VMs": [python["modules on managed hosts"], python["helper"]],
        "Salt": [*series, python["Salt's modules"]],
        "Scheduled Events API": [versions[0], versions[-1]],
        "simulator": [python["simulator"]],
    }
    found = {name: VERSION.findall(row("Compatibility", name, README)[1]) for name in expected}
    found["ansible-core"] = found["ansible-core"][:1]
    assert found == expected
