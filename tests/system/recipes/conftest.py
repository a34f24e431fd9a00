# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A user's machine: the installed collection, a project folder, and VMs with IMDS at 169.254.169.254."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import simulator_process
from support.hosts.bridge import IMDS
from support.hosts.lab import Lab
from support.recipes.fleet import Fleet
from support.recipes.printed import FILE, find
from support.recipes.project import TIMEOUT, Project, own_environment
from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree


def galaxy(home: Path, *arguments: str) -> None:
    """Run ansible-galaxy in a copy of the checkout, as a user with this home directory."""
    tree = copy_tree(REPOSITORY, REPOSITORY / ".cache" / "trees" / "recipes")
    command = ["ansible-galaxy", "collection", *arguments]
    ran = subprocess.run(
        command, cwd=tree, env=own_environment(home), capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of this checkout, as a release would publish it."""
    folder = tmp_path_factory.mktemp("archive")
    galaxy(folder, "build", "--output-path", str(folder))
    (built,) = folder.glob("*.tar.gz")
    return built


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory, archive: Path) -> Path:
    """A home directory with the collection, installed from its archive."""
    folder = tmp_path_factory.mktemp("home")
    galaxy(folder, "install", "--offline", str(archive))
    return folder


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("lab") / "hosts") as made:
        yield made


@pytest.fixture
def fleet(lab: Lab) -> Iterator[Callable[..., Fleet]]:
    """Make a fleet: `fleet("web1", "web2")` has two single VMs, `fleet("web1 web2")` a set of two VMs."""
    with contextlib.ExitStack() as ends:

        def make(*groups: str) -> Fleet:
            hosts = {name: lab.host(name) for group in groups for name in group.split()}
            scenario = {
                "groups": {
                    f"group{number}": {"vms": {name: {"source": hosts[name].address} for name in group.split()}}
                    for number, group in enumerate(groups)
                },
                "knobs": {"rate_limit": 0},
            }
            return Fleet(hosts, ends.enter_context(simulator_process.start(scenario, listen=f"{IMDS}:80")))

        yield make


@pytest.fixture
def project(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Iterator[Project]:
    """A project folder with the files that the marker `follows` of a test names.

    A test fails if it does not use a command or another block of its marker.
    """
    followed = [find(mark.args[0], name) for mark in request.node.iter_markers("follows") for name in mark.args[1:]]
    made = Project(tmp_path / "project", own_environment(home))
    for printed in followed:
        if printed.kind == FILE:
            made.write(printed.name, printed.text)
    try:
        yield made
    finally:
        made.close()
    assert [each.name for each in followed if each.kind != FILE and each.name not in made.used] == []
