# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The host or IMDS has a problem: a full disk, a second owner, a user without permission, errors of IMDS."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import sysconfig
from pathlib import Path

import pytest

from support.daemon.documents import quoted, rows
from support.daemon.simulated_azure import Azure
from support.other_user import folder_for_user, python_for_user
from support.repository import REPOSITORY
from support.troubleshooting.daemon_host import PYTHONPATH, DaemonHost
from support.troubleshooting.page import DOCUMENT, Section

# a process in a mount namespace of its own, with which its mounts end
IN_OWN_MOUNTS = ("unshare", "--mount", "--")


def skip_reason() -> str:
    """Return why a mount namespace is not possible here, or ""."""
    if os.geteuid() != 0:
        return "a mount namespace needs root"
    tried = subprocess.run(
        [*IN_OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True, check=False
    )
    return tried.stderr.strip() if tried.returncode else ""


pytestmark = pytest.mark.all
needs_mounts = pytest.mark.skipif(skip_reason() != "", reason=skip_reason() or "-")

# "nobody", who is in one group
USER = pwd.getpwnam("nobody").pw_uid
TABLE = rows((REPOSITORY / DOCUMENT).read_text(encoding="utf-8"), "IMDS answers with an error")
FAULTS = {
    "answered 429": "too-many-requests",
    "answered 410": "gone",
    "this status comes from a proxy or another service": "forbidden-html",
    "no connection": "refuse",
}
OLD_VERSION = "answered 400 to api-version"
# run a command with a full disk at a folder, and with the content of a folder at a path below /etc
FULL_DISK = """mount -t tmpfs -o size=8m,mode=0755 tmpfs "$0"
! dd if=/dev/zero of="$0/filler" bs=4k 2>/dev/null && exec "$@"
"""
OVERLAY = """mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work
mount -t overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work overlay /etc
mkdir -p "$1" && mount --bind "$0" "$1" && shift && exec "$@"
"""
BEACON = "beacons:\n  azure_events:\n    - interval: 1\n"


@needs_mounts
@pytest.mark.symptom("Records cannot be written")
def test_approval_waits_for_the_disk(section: Section, host: DaemonHost, azure: Azure) -> None:
    disk = host.folder / "lib"
    host.prefix = [*IN_OWN_MOUNTS, "sh", "-c", FULL_DISK, str(disk)]
    host.hook("prepare/10-drain", "rm -f /srv/ready")
    host.start()
    event = host.wait_for(azure.schedule("Reboot", id=section.event_id, source="User"), prepared="ok")
    host.wait(lambda: not host.status()["records"]["ok"])
    section.see(host.run, 1)
    assert azure.approvals() == []
    (Path(f"/proc/{host.pid()}/root") / disk.relative_to("/") / "filler").unlink()
    host.wait_for(event, approval="accepted")
    section.see(host.run)


@needs_mounts
@pytest.mark.symptom("Two components own the host")
def test_beacon_of_salt_is_found_by_check(section: Section, host: DaemonHost, tmp_path: Path) -> None:
    host.hook("prepare/10-drain", "rm -f /srv/ready")
    host.hook("recover/10-drain", "touch /srv/ready")
    host.write_config()
    minion = tmp_path / "minion.d"
    minion.mkdir()
    (minion / "azure.conf").write_text(BEACON)

    def run(command: str) -> tuple[int, str]:
        return host.run(command, *IN_OWN_MOUNTS, "sh", "-e", "-c", OVERLAY, str(minion), "/etc/salt/minion.d")

    section.see_all(run)


@pytest.mark.symptom("The command is not permitted")
def test_member_of_the_status_group_may_use_status(section: Section, azure: Azure) -> None:
    path = [*PYTHONPATH.split(os.pathsep), sysconfig.get_path("purelib")]
    python = python_for_user(f"sys.path.extend({path}) or (__import__('yaml') and __import__('hook_runner'))")
    if python is None:
        pytest.skip("no Python that another user can run, or this user cannot read the checkout")
    with folder_for_user() as folder:
        host = DaemonHost(folder, azure.simulator.endpoints["vm1"], str(python))
        host.python_path = os.pathsep.join(path)
        host.places["monitoring"] = grp.getgrgid(USER).gr_name
        host.start()
        try:
            section.see(lambda command: host.run(command, user=USER), 77)
            host.write_config(section.take("yaml").text)
            section.see(host.run)
            section.see(lambda command: host.run(command, user=USER))
        finally:
            host.stop()


def is_good(host: DaemonHost) -> bool:
    return bool(host.status()["imds"]["ok"])


def test_table_has_these_rows() -> None:
    assert {output for row in TABLE for output in quoted(row[0])} == {*FAULTS, OLD_VERSION}


@pytest.mark.parametrize("output", FAULTS)
def test_error_is_shown_and_its_end_too(host: DaemonHost, azure: Azure, output: str) -> None:
    host.start()
    kind = FAULTS[output]
    vm = {"vm": "vm1"} if kind == "refuse" else {}
    azure.fault(kind, **vm)
    host.wait(lambda: not is_good(host))
    code, text = host.run("azure-scheduled-events status")
    assert code == 1 and output in text
    azure.heal()
    host.wait(lambda: is_good(host))


def test_refused_api_version_is_shown_and_removed(host: DaemonHost) -> None:
    host.config = {"policy": "documented", "api_version": "2031-01-01"}
    host.start(until="IMDS gives no good answer")
    host.wait(lambda: host.status()["imds"]["error"])
    code, text = host.run("azure-scheduled-events status")
    assert code == 1 and OLD_VERSION in text
    host.write_config(policy="documented")
    assert host.run("systemctl restart azure-scheduled-events")[0] == 0
    assert host.run("azure-scheduled-events check")[0] == 0
