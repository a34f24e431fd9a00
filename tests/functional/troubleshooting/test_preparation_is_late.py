# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The preparation does not end before the event: each cause, its output, and the effect of its remedy."""

from __future__ import annotations

import pytest

from support.daemon.simulated_azure import Azure
from support.troubleshooting.daemon_host import DaemonHost
from support.troubleshooting.page import Section

pytestmark = pytest.mark.all

DRAIN, BACKUP = "prepare/10-drain", "prepare/20-backup"
# runs until a test creates the file
UNTIL_RELEASED = "until test -e /srv/released; do sleep 0.05; done"


def next_event_is_prepared(host: DaemonHost, azure: Azure, *resources: str) -> None:
    event = azure.schedule("Reboot", *resources)
    host.wait_for(event, prepared="ok")


@pytest.mark.symptom("A hook reaches its time limit")
def test_hook_that_was_ended_succeeds_with_a_longer_limit(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, 'echo "17 connections are open"', UNTIL_RELEASED)
    host.config = {"policy": "documented", "hooks": {"10-drain": {"timeout": "1s"}}}
    host.start()
    event = azure.schedule("Reboot", id=section.event_id())
    host.wait_for(event, prepared="failed")
    section.see(host.run)
    host.write_config(section.take("yaml").text)
    assert host.run("systemctl reload azure-scheduled-events")[0] == 0
    azure.cancel(event)
    (host.folder / "srv" / "released").touch()
    next_event_is_prepared(host, azure)


@pytest.mark.symptom("Too little time is left for a hook")
def test_hook_without_time_runs_with_smaller_needs(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(BACKUP, "touch /srv/backup")
    host.config = {"policy": "documented", "hooks": {"20-backup": {"timeout": "10m", "needs": "10m"}}}
    host.start()
    event = azure.schedule("Redeploy", id=section.event_id())
    host.wait_for(event, prepared="failed")
    section.see(host.run)
    host.write_config(section.take("yaml").text)
    assert host.run("systemctl reload azure-scheduled-events")[0] == 0
    azure.cancel(event)
    next_event_is_prepared(host, azure)
    assert (host.folder / "srv" / "backup").exists()


@pytest.mark.symptom("The event starts while hooks run")
def test_hooks_end_when_another_client_has_approved(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, UNTIL_RELEASED)
    host.hook("started/10-notice", "logger -t azure 'the event has started'")
    host.start()
    event = azure.schedule("Reboot", "vm1", "vm2", id=section.event_id())
    host.wait(lambda: host.event(event).get("prepared") == "running")
    azure.approve(event, "vm2")
    azure.advance(2)
    host.wait_for(event, status="Started")
    host.wait(lambda: "hook-ended: started/10-notice" in host.log())
    section.see(host.run)
