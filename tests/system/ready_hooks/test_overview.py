# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/ready-hooks/README.md and the README of the role ready_hooks as printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from support.hosts.ansible_inventory import ansible_on
from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.workload_host import WorkloadHost
from support.recipes.printed import find, printed_in

pytestmark = pytest.mark.all

OVERVIEW = "docs/ready-hooks/README.md"
ROLE = "roles/ready_hooks/README.md"
UNIT = "app.service"
UNDO = "/etc/azure-scheduled-events/hooks.d/recover/78-app"


@pytest.fixture
def host(workload_host: Callable[[str], WorkloadHost]) -> WorkloadHost:
    host = workload_host("web1")
    host.write(f"/etc/systemd/system/{UNIT}", "[Service]\nExecStart=sleep infinity\n")
    host.run("systemctl", "daemon-reload")
    host.run("systemctl", "start", UNIT)
    return host


def is_active(host: WorkloadHost) -> bool:
    return host.run("systemctl", "is-active", UNIT, check=False).returncode == 0


def test_printed_play_and_command_lines_of_the_overview(host: WorkloadHost, tmp_path: Path) -> None:
    with printed_play("README", tmp_path, host) as play:
        play.apply()
        play.prepare("Reboot")
        assert not is_active(host)
        play.recover()
        assert is_active(host)
        runs = {run["name"] for run in play.history()["hooks"] if run["stage"] == "recover"}
        assert runs == {"78-app", "79-cache"}
        commands = [found.name for found in printed_in(OVERVIEW) if found.language == "sh"]
        check, by_hand, dry_run, prepare, recover, undo = commands
        assert undo == UNDO
        for command, active in ((check, True), (by_hand, True), (dry_run, True), (prepare, False), (recover, True)):
            host.shell(command)
            assert is_active(host) == active, command
        host.shell(prepare)
        assert not is_active(host)
        host.shell(undo)
        assert is_active(host)


def test_printed_play_of_the_role(host: WorkloadHost, tmp_path: Path) -> None:
    # the program of the reader
    host.write("/usr/local/bin/update-site", f"#!/bin/sh\nsystemctl is-active {UNIT} >/var/lib/seen\nexit 0\n", 0o755)
    (play,) = yaml.safe_load(find(ROLE, "update.yml").text)
    playbook = tmp_path / "update.yml"
    playbook.write_text(yaml.safe_dump([{**play, "hosts": "all", "become": False}]), encoding="utf-8")
    ran = ansible_on({host.host.name: host.host}, tmp_path).playbook(str(playbook))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert host.host.file("/var/lib/seen").read_text(encoding="utf-8").strip() == "inactive"
    assert is_active(host)
