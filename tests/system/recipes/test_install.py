# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The commands of README and docs/ansible.md install a release of this checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.recipes.galaxy import serve_galaxy
from support.recipes.project import Project

pytestmark = pytest.mark.all

README, GUIDE = "README.md", "docs/ansible.md"
BY_NAME = "ansible-galaxy collection install azure_imds.scheduled_events"
BY_FILE = "ansible-galaxy collection install --requirements-file requirements.yml"


@pytest.mark.follows(README, BY_NAME)
@pytest.mark.follows(GUIDE, "requirements.yml", BY_FILE)
def test_commands_install_a_release(archive: Path, project: Project) -> None:
    project.take(GUIDE, "requirements.yml")
    with serve_galaxy(archive) as url:
        project.set("ANSIBLE_GALAXY_SERVER", url)
        for command in (BY_NAME, BY_FILE):
            home = project.folder / f"home{len(command)}"
            project.set("ANSIBLE_HOME", str(home))
            project.run(command).must_succeed()
            assert (home / "collections/ansible_collections/azure_imds/scheduled_events/MANIFEST.json").is_file()
