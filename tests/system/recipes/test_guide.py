# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Other statements of docs/ansible.md: the settings and the rehearsal."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable

import pytest

from support.recipes.fleet import Fleet
from support.recipes.printed import printed_in
from support.recipes.project import Project, write_inventory
from support.repository import REPOSITORY

pytestmark = pytest.mark.all

GUIDE = "docs/ansible.md"
ASK = "ansible web --module-name azure_imds.scheduled_events.event_info"
(REHEARSE,) = (printed.name for printed in printed_in(GUIDE) if "imds_simulator exec" in printed.name)


@pytest.mark.follows(GUIDE, "ansible.cfg", ASK)
def test_settings_are_read_and_a_host_returns_its_events(fleet: Callable[..., Fleet], project: Project) -> None:
    web = fleet("web1")
    event_id = web.announce("Freeze", "web1")
    project.take(GUIDE, "ansible.cfg")
    write_inventory(project, "web", web.hosts, "inventory/")
    assert event_id in project.run(ASK).must_succeed().text
    settings = dict(
        re.findall(
            r"^(\w+)\(.*\) = (.*)$",
            project.run("ansible-config dump --only-changed --type all").must_succeed().text,
            re.MULTILINE,
        )
    )
    printed = (project.folder / "ansible.cfg").read_text(encoding="utf-8")
    assert settings["DEFAULT_FORKS"] == "50" and settings["pipelining"] == "True"
    assert settings["ssh_args"] == re.findall(r"^ssh_args = (.*)$", printed, re.MULTILINE)[0]


@pytest.mark.skipif(not shutil.which("ssh"), reason="needs ssh to read the options of the guide")
def test_ssh_accepts_the_options() -> None:
    texts = [(REPOSITORY / document).read_text(encoding="utf-8") for document in (GUIDE, "docs/bounds.md")]
    (options,) = {option for text in texts for option in re.findall(r"^ssh_args = (.*)$", text, re.MULTILINE)}
    shown = subprocess.run(
        ["ssh", "-G", *options.split(), "web1"], capture_output=True, text=True, timeout=60, check=True
    ).stdout.splitlines()
    assert {"serveraliveinterval 10", "serveralivecountmax 3"} <= set(shown)


@pytest.mark.follows(GUIDE, REHEARSE)
def test_rehearsal_succeeds(project: Project) -> None:
    assert "prepared" in project.run(REHEARSE).must_succeed().text
