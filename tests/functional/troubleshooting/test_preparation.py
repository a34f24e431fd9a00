# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The hook runner prepares nothing, or too late: each cause, its output, and the effect of its remedy."""

from __future__ import annotations

import pytest

from support.daemon.simulated_azure import Azure
from support.troubleshooting.daemon_host import DaemonHost
from support.troubleshooting.page import Section

pytestmark = pytest.mark.all

DRAIN, BACKUP = "prepare/10-drain", "prepare/20-backup"
# runs until a test creates the file
UNTIL_RELEASED = "until test -e /srv/released; do sleep 0.05; done"


@pytest.mark.symptom("The daemon does not run")
def test_daemon_with_a_misspelt_key_starts_after_the_remedy(section: Section, host: DaemonHost) -> None:
    host.config = {"policy": "documented", "hooks": {"10-drain": {"timout": "5m"}}}
    host.hook(DRAIN, "rm -f /srv/ready")
    host.write_config()
    section.see(host.run, 78, 1)
    host.write_config(section.take("yaml").text)
    section.see(host.run, 3)
    section.see_all(host.run)


@pytest.mark.symptom("The daemon finds no hook")
def test_hook_that_is_not_executable_runs_after_the_remedy(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready", mode=0o644)
    host.start()
    host.wait_for(azure.schedule("Reboot", id=section.event_id), prepared="ok")
    section.see(host.run, 0, 0, 0, 0)
    host.wait(lambda: (host.maintenance() or {}).get("hooks"))
    section.see(host.run)


@pytest.mark.symptom("The daemon uses an earlier configuration")
def test_reload_ends_the_difference_to_the_disk(section: Section, host: DaemonHost) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.start()
    host.write_config(policy="observe")
    section.see(host.run, 1)
    section.see_all(host.run)


@pytest.mark.symptom("An operator has paused the daemon")
def test_paused_daemon_prepares_after_resume(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.start()
    host.run("azure-scheduled-events pause --reason 'upgrade of the cluster'")
    event = host.wait_for(azure.schedule("Reboot", id=section.event_id), status="Scheduled")
    section.see(host.run, 1, 0)
    host.wait_for(event, prepared="ok")
    section.see(host.run)


@pytest.mark.symptom("A rule postpones the preparation")
def test_rule_with_hold_prepares_in_the_last_minutes(section: Section, host: DaemonHost, azure: Azure) -> None:
    command, config, after = section.take("console"), section.take("yaml"), section.take("console")
    host.hook(DRAIN, "rm -f /srv/ready")
    host.page_config = config.text
    host.start()
    event = host.wait_for(azure.schedule("Reboot", id=section.event_id), status="Scheduled")
    section.see_block(command, host.run)
    azure.advance(11 * 60)
    host.wait_for(event, approval="accepted")
    section.see_block(after, host.run)


@pytest.mark.symptom("The event names another VM")
def test_wrong_resource_name_is_found_and_removed(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.config = {"policy": "documented", "resource_name": "web1"}
    host.start()
    event = host.wait_for(azure.schedule("Reboot", id=section.event_id), status="Scheduled")
    section.see(host.run, 0, 0)
    host.write_config(policy="documented")
    section.see(host.run)
    host.wait_for(event, prepared="ok")
    section.see(host.run)


@pytest.mark.symptom("IMDS lists no event")
def test_old_api_version_hides_an_event_until_it_is_removed(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.config = {"policy": "documented", "api_version": "2017-11-01"}
    host.start()
    event = azure.schedule("Terminate", id=section.event_id)
    section.see(host.run)
    host.write_config(policy="documented")
    section.see(host.run)
    host.wait_for(event, approval="accepted")
    section.see(host.run)


@pytest.mark.symptom("The event had started when the daemon saw it first")
def test_started_event_has_emergency_hooks_only(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, "rm -f /srv/ready")
    host.hook("emergency/10-drain", "rm -f /srv/ready")
    host.start()
    host.wait_for(azure.schedule("Reboot", id=section.event_id, starts="hardware_failure"), prepared="none")
    section.see(host.run)


def next_event_is_prepared(host: DaemonHost, azure: Azure, *resources: str) -> None:
    host.wait_for(azure.schedule("Reboot", *resources), prepared="ok")


@pytest.mark.symptom("A hook reaches its time limit")
def test_hook_that_was_ended_succeeds_with_a_longer_limit(section: Section, host: DaemonHost, azure: Azure) -> None:
    host.hook(DRAIN, 'echo "17 connections are open"', UNTIL_RELEASED)
    host.config = {"policy": "documented", "hooks": {"10-drain": {"timeout": "1s"}}}
    host.start()
    event = host.wait_for(azure.schedule("Reboot", id=section.event_id), prepared="failed")
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
    event = host.wait_for(azure.schedule("Redeploy", id=section.event_id), prepared="failed")
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
    event = azure.schedule("Reboot", "vm1", "vm2", id=section.event_id)
    host.wait(lambda: host.event(event).get("prepared") == "running")
    azure.approve(event, "vm2")
    azure.advance(2)
    host.wait_for(event, status="Started")
    host.wait(lambda: "hook-ended: started/10-notice" in host.log())
    section.see(host.run)
