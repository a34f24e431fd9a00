# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The playbooks with which the READMEs of the roles imds_simulator and hook_runner begin."""

from __future__ import annotations

from typing import Callable

import pytest
from hosts.lab import Lab
from hosts.patience import until

from recipes.fleet import Fleet
from recipes.project import LONGEST, Project, invent

OF_SIMULATOR, REHEARSAL = "roles/imds_simulator/README.md", "- name: Rehearse a live migration on the staging web servers"
OF_RUNNER, DATABASES = "roles/hook_runner/README.md", "- name: Database servers leave their cluster before Azure touches them"
WAIT = "ansible staging_web --inventory hosts.yml --module-name azure_imds.scheduled_events.event_wait --args state=scheduled"


@pytest.mark.follows(OF_SIMULATOR, REHEARSAL)
def test_the_simulator_announces_a_freeze_on_a_staging_host(lab: Lab, project: Project) -> None:
    project.take_as("rehearse.yml", OF_SIMULATOR, REHEARSAL)
    invent(project, "staging_web", {"staging1": lab.host("staging1")})
    project.run("ansible-playbook --inventory hosts.yml rehearse.yml").must_succeed()
    assert '"event_type": "Freeze"' in project.run(WAIT).must_succeed().text


@pytest.mark.follows(OF_RUNNER, DATABASES)
def test_database_servers_leave_their_cluster_and_join_it_again(fleet: Callable[..., Fleet], project: Project) -> None:
    databases = fleet("database1")
    project.take_as("databases.yml", OF_RUNNER, DATABASES)
    project.write("files/leave-cluster.sh", "#!/bin/sh\nexec /usr/local/bin/leave-cluster\n")
    invent(project, "databases", databases.hosts)
    project.run("ansible-playbook --inventory hosts.yml databases.yml").must_succeed()
    databases.announce("Reboot", "database1")
    end = "database1 join-cluster --after Reboot"
    until(lambda: end in databases.happened(), end, databases.happened, LONGEST)
    assert databases.happened() == ["database1 leave-cluster", "database1 approved", "Reboot database1 started", "Reboot database1 finished", end]
