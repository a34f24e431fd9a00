# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from ready_hooks import cli
from ready_hooks.core import arguments
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from ready_hooks.core.event import from_environment
from ready_hooks.core.hook import RECOVER, Run
from ready_hooks.core.record import Record
from ready_hooks.core.report import NAMES, Value
from ready_hooks.hooks.notify import HOOK as NOTIFY
from ready_hooks.hooks.notify import template
from ready_hooks.hooks.notify.web_request import parse_url
from support.ready_hooks.clock import Clock
from support.ready_hooks.web_server import Answer, WebServer
from support.simulator_process import reserved_port

EVENT = {
    "EVENT_ID": "AB-1",
    "EVENT_TYPE": "Reboot",
    "EVENT_STATUS": "Scheduled",
    "EVENT_SOURCE": "Platform",
    "EVENT_RESOURCE_TYPE": "VirtualMachine",
    "EVENT_DESCRIPTION": "<b> \udcff",
    "EVENT_NOT_BEFORE": "2026-11-21T12:15:00Z",
    "EVENT_DURATION": "9",
    "EVENT_RESOURCES": "vm1 vm2",
    "EVENT_RESOURCE": "vm1",
}


def notify(
    folder: Path, stage: str, url: str, *, clock: Clock | None = None, event: dict[str, str] | None = None, **given: Any
) -> None:
    """Run the hook in a stage, with 600 seconds; raise HookError if it fails."""
    clock = clock or Clock()
    # limits in real time that a busy machine does not reach
    given = {"url": url, "total": 600, "request_timeout": 600, **given}
    values = arguments.from_mapping((*NOTIFY.options, *cli.COMMON), given)
    about = from_environment({**EVENT, **(event or {})})._replace(stage=stage)
    record = Record(str(folder), "notify", "notify")
    hook = NOTIFY(Run("notify", values, about, Deadline(600, clock, clock.sleep), record, False))
    if stage == RECOVER:
        hook.recover()
    else:
        hook.prepare()


def kinds(endpoint: WebServer) -> list[str]:
    return [each.json["change"] for each in endpoint.requests]


@pytest.mark.parametrize("body", ["{description}", {"text": "{description}"}, {"{description}": ["{text}"]}])
@pytest.mark.parametrize("text", ["<!channel> stop", "<http://example.org|the portal>", "<@U12345>", "a<!here"])
def test_text_of_an_event_is_no_command_for_slack(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, body: object
) -> None:
    monkeypatch.setenv("EVENT_ID", text)
    monkeypatch.setenv("EVENT_DESCRIPTION", text)
    options = {"url": "http://127.0.0.1:9/", "dry_run": True, "body": body, "state_directory": str(tmp_path)}
    assert cli.main(["notify", "prepare", "--json", json.dumps(options)]) == 0
    said = capsys.readouterr().out
    assert ("would send" in said, set("<>") & set(said)) == (True, set())
    assert text.translate(str.maketrans("<>", "()")) in said


def test_record_of_each_stage_is_that_of_a_change(tmp_path: Path) -> None:
    with WebServer() as endpoint:
        token = tmp_path / "token"
        token.write_text("Bearer t0ken\n")
        token.chmod(0o600)
        given: dict[str, Any] = {"change_record": True, "header_files": {"Authorization": str(token)}}
        notify(tmp_path, "prepare", endpoint.url, **given)
        notify(tmp_path, "started", endpoint.url, event={"EVENT_STATUS": "Started", "EVENT_NOT_BEFORE": ""}, **given)
        notify(tmp_path, "recover", endpoint.url, event={"EVENT_STATUS": "Started", "EVENT_NOT_BEFORE": ""}, **given)
    assert kinds(endpoint) == ["appeared", "started", "gone"]
    assert {each.headers["authorization"] for each in endpoint.requests} == {"Bearer t0ken"}
    record = endpoint.requests[0].json
    assert record.pop("id") and record.pop("observed_at").endswith("Z")
    assert record == {
        "schema": "azure_imds.scheduled_events/change/1",
        "change": "appeared",
        "outcome": None,
        "event": {
            "event_id": "AB-1",
            "event_type": "Reboot",
            "status": "Scheduled",
            "resources": ["vm1", "vm2"],
            "resource_type": "VirtualMachine",
            "not_before": "2026-11-21T12:15:00Z",
            "description": "<b> \udcff",
            "source": "Platform",
            "duration_seconds": 9,
        },
        "reporter": "vm1",
        "reported_by": "notify",
        "resource_id": None,
        "other_events": [],
    }


def test_event_that_is_started_at_first_has_appeared(tmp_path: Path) -> None:
    with WebServer() as endpoint:
        notify(tmp_path, "emergency", endpoint.url, change_record=True)
    assert kinds(endpoint) == ["appeared"]


def test_another_attempt_has_the_id_of_the_first_and_another_event_has_not(tmp_path: Path) -> None:
    with WebServer() as endpoint:
        endpoint.answers = [Answer(400)]
        for _attempt in range(2):
            notify(tmp_path, "prepare", endpoint.url, change_record=True)
        notify(tmp_path, "recover", endpoint.url, change_record=True)
        # Azure lists the same id again, after its end
        notify(tmp_path, "prepare", endpoint.url, change_record=True)
    first, repeated, _end, again = [each.json["id"] for each in endpoint.requests]
    assert first == repeated != again


def test_required_notification_is_sent_to_an_endpoint_that_is_away_for_a_minute(tmp_path: Path) -> None:
    with contextlib.ExitStack() as opened, reserved_port() as port:
        endpoints: list[WebServer] = []

        class Away(Clock):
            def sleep(self, seconds: float) -> None:
                super().sleep(seconds)
                if self.now >= 1060 and not endpoints:
                    endpoints.append(opened.enter_context(WebServer(port=port)))

        clock = Away()
        notify(tmp_path, "prepare", f"http://127.0.0.1:{port}/", clock=clock, change_record=True, required=True)
        assert (kinds(endpoints[0]), 1060 <= clock.now < 1075) == (["appeared"], True)


def test_required_notification_that_is_not_sent_fails_within_the_time_of_the_run(tmp_path: Path) -> None:
    clock = Clock()
    with reserved_port() as port, pytest.raises(HookError):
        notify(tmp_path, "prepare", f"http://127.0.0.1:{port}/", clock=clock, required=True)
    assert 1500 < clock.now < 1600


def test_required_notification_of_the_end_is_sent_by_the_next_recovery(tmp_path: Path) -> None:
    with WebServer() as endpoint:
        endpoint.answers = [Answer(), Answer(401)]
        notify(tmp_path, "prepare", endpoint.url, change_record=True, required=True)
        with pytest.raises(HookError, match="401"):
            notify(tmp_path, "recover", endpoint.url, change_record=True, required=True)
        for _again in range(2):
            notify(tmp_path, "recover", endpoint.url, change_record=True, required=True)
    assert [each.json["change"] for each in endpoint.requests] == ["appeared", "gone", "gone"]


@pytest.mark.parametrize(("required", "status"), [({}, 0), ({"required": True}, 1)])
def test_refused_notification_is_a_failure_only_if_it_is_required(
    tmp_path: Path, required: dict[str, bool], status: int
) -> None:
    with WebServer() as endpoint:
        endpoint.otherwise = lambda _request: Answer(403)
        given = {"url": endpoint.url, "state_directory": str(tmp_path), **required}
        assert cli.main(["notify", "prepare", "--json", json.dumps(given)]) == status


def test_prepare_that_runs_again_notifies_once_for_each_event(tmp_path: Path) -> None:
    with WebServer() as endpoint:
        for event_id in ("first", "second", "first", "second"):
            notify(tmp_path, "prepare", endpoint.url, event={"EVENT_ID": event_id})
        notify(tmp_path, "recover", endpoint.url, event={"EVENT_ID": "second"})
    sent = [(each.json["event_id"], each.json["stage"]) for each in endpoint.requests]
    assert sent == [("first", "prepare"), ("second", "prepare"), ("first", "recover"), ("second", "recover")]


def test_stages_without_a_notification_count_for_the_duration(tmp_path: Path) -> None:
    with WebServer() as endpoint:
        for stage in ("prepare", "started", "recover"):
            notify(tmp_path, stage, endpoint.url, stages=["recover"])
    assert [(each.json["stage"], each.json["duration"] is None) for each in endpoint.requests] == [("recover", False)]


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ({"url": "http://127.0.0.1:9/", "body": "{text}", "change_record": True}, "change_record"),
        ({"apprise": "/etc/apprise", "change_record": True}, "change_record"),
        ({"apprise": "/etc/apprise", "body": {"a": "b"}}, "body"),
        ({"url": "https://a/", "url_file": "/etc/url"}, "url"),
        ({"url": "ftp://a/"}, "url"),
        ({"url_file": "/etc/url", "body": {"a": "{event_tpe}"}}, "body"),
        ({"url_file": "/etc/url", "headers": {"A": "b\r\nC: d"}}, "headers"),
        ({"url_file": "/etc/url", "header_files": {"A": "relative"}}, "header_files"),
        ({"url_file": "/etc/url", "stages": ["preparation"]}, "stages"),
        ({}, "url"),
    ],
)
def test_wrong_option_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], options: dict[str, Any], subject: str
) -> None:
    assert cli.main(["notify", "check", "--json", json.dumps(options)]) == 2
    assert f"{subject}: " in capsys.readouterr().err


VALUES: dict[str, Value] = {
    **dict.fromkeys(NAMES, ""),
    "event_type": "Reboot",
    "description": '"}, "{event_type} {{stage}}',
    "seconds_left": 899,
    "duration": None,
}


def test_fill_replaces_placeholders_once_and_keeps_the_structure() -> None:
    filled = template.fill({"{event_type}": ["a {description}", 1, True, None, {"b": "{stage}"}]}, VALUES)
    assert filled == {"Reboot": ['a "}, "{event_type} {{stage}}', 1, True, None, {"b": ""}]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("{seconds_left}", 899),
        ("{duration}", None),
        ("in {seconds_left} s", "in 899 s"),
        ("after {duration} s", "after  s"),
        ("{{seconds_left}}", "{seconds_left}"),
        ("{ seconds_left } {", "{ seconds_left } {"),
    ],
)
def test_fill_keeps_the_type_of_a_whole_placeholder(given: str, expected: Value) -> None:
    assert template.fill(given, VALUES) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [('{"a": "{stage}"}', {"a": "{stage}"}), ("[1]", [1]), ("{event_type} here", "{event_type} here"), ("12", "12")],
)
def test_body_reads_json_in_a_text(given: str, expected: Any) -> None:
    assert template.body(given) == expected


NESTED = json.loads("[" * 41 + "1" + "]" * 41)
NOT_TEMPLATES: tuple[object, ...] = ("", {}, 5, True, None, {"a": "{no_such_value}"}, {"{no_such_value}": 1}, ["{a}"])


@pytest.mark.parametrize(("given", "message"), [*((each, None) for each in NOT_TEMPLATES), (NESTED, "deep")])
def test_body_refuses_what_is_not_a_template(given: object, message: str | None) -> None:
    with pytest.raises(ValueError, match=message):
        template.body(given)


@pytest.mark.parametrize(
    ("url", "origin", "target", "is_protected"),
    [
        ("https://hooks.example.com/a/b?c=d", "https://hooks.example.com", "/a/b?c=d", True),
        ("https://hooks.example.com:8443", "https://hooks.example.com:8443", "/", True),
        ("http://127.0.0.1:80/a", "http://127.0.0.1", "/a", True),
        ("http://[::1]:8080/a", "http://[::1]:8080", "/a", True),
        ("http://hooks.example.com/a", "http://hooks.example.com", "/a", False),
    ],
)
def test_parse_url_hides_the_path_from_messages(url: str, origin: str, target: str, is_protected: bool) -> None:
    found = parse_url(url)
    assert (found.origin, found.target, found.is_protected) == (origin, target, is_protected)


@pytest.mark.parametrize(
    "url",
    [
        "hooks.example.com/secret",
        "ftp://hooks.example.com/secret",
        "https:///secret",
        "https://user:secret@hooks.example.com/",
        "https://hooks.example.com:99999/secret",
        "https://hooks.example.com/secret\r\nHost: a",
        "https://hooks.example.com/secret b",
        "https://[::1/secret",
    ],
)
def test_parse_url_refuses_without_the_secret_in_its_message(url: str) -> None:
    with pytest.raises(ValueError) as refusal:
        parse_url(url)
    assert "secret" not in str(refusal.value)
