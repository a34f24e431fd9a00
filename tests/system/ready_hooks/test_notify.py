# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The ready hook notify with a real HTTPS server, which has a certificate of an own authority, and apprise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.hosts.bridge import GATEWAY
from support.ready_hooks.certificates import Certificates
from support.ready_hooks.web_server import Answer, WebServer
from support.ready_hooks.workload_host import RECORDS, Completed, WorkloadHost
from support.wait import wait_until

pytestmark = pytest.mark.all

CA_FILE, URL_FILE, TOKEN_FILE = "/etc/notify/ca.pem", "/etc/notify/url", "/etc/notify/token"
SECRET = "/services/T0/B0/secret"
EVENT = {
    "ID": "first",
    "TYPE": "Reboot",
    "RESOURCE": "web1",
    "DESCRIPTION": '"}, "injected": {"{event_id}\nnext line',
    "NOT_BEFORE": "2026-11-21T12:54:00Z",
    "SECONDS_LEFT": "899",
}


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
    first, _second, third = [request.json for request in server.requests]
    assert first["description"] == EVENT["DESCRIPTION"].replace("\n", "?")
    assert (first["stage"], first["seconds_left"], first["resource"]) == ("prepare", 899, "web1")
    assert (third["stage"], third["outcome"], third["event_type"]) == ("recover", "completed", "Reboot")
    assert 0 <= third["duration"] < 60
    assert host.record("notify") is None


def test_template_keeps_its_structure_and_types(host: WorkloadHost, server: WebServer) -> None:
    body = {
        "text": "<{event_type}> {description}",
        "left": "{seconds_left}",
        "none": "{duration}",
        "n": [1, "{{name}}"],
    }
    notify(host, body=body)
    assert server.requests[0].json == {
        "text": "<Reboot> " + EVENT["DESCRIPTION"].replace("\n", "?"),
        "left": 899,
        "none": None,
        "n": [1, "{name}"],
    }
    assert server.requests[0].headers["Content-Type"] == "application/json"


def test_text_template_is_sent_as_text_with_headers_of_files(host: WorkloadHost, server: WebServer) -> None:
    host.write(TOKEN_FILE, "Bearer abc\n", 0o600)
    headers: dict[str, Any] = {"headers": {"Title": "maintenance"}, "header_files": {"Authorization": TOKEN_FILE}}
    done = notify(host, body="{event_type} of {resource}", **headers)
    request = server.requests[0]
    assert request.body == b"Reboot of web1"
    assert request.headers["Content-Type"].startswith("text/plain")
    assert (request.headers["Title"], request.headers["Authorization"]) == ("maintenance", "Bearer abc")
    assert "abc" not in done.stdout + done.stderr


def test_prepare_that_runs_again_notifies_once_for_each_event(host: WorkloadHost, server: WebServer) -> None:
    for event_id in ("first", "second", "first", "second"):
        notify(host, event={"ID": event_id})
    assert [request.json["event_id"] for request in server.requests] == ["first", "second"]
    for _again in range(2):
        notify(host, "recover", event={"ID": "second", "OUTCOME": "completed"})
    ends = [(request.json["event_id"], request.json["outcome"]) for request in server.requests[2:]]
    assert ends == [("first", "unknown"), ("second", "completed")]


def test_record_outlives_a_reboot(host: WorkloadHost, server: WebServer) -> None:
    notify(host)
    host.host.reboot()
    notify(host)
    notify(host, "recover", event={"OUTCOME": "completed"})
    assert [request.json["stage"] for request in server.requests] == ["prepare", "recover"]


def test_failed_notification_is_sent_when_prepare_runs_again(host: WorkloadHost, server: WebServer) -> None:
    server.answers += [Answer(403)]
    first = notify(host)
    assert (first.returncode, "403" in first.stderr, SECRET in first.stderr) == (0, True, False)
    notify(host)
    assert len(server.requests) == 2


def test_stages_without_a_notification_count_for_the_duration(host: WorkloadHost, server: WebServer) -> None:
    options: dict[str, Any] = {"stages": ["recover"]}
    for stage in ("prepare", "started", "recover"):
        notify(host, stage, event={"OUTCOME": "completed"}, **options)
    assert [(request.json["stage"], request.json["duration"] is None) for request in server.requests] == [
        ("recover", False)
    ]


def test_error_of_the_server_is_retried(host: WorkloadHost, server: WebServer) -> None:
    server.answers += [Answer(500), Answer(429, headers={"Retry-After": "1"})]
    done = notify(host)
    assert (done.returncode, done.stderr.count("trying again"), len(server.requests)) == (0, 2, 3)
    assert list(host.record("notify")["events"]["first"]["reported"]) == ["prepare"]


@pytest.mark.parametrize("answer", [Answer(302, headers={"Location": "/elsewhere"}), Answer(404)])
def test_redirect_or_refusal_is_not_retried(host: WorkloadHost, server: WebServer, answer: Answer) -> None:
    server.answers += [answer]
    done = notify(host)
    assert (done.returncode, str(answer.status) in done.stderr, len(server.requests)) == (0, True, 1)


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


def test_check_sends_nothing_and_reports_an_unreachable_server(host: WorkloadHost, server: WebServer) -> None:
    found = notify(host, "check")
    assert (found.returncode, found.stderr, server.requests) == (0, "", [])
    found = notify(host, "check", url="https://10.77.0.1:9/x")
    assert (found.returncode, "10.77.0.1:9" in found.stderr) == (0, True)


@pytest.mark.parametrize(
    "options",
    [
        {"url": "https://a/", "url_file": URL_FILE},
        {"url": "ftp://a/"},
        {"url": "https://user:password@a/"},
        {"url_file": URL_FILE, "body": {"a": "{event_tpe}"}},
        {"url_file": URL_FILE, "headers": {"A": "b\r\nC: d"}},
        {"url_file": URL_FILE, "header_files": {"A": "relative"}},
        {"url_file": URL_FILE, "stages": ["preparation"]},
        {"apprise": URL_FILE, "body": {"a": "b"}},
        {},
    ],
)
def test_wrong_options_are_usage_errors(host: WorkloadHost, options: dict[str, Any]) -> None:
    assert host.hook("notify", "check", options).returncode == 2


def test_dry_run_prints_the_body_and_sends_nothing(host: WorkloadHost, server: WebServer) -> None:
    done = notify(host, dry_run=True)
    assert (done.returncode, server.requests, host.record("notify")) == (0, [], None)
    assert '"event_type": "Reboot"' in done.stdout
    assert SECRET not in done.stdout


def test_killed_hook_sends_again(host: WorkloadHost, server: WebServer) -> None:
    server.otherwise = server.hang
    command = host.hook_command("notify", "prepare", {"ca_file": CA_FILE, "url_file": URL_FILE}, event=EVENT)
    host.run("systemd-run", "--quiet", "--collect", "--unit=killed", *command)
    wait_until(lambda: server.requests, "the request")
    host.run("systemctl", "kill", "--signal=KILL", "killed")
    server.otherwise = lambda _request: Answer()
    notify(host)
    notify(host, "recover")
    assert [request.json["stage"] for request in server.requests] == ["prepare", "prepare", "recover"]


def test_apprise_sends_to_its_services(host: WorkloadHost, server: WebServer, certificates: Certificates) -> None:
    config = "/etc/notify/apprise"
    host.write(config, f"jsons://{GATEWAY}:{server.port}/apprise/secret\n", 0o600)
    options: dict[str, Any] = {"apprise": config, "ca_file": CA_FILE, "total": 60}
    assert notify(host, "check", **options).returncode == 0
    assert server.requests == []
    done = notify(host, **options)
    assert (done.returncode, done.stderr) == (0, "")
    sent = server.requests[0].json
    assert (sent["title"], sent["type"]) == ("web1: Reboot, prepare", "warning")
    assert "not before 2026-11-21T12:54:00Z" in sent["message"]
    server.otherwise = lambda _request: Answer(500)
    failed = notify(host, "started", **options)
    assert (failed.returncode, "status" in failed.stderr, "secret" in failed.stderr) == (0, True, False)


def test_check_reports_a_missing_apprise(host: WorkloadHost) -> None:
    host.write("/etc/notify/apprise", "json://localhost/\n", 0o600)
    command = host.hook_command("notify", "check", {"apprise": "/etc/notify/apprise"})
    found = host.run(
        "unshare",
        "--mount",
        "sh",
        "-c",
        'mount --bind /dev/null /usr/bin/apprise && exec "$@"',
        "sh",
        *command,
        check=False,
    )
    assert (found.returncode, "install" in found.stderr) == (1, True)
