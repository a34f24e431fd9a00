# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook notify, and its page, with apprise and a real HTTPS server with a certificate of an own authority."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hosts.bridge import GATEWAY
from support.ready_hooks.certificates import Certificates
from support.ready_hooks.printed_play import entries, options_of, printed_play
from support.ready_hooks.web_server import Answer, WebServer
from support.ready_hooks.workload_host import RECORDS, Completed, WorkloadHost
from support.wait import wait_until

pytestmark = pytest.mark.all

CA_FILE, URL_FILE, TOKEN_FILE = "/etc/notify/ca.pem", "/etc/notify/url", "/etc/notify/token"
APPRISE = "/etc/notify/apprise"
SECRET = "/services/T0/B0/secret"
EVENT = {
    "ID": "first",
    "TYPE": "Reboot",
    "RESOURCE": "web1",
    "DESCRIPTION": '"}, "injected": {"{event_id}\nnext line',
    "NOT_BEFORE": "2026-11-21T12:54:00Z",
    "SECONDS_LEFT": "899",
}
# of the page
PRINTED_URL_FILE = "/etc/maintenance-webhook"
PRINTED_EVENT = {"RESOURCE": "web1", "DESCRIPTION": "Virtual machine is going to be restarted."}
TEXT = "web1: Reboot is scheduled: Virtual machine is going to be restarted."


@pytest.fixture
def server(workload_host: Callable[[str], WorkloadHost], certificates: Certificates) -> Iterator[WebServer]:
    workload_host("web1")  # makes the bridge
    with WebServer(GATEWAY, certificates.server_context()) as made:
        yield made


@pytest.fixture
def host(
    workload_host: Callable[[str], WorkloadHost], server: WebServer, certificates: Certificates
) -> Iterator[WorkloadHost]:
    host = workload_host("web1")
    host.write(CA_FILE, certificates.authority.read_text(encoding="ascii"))
    host.write(URL_FILE, server.url + SECRET + "\n", 0o600)
    yield host
    host.shell(f"rm -rf {RECORDS} /etc/notify")


def notify(
    host: WorkloadHost, verb: str = "prepare", *, event: dict[str, str] | None = None, **options: Any
) -> Completed:
    """Run the hook with the secret URL; a test that gives another destination replaces it."""
    where = {} if {"url", "apprise"} & options.keys() else {"url_file": URL_FILE}
    return host.hook("notify", verb, {"ca_file": CA_FILE, **where, **options}, event={**EVENT, **(event or {})})


def test_notifications_of_all_stages_reach_the_server_without_injection(host: WorkloadHost, server: WebServer) -> None:
    done = [notify(host, stage) for stage in ("prepare", "started")]
    done.append(notify(host, "recover", event={"OUTCOME": "completed", "SECONDS_LEFT": ""}))
    assert [(each.returncode, each.stderr) for each in done] == [(0, "")] * 3
    assert SECRET not in "".join(each.stdout for each in done)
    assert [request.target for request in server.requests] == [SECRET] * 3
    assert server.requests[0].headers["Content-Type"] == "application/json"
    first, _second, third = [request.json for request in server.requests]
    assert first["description"] == EVENT["DESCRIPTION"].replace("\n", "?")
    assert (first["stage"], first["seconds_left"], first["resource"]) == ("prepare", 899, "web1")
    assert (third["stage"], third["outcome"], third["event_type"]) == ("recover", "completed", "Reboot")
    assert 0 <= third["duration"] < 60
    assert host.record("notify") is None


def test_text_template_is_sent_as_text_with_headers_of_files(host: WorkloadHost, server: WebServer) -> None:
    host.write(TOKEN_FILE, "Bearer abc\n", 0o600)
    headers: dict[str, Any] = {"headers": {"Title": "maintenance"}, "header_files": {"Authorization": TOKEN_FILE}}
    done = notify(host, body="{event_type} of {resource}", **headers)
    request = server.requests[0]
    assert request.body == b"Reboot of web1"
    assert request.headers["Content-Type"].startswith("text/plain")
    assert (request.headers["Title"], request.headers["Authorization"]) == ("maintenance", "Bearer abc")
    assert "abc" not in done.stdout + done.stderr


def test_error_of_the_server_is_retried(host: WorkloadHost, server: WebServer) -> None:
    server.answers += [Answer(500), Answer(429, headers={"Retry-After": "1"})]
    done = notify(host)
    assert (done.returncode, done.stderr.count("trying again"), len(server.requests)) == (0, 2, 3)
    assert list(host.record("notify")["events"]["first"]["reported"]) == ["prepare"]


@pytest.mark.parametrize(("options", "hook_seconds"), [({"request_timeout": 0.5, "total": 1.5}, 30), ({}, 1)])
def test_hanging_server_costs_no_more_than_total_and_hook_seconds(
    host: WorkloadHost, server: WebServer, options: dict[str, Any], hook_seconds: float
) -> None:
    server.otherwise = server.hang
    begin = time.monotonic()
    done = host.hook(
        "notify", "prepare", {"ca_file": CA_FILE, "url_file": URL_FILE, **options}, event=EVENT, seconds=hook_seconds
    )
    assert (done.returncode, "no answer within" in done.stderr) == (0, True)
    assert time.monotonic() - begin < 15
    assert 1 <= len(server.requests) <= 3


def test_answer_that_comes_byte_by_byte_ends_at_the_timeout(host: WorkloadHost, server: WebServer) -> None:
    server.otherwise = lambda _request: Answer(200, b"x" * 1000, pause=0.1)
    done = notify(host, request_timeout=1, retries=0)
    assert (done.returncode, "no answer within 1.0 s" in done.stderr) == (0, True)


def test_unknown_authority_is_refused_without_a_retry(host: WorkloadHost, server: WebServer) -> None:
    done = notify(host, ca_file="/etc/ssl/certs/ca-certificates.crt")
    assert (done.returncode, "certificate" in done.stderr, server.requests) == (0, True, [])
    assert "trying again" not in done.stderr


def test_secret_that_others_can_read_is_not_used(host: WorkloadHost, server: WebServer) -> None:
    host.run("chmod", "0644", URL_FILE)
    done = notify(host)
    assert (done.returncode, URL_FILE in done.stderr, server.requests) == (0, True, [])
    found = notify(host, "check")
    assert (found.returncode, "0644" in found.stderr) == (1, True)


def test_proxies_are_used_only_by_the_option(host: WorkloadHost, server: WebServer) -> None:
    with WebServer(GATEWAY) as plain, WebServer(GATEWAY) as proxy:
        command = host.hook_command("notify", "prepare", {"url": plain.url + "/x"}, event=EVENT)
        host.run("env", f"http_proxy={proxy.url}", f"https_proxy={proxy.url}", *command)
        assert (len(plain.requests), len(proxy.requests)) == (1, 0)
        notify(host, "started", url=plain.url + "/x", proxy=proxy.url)
        assert [request.target for request in proxy.requests] == [plain.url + "/x"]
        done = notify(host, "recover", proxy=proxy.url, retries=0)  # it answers CONNECT with 501
        assert (done.returncode, "501" in done.stderr, server.requests) == (0, True, [])


@pytest.mark.parametrize("answer", [Answer(302, headers={"Location": "/elsewhere"}), Answer(404)])
def test_redirect_or_refusal_is_not_retried(host: WorkloadHost, server: WebServer, answer: Answer) -> None:
    server.answers += [answer]
    done = notify(host)
    assert (done.returncode, str(answer.status) in done.stderr, len(server.requests)) == (0, True, 1)
    assert SECRET not in done.stderr


def test_check_and_dry_run_send_nothing(host: WorkloadHost, server: WebServer) -> None:
    found = notify(host, "check")
    assert (found.returncode, found.stderr) == (0, "")
    done = notify(host, dry_run=True)
    assert (done.returncode, '"event_type": "Reboot"' in done.stdout, SECRET in done.stdout) == (0, True, False)
    assert (server.requests, host.record("notify")) == ([], None)
    found = notify(host, "check", url="https://10.77.0.1:9/x")
    assert (found.returncode, "10.77.0.1:9" in found.stderr) == (0, True)


def test_killed_hook_sends_again(host: WorkloadHost, server: WebServer) -> None:
    server.otherwise = server.hang
    options = {"ca_file": CA_FILE, "url_file": URL_FILE}
    host.start("hook", *host.hook_command("notify", "prepare", options, event=EVENT))
    wait_until(lambda: server.requests, "the request")
    host.kill("hook")
    server.otherwise = lambda _request: Answer()
    notify(host)
    notify(host, "recover")
    assert [request.json["stage"] for request in server.requests] == ["prepare", "prepare", "recover"]


def test_check_reports_a_missing_apprise(host: WorkloadHost) -> None:
    host.write(APPRISE, "json://localhost/\n", 0o600)
    command = host.hook_command("notify", "check", {"apprise": APPRISE})
    hides = 'mount --bind /dev/null /usr/bin/apprise && exec "$@"'
    found = host.run("unshare", "--mount", "sh", "-c", hides, "sh", *command, check=False)
    assert (found.returncode, "install" in found.stderr) == (1, True)


@pytest.fixture
def trusting(host: WorkloadHost, certificates: Certificates) -> Iterator[WorkloadHost]:
    """The host, which trusts the authority of the tests as one of the system's."""
    authority = "/usr/local/share/ca-certificates/tests.crt"
    host.write(authority, certificates.authority.read_text(encoding="ascii"))
    host.run("update-ca-certificates")
    yield host
    host.shell(f"rm -rf {PRINTED_URL_FILE} /etc/maintenance-apprise.conf {authority}; update-ca-certificates --fresh")


def test_printed_play_notifies_of_an_event(trusting: WorkloadHost, server: WebServer, tmp_path: Path) -> None:
    with printed_play("notify", tmp_path, trusting) as play:
        play.apply("--extra-vars", f"maintenance_webhook={server.url}/secret")
        assert server.requests == []
        event_id = play.prepare("Reboot")
        play.recover()
        sent = [request.json for request in server.requests]
        assert [message["event"]["id"] for message in sent] == [event_id] * len(sent)
        assert "is scheduled" in sent[0]["text"]
        assert "is over" in sent[-1]["text"]
        assert "secret" not in trusting.shell("journalctl --no-pager --unit azure-scheduled-events")


def test_printed_messages_have_the_form_of_slack_and_teams(trusting: WorkloadHost, server: WebServer) -> None:
    _play, slack, teams, _apprise = entries("notify")
    trusting.write(PRINTED_URL_FILE, f"{server.url}/secret\n", 0o600)
    for name, entry in (("slack", slack), ("teams", teams)):
        done = trusting.hook("notify", "prepare", {**options_of(entry), "name": name}, event=PRINTED_EVENT)
        assert (done.returncode, done.stderr) == (0, "")
    first, second = [request.json for request in server.requests]
    assert first["blocks"] == [{"type": "section", "text": {"type": "plain_text", "text": TEXT}}]
    (attachment,) = second["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attachment["content"]["type"] == "AdaptiveCard"
    assert attachment["content"]["body"][1]["inlines"] == [{"type": "TextRun", "text": TEXT}]


def test_printed_configuration_of_apprise_sends_to_a_service(trusting: WorkloadHost, server: WebServer) -> None:
    *_others, entry = entries("notify")
    trusting.write(entry["apprise"], f"jsons://{GATEWAY}:{server.port}/secret\n", 0o600)
    for stage in ("prepare", "started", "recover"):
        done = trusting.hook("notify", stage, {**options_of(entry), "total": 60}, event=PRINTED_EVENT)
        assert done.returncode == 0
    assert [request.json["title"] for request in server.requests] == ["Azure: Reboot of web1"] * 2
    assert server.requests[0].json["message"] == TEXT
    assert notify(trusting, apprise=entry["apprise"], total=60).returncode == 0
    sent = server.requests[-1].json
    assert (sent["title"], sent["type"]) == ("web1: Reboot, prepare", "warning")
    server.otherwise = lambda _request: Answer(500)
    failed = trusting.hook("notify", "prepare", {**options_of(entry), "total": 60}, event=PRINTED_EVENT)
    assert (failed.returncode, "status" in failed.stderr, "secret" in failed.stderr) == (0, True, False)
