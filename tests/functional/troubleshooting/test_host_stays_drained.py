# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The hook runner does not recover a host: each cause, its output, and the effect of its remedy."""

from __future__ import annotations

import pytest

from support.daemon.simulated_azure import Azure
from support.troubleshooting.daemon_host import DaemonHost
from support.troubleshooting.page import Section

pytestmark = pytest.mark.all

DRAIN, JOIN = "prepare/10-drain", "recover/10-drain"


def started_event(section: Section, host: DaemonHost, azure: Azure) -> str:
    """Start the daemon and return an event that it has prepared and approved, and that has started."""
    host.start()
    event = azure.schedule("Freeze", id=section.event_id(), duration=5)
    host.wait_for(event, approval="accepted")
    azure.advance(2)
    host.wait_for(event, status="Started")
    return event


@pytest.mark.symptom("A recover hook fails")
def test_host_recovers_with_the_corrected_hook(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.hook(JOIN, "exec touch /srv/www/ready")
    event = started_event(section, host, azure)
    azure.complete(event)
    host.wait(lambda: (host.maintenance() or {}).get("not_recovered"))
    section.see(host.run, 1)
    section.see(host.run)
    host.write("/etc/azure-scheduled-events/hooks.d/recover/10-drain", section.take("sh").text, 0o755)
    section.see(host.run)
    section.see(host.run)
    host.wait(lambda: host.maintenance() is None)
    section.see(host.run)
    assert (host.folder / "srv" / "ready").exists()


@pytest.mark.symptom("The stage recover has no matching hook")
def test_missing_recover_hook_is_found_by_check(section: Section, host: DaemonHost) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.hook("recover/10-join", "touch /srv/ready")
    host.write_config()
    section.see(host.run)
    section.see(host.run)
    section.see(host.run)


@pytest.mark.symptom("IMDS still lists the event")
def test_host_recovers_when_imds_removes_the_event(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.hook(JOIN, "touch /srv/ready")
    event = started_event(section, host, azure)
    section.see(host.run)
    section.see(host.run, 1)
    azure.complete(event)
    host.wait((host.folder / "srv" / "ready").exists)


@pytest.mark.symptom("IMDS gives no good answer after the event")
def test_host_recovers_when_imds_answers_again(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.hook(JOIN, "touch /srv/ready")
    event = started_event(section, host, azure)
    azure.fault("unavailable")
    azure.complete(event)
    host.wait(lambda: host.status()["imds"]["error"])
    section.see(host.run, 1)
    azure.heal()
    host.wait((host.folder / "srv" / "ready").exists)
