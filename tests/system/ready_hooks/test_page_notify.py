# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/ready-hooks/notify.md as printed: the play through one event, and the other configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.hosts.bridge import GATEWAY
from support.ready_hooks import page
from support.ready_hooks.certificates import Certificates
from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.web_server import WebServer
from support.ready_hooks.workload_host import RECORDS, WorkloadHost

pytestmark = pytest.mark.all

URL_FILE = "/etc/maintenance-webhook"
EVENT = {"RESOURCE": "web1", "DESCRIPTION": "Virtual machine is going to be restarted."}
TEXT = "web1: Reboot is scheduled: Virtual machine is going to be restarted."


@pytest.fixture
def host(workload_host: Callable[[str], WorkloadHost], certificates: Certificates) -> Iterator[WorkloadHost]:
    """A host that trusts the authority of the tests as one of the system's."""
    host = workload_host("web1")
    authority = "/usr/local/share/ca-certificates/tests.crt"
    host.write(authority, certificates.authority.read_text(encoding="ascii"))
    host.run("update-ca-certificates")
    yield host
    host.shell(f"rm -rf {RECORDS} {URL_FILE} /etc/maintenance-apprise.conf {authority}; update-ca-certificates --fresh")


@pytest.fixture
def server(host: WorkloadHost, certificates: Certificates) -> Iterator[WebServer]:
    with WebServer(GATEWAY, certificates.server_context()) as server:
        yield server


def test_printed_play_notifies_of_an_event(host: WorkloadHost, server: WebServer, tmp_path: Path) -> None:
    with printed_play("notify", tmp_path, host) as play:
        play.apply("--extra-vars", f"maintenance_webhook={server.url}/secret")
        assert server.requests == []
        event_id = play.prepare("Reboot")
        play.recover()
        sent = [request.json for request in server.requests]
        assert [message["event"]["id"] for message in sent] == [event_id] * len(sent)
        assert "is scheduled" in sent[0]["text"]
        assert "is over" in sent[-1]["text"]
        assert "secret" not in host.shell("journalctl --no-pager --unit azure-scheduled-events")


def test_printed_messages_have_the_form_of_slack_and_teams(host: WorkloadHost, server: WebServer) -> None:
    _play, slack, teams, _apprise = page.entries("notify")
    host.write(URL_FILE, f"{server.url}/secret\n", 0o600)
    for name, entry in (("slack", slack), ("teams", teams)):
        done = host.hook("notify", "prepare", {**page.options(entry), "name": name}, event=EVENT)
        assert (done.returncode, done.stderr) == (0, "")
    first, second = [request.json for request in server.requests]
    assert first["blocks"] == [{"type": "section", "text": {"type": "plain_text", "text": TEXT}}]
    (attachment,) = second["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attachment["content"]["type"] == "AdaptiveCard"
    assert attachment["content"]["body"][1]["inlines"] == [{"type": "TextRun", "text": TEXT}]


def test_printed_configuration_of_apprise_sends_to_a_service(host: WorkloadHost, server: WebServer) -> None:
    *_others, entry = page.entries("notify")
    host.write(entry["apprise"], f"jsons://{GATEWAY}:{server.port}/secret\n", 0o600)
    for stage in ("prepare", "started", "recover"):
        assert host.hook("notify", stage, {**page.options(entry), "total": 60}, event=EVENT).returncode == 0
    assert [request.json["title"] for request in server.requests] == ["Azure: Reboot of web1"] * 2
    assert server.requests[0].json["message"] == TEXT
