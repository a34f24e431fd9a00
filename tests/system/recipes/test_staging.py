# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The playbook of the role imds_simulator for a rehearsal on staging machines."""

from __future__ import annotations

import pytest

from support.hosts.lab import Lab
from support.recipes.project import Project, write_inventory

pytestmark = pytest.mark.all

DOCUMENT, PLAYBOOK = "roles/imds_simulator/README.md", "- name: Rehearse a live migration on the staging web servers"
WAIT = (
    "ansible staging_web --inventory hosts.yml"
    " --module-name azure_imds.scheduled_events.event_wait --args state=scheduled"
)


@pytest.mark.follows(DOCUMENT, PLAYBOOK)
def test_simulator_announces_a_freeze_on_a_staging_host(lab: Lab, project: Project) -> None:
    project.take_as("rehearse.yml", DOCUMENT, PLAYBOOK)
    write_inventory(project, "staging_web", {"staging1": lab.host("staging1")})
    project.run("ansible-playbook --inventory hosts.yml rehearse.yml").must_succeed()
    assert '"event_type": "Freeze"' in project.run(WAIT).must_succeed().text
