# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The service and the timer of docs/ansible.md start a run, and never a second one beside it."""

from __future__ import annotations

import configparser
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest
from hosts.patience import until

from recipes.fleet import Fleet
from recipes.printed import find
from recipes.project import Project

GUIDE = "docs/ansible.md"
SERVICE, TIMER = "azure-maintenance.service", "azure-maintenance.timer"
UNITS = "/etc/systemd/system"
# in the place of ansible-playbook on a host that has none
STAND_IN = '#!/bin/sh\necho "$PWD $*" >>/var/log/runs\n'


@pytest.mark.follows(GUIDE, SERVICE, TIMER)
def test_systemd_starts_a_run(fleet: Callable[..., Fleet], project: Project) -> None:
    host = fleet("controller1").hosts["controller1"]
    program = host.file("/srv/maintenance/.venv/bin/ansible-playbook")
    program.parent.mkdir(parents=True)
    program.write_text(STAND_IN, encoding="utf-8")
    program.chmod(0o755)
    for unit in (SERVICE, TIMER):
        host.file(f"{UNITS}/{unit}").write_bytes(project.take_as(unit, GUIDE, unit).read_bytes())
    host.run(["systemd-analyze", "verify", f"{UNITS}/{SERVICE}", f"{UNITS}/{TIMER}"])
    host.run(["systemctl", "daemon-reload"])
    host.run(["systemctl", "enable", "--now", TIMER])
    host.run(["systemctl", "start", SERVICE])
    assert host.file("/var/log/runs").read_text() == "/srv/maintenance maintenance.yml\n"
    until(lambda: TIMER in host.run(["systemctl", "list-timers", "--no-pager"]).stdout, "the timer waits")
