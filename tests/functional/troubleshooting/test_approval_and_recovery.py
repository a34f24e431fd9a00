# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The hook runner does not approve, or does not recover: each cause, its output, and the effect of its remedy."""

from __future__ import annotations

import pytest

from support.daemon.simulated_azure import Azure
from support.troubleshooting.daemon_host import DaemonHost
from support.troubleshooting.page import Section

pytestmark = pytest.mark.all

DRAIN, JOIN = "prepare/10-drain", "recover/10-drain"


@pytest.mark.symptom("The policy approves nothing")
def test_event_of_policy_observe_is_approved_by_hand(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.config = {"policy": "observe"}
    host.start()
    host.wait_for(azure.schedule("Reboot", id=section.event_id), prepared="ok")
    section.see_all(host.run)
    host.wait(azure.approvals)


@pytest.mark.symptom("The event affects several VMs")
def test_event_of_several_vms_is_approved_by_hand(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.start()
    host.wait_for(azure.schedule("Freeze", "vm1", "vm2", duration=5, id=section.event_id), prepared="ok")
    section.see_all(host.run)
    host.wait(azure.approvals)


@pytest.mark.symptom("A prepare hook has failed")
def test_event_with_a_failed_hook_is_approved_by_force(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, 'echo "lb1.example.com: connection refused" >&2', "exit 1")
    host.start()
    host.wait_for(azure.schedule("Reboot", id=section.event_id, source="User"), prepared="failed")
    section.see(host.run, 1, 0, 1, 0)
    host.wait(azure.approvals)


@pytest.mark.symptom("A gate is closed")
def test_event_is_approved_when_the_gate_opens(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.page_config = section.take("yaml").text
    (host.folder / "srv" / "cluster").mkdir(mode=0o755)
    host.start()
    event = host.wait_for(azure.schedule("Reboot", id=section.event_id), prepared="ok")
    section.see(host.run, 0, 0)
    host.wait_for(event, approval="accepted")
    section.see(host.run)


@pytest.mark.symptom("IMDS refuses the approval")
def test_refused_approval_is_repeated_until_it_is_accepted(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.start()
    azure.fault("forbidden-html", method="POST")
    event = host.wait_for(azure.schedule("Reboot", id=section.event_id, source="User"), approval="refused")
    azure.advance(2)
    host.wait(lambda: len(azure.requests("POST")) == 2)
    host.wait_for(event, reason_code="request_waits")
    section.see(host.run, 1)
    azure.heal()
    host.run(f"azure-scheduled-events approve {event}")
    host.wait_for(event, approval="accepted")


@pytest.mark.symptom("Restarts of users wait 15 minutes")
def test_policy_documented_approves_the_restart_of_a_user(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.config = {"policy": "observe"}
    host.start()
    event = host.wait_for(azure.schedule("Reboot", id=section.event_id, source="User"), prepared="ok")
    section.see(host.run)
    host.write_config(section.take("yaml").text)
    section.see(host.run)
    host.wait_for(event, approval="accepted")
    section.see(host.run)


def started_event(section: Section, host: DaemonHost, azure: Azure) -> str:
    """Start the daemon and return an event that it has prepared and approved, and that has started."""
    host.start()
    event = host.wait_for(azure.schedule("Freeze", id=section.event_id, duration=5), approval="accepted")
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
    section.see(host.run, 1, 0)
    host.write("/etc/azure-scheduled-events/hooks.d/recover/10-drain", section.take("sh").text, 0o755)
    section.see(host.run, 0, 0)
    host.wait(lambda: host.maintenance() is None)
    section.see(host.run)
    assert (host.folder / "srv" / "ready").exists()


@pytest.mark.symptom("The stage recover has no matching hook")
def test_missing_recover_hook_is_found_by_check(section: Section, host: DaemonHost) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.hook("recover/10-join", "touch /srv/ready")
    host.write_config()
    section.see_all(host.run)


@pytest.mark.symptom("IMDS still lists the event")
def test_host_recovers_when_imds_removes_the_event(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.hook(JOIN, "touch /srv/ready")
    event = started_event(section, host, azure)
    section.see(host.run, 0, 1)
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
