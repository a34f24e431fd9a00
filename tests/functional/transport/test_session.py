# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Requests of Imds and its reading of the answers, over real sockets."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from azure_scheduled_events import Imds, ImdsError, ImdsRefused, ImdsUnreadable, transport
from azure_scheduled_events.identity import affects
from support.simulator_process import Simulator
from support.transport.fault_helpers import fault, requests_of, schedule
from support.transport.replies import Answer, CutShort, Raw, serving


def test_time_left_follows_the_clock_of_the_server(azure: Simulator, endpoint: str) -> None:
    """T45."""
    began = time.monotonic()
    # the simulated time is now further ahead of the clock of this machine
    azure.advance(1200)
    schedule(azure, type="Freeze")
    document = Imds(endpoint).events()
    took = time.monotonic() - began
    assert document.server_time is not None
    assert 898 - took <= document.events[0].seconds_left(document.server_time) <= 902


def test_instance_has_the_name(endpoint: str) -> None:
    assert Imds(endpoint).instance()["compute"]["name"] == "vm1"


@pytest.mark.parametrize("spell", [str, str.lower])
def test_approval_starts_the_event(azure: Simulator, endpoint: str, spell: Callable[[str], str]) -> None:
    event_id = schedule(azure)
    Imds(endpoint).approve(spell(event_id))
    assert azure.get(f"/events/{event_id}")["approved_by"] == ["vm1"]


def test_approval_of_a_started_event_is_accepted(azure: Simulator, endpoint: str) -> None:
    """T65."""
    event_id = schedule(azure, starts="automatic_approval")
    imds = Imds(endpoint)
    imds.approve(event_id)
    (event,) = imds.events().events
    assert event.status == "Started"


@pytest.mark.parametrize("kind", ["empty", "html", "object", "events-null", "invalid-utf8"])
def test_answer_200_without_a_document_is_unknown(azure: Simulator, endpoint: str, kind: str) -> None:
    schedule(azure)
    imds = Imds(endpoint)
    assert len(imds.events().events) == 1
    fault(azure, kind)
    with pytest.raises(ImdsUnreadable) as caught:
        imds.events()
    assert endpoint in str(caught.value) and caught.value.retryable
    azure.delete("/faults")
    assert len(imds.events().events) == 1


@pytest.mark.parametrize("kind", ["truncated", "truncated-chunked"])
def test_answer_cut_short_is_unknown(azure: Simulator, endpoint: str, kind: str) -> None:
    schedule(azure)
    imds = Imds(endpoint)
    fault(azure, kind)
    with pytest.raises(ImdsError, match="cut short"):
        imds.events()
    azure.delete("/faults")
    assert len(imds.events().events) == 1


def test_answer_cut_short_after_complete_json_is_unknown() -> None:
    cut = CutShort(b'{"DocumentIncarnation":1,"Events":[]}', 99)
    with serving(cut) as server, pytest.raises(ImdsError, match="cut short"):
        Imds(server.url).events()


def test_answer_longer_than_max_bytes_is_unknown_and_not_read(azure: Simulator, endpoint: str) -> None:
    fault(azure, "oversized", size=300_000)
    with pytest.raises(ImdsUnreadable, match="longer than 200000 bytes"):
        Imds(endpoint, max_bytes=200_000).events()
    assert Imds(endpoint, max_bytes=400_000).events().events == ()


@pytest.mark.parametrize(
    "status", [301, 302, 304, 400, 401, 403, 404, 405, 408, 410, 429, 500, 502, 503, 504, 204, 206]
)
def test_answer_of_any_other_status_is_unknown_and_has_retryable(azure: Simulator, endpoint: str, status: int) -> None:
    fault(azure, "status", status=status, body=json.dumps({"error": "no luck", "DocumentIncarnation": 1, "Events": []}))
    with pytest.raises(ImdsRefused) as caught:
        Imds(endpoint).events()
    error = caught.value
    assert (error.status, error.retryable) == (status, status not in (400, 401, 403, 405))
    assert endpoint in str(error) and str(status) in str(error)


def test_error_has_the_message_of_imds(azure: Simulator, endpoint: str) -> None:
    fault(azure, "status", status=500, body='{"error":"Internal trouble"}')
    with pytest.raises(ImdsRefused, match="answered 500 to GET /metadata/scheduledevents.*: Internal trouble"):
        Imds(endpoint).events()


def test_error_of_a_proxy_names_the_proxy(azure: Simulator, endpoint: str) -> None:
    fault(azure, "forbidden-html")
    with pytest.raises(ImdsRefused, match="proxy"):
        Imds(endpoint).events()


def test_redirect_is_not_followed(azure: Simulator, endpoint: str) -> None:
    fault(
        azure,
        "redirect",
        vm="vm1",
        location=azure.endpoints["vm2"] + "/metadata/scheduledevents?api-version=2020-07-01",
    )
    before = len(requests_of(azure, "vm2"))
    with pytest.raises(ImdsRefused, match="redirect"):
        Imds(endpoint).events()
    assert len(requests_of(azure, "vm2")) == before


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_read_in_both_forms(azure: Simulator, endpoint: str, form: str) -> None:
    fault(azure, "too-many-requests", retry_after=7, retry_after_format=form)
    with pytest.raises(ImdsRefused) as caught:
        Imds(endpoint).events()
    assert caught.value.status == 429 and caught.value.retry_after == pytest.approx(7, abs=1)


def test_refused_version_lists_the_supported_ones(endpoint: str) -> None:
    with pytest.raises(ImdsRefused) as caught:
        Imds(endpoint, "2031-01-01").events()
    assert str(caught.value).startswith(f"IMDS at {endpoint} answered 400 to api-version 2031-01-01: ")
    assert "2020-07-01" in caught.value.supported_versions and not caught.value.retryable


@pytest.mark.parametrize(
    "version", ["2017-03-01", "2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01"]
)
def test_document_of_every_version_is_read(azure: Simulator, endpoint: str, version: str) -> None:
    schedule(azure, type="Freeze", duration=5, source="Platform", description="x")
    document = Imds(endpoint, version).events()
    (event,) = document.events
    assert document.warnings == () and affects(event, "vm1")
    assert (event.description is not None) == (version >= "2019-04-01")
    assert (event.source is not None) == (version >= "2019-08-01")
    assert (event.duration is not None) == (version >= "2020-07-01")


@pytest.mark.parametrize("body", ["", "not json", "[]", "null", '"text"'])
def test_invalid_instance_document_is_unknown(azure: Simulator, endpoint: str, body: str) -> None:
    fault(azure, "body", route="instance", body=body)
    with pytest.raises(ImdsUnreadable, match="/metadata/instance"):
        Imds(endpoint).instance()


@pytest.mark.parametrize(
    "endpoint_text",
    [
        "",
        "auto",
        "169.254.169.254",
        "https://h",
        "http://",
        "http://[::1",
        "http://h:x",
        "http://h/x",
        "http://h?x=1",
        "http://u:p@h",
    ],
)
def test_invalid_endpoint_is_refused_before_a_request(endpoint_text: str) -> None:
    with pytest.raises(ImdsError, match="not an address of IMDS"):
        Imds(endpoint_text)


def test_missing_library_is_an_error_of_the_request(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "REQUESTS_IMPORT_ERROR", "ImportError: urllib3")
    imds = Imds(endpoint)
    requests: tuple[Callable[[], object], ...] = (imds.events, imds.instance)
    for request in requests:
        with pytest.raises(ImdsError, match="requests is not installed") as caught:
            request()
        assert not caught.value.retryable
    imds.close()


@pytest.mark.parametrize(
    "options", [{"timeout": 0}, {"timeout": -1}, {"first_timeout": 0}, {"max_bytes": 0}, {"timeout": float("nan")}]
)
def test_limit_that_is_not_positive_raises_value_error(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be more than 0"):
        Imds("http://127.0.0.1", **options)  # type: ignore[arg-type]


def test_endpoint_may_end_in_a_slash(endpoint: str) -> None:
    assert Imds(endpoint + "/").endpoint == endpoint


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_proxy_variables_are_ignored(endpoint: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert Imds(endpoint).events().events == ()


def test_password_of_the_user_is_not_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login user password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    body = b'{"DocumentIncarnation":1,"Events":[]}'
    with serving(Answer(body=body)) as server:
        assert Imds(server.url).events().events == ()
    headers = server.received[0].headers
    assert not headers.keys() & {"authorization", "cookie", "x-forwarded-for"}
    assert (headers["metadata"], headers["accept-encoding"]) == ("true", "identity")


def test_answer_in_an_unrequested_content_coding_is_unknown(azure: Simulator, endpoint: str) -> None:
    fault(azure, "body", body='{"DocumentIncarnation":1,"Events":[]}', headers={"Content-Encoding": "gzip"})
    with pytest.raises(ImdsUnreadable, match="gzip"):
        Imds(endpoint).events()


@pytest.mark.parametrize(
    "head",
    [
        "HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
        f"HTTP/1.1 200 OK\r\nContent-Length: {'9' * 5000}\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 429 No\r\nRetry-After: \xb2\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_malformed_head_raises_imds_error(head: str) -> None:
    with serving(Raw(head.encode("latin-1"))) as server, pytest.raises(ImdsError):
        Imds(server.url).events()


@pytest.mark.parametrize("endpoint_text", ["http://a..b", "http://*bad", "http://a b", f"http://{'x' * 70}.b"])
def test_invalid_host_name_raises_imds_error(endpoint_text: str) -> None:
    with pytest.raises(ImdsError):
        Imds(endpoint_text).events()


@pytest.mark.parametrize(
    ("line", "body"),
    [
        ("HTTP/1.1 500 Odd", r'{"error":"no \ud800 luck"}'),
        ("HTTP/1.1 400 Bad", r'{"error":"Bad\nforged \u001b[2J\u202e"}'),
        ("HTTP/1.1 400 Bad", r'{"error":"Bad","newest-versions":["2020\r\n\u009b2J"]}'),
        ("\x1b[2J\x9b31m forged", ""),
        ("HTTP/1.1 200 OK", r'{"DocumentIncarnation":1,"Events":{"\u001b":1}}'),
    ],
)
def test_error_text_is_printable(line: str, body: str) -> None:
    answer = f"{line}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    with serving(Raw(answer.encode("latin-1"))) as server, pytest.raises(ImdsError) as caught:
        Imds(server.url).events()
    assert str(caught.value).isprintable()


def test_answer_of_the_same_bytes_returns_the_same_document() -> None:
    event = {"EventId": "A", "EventStatus": "Scheduled", "EventType": "Reboot", "Resources": ["vm1"], "NotBefore": ""}
    one, other = (
        Answer(body=json.dumps({"DocumentIncarnation": 1, "Events": events}).encode()) for events in ([event], [])
    )
    dated = [one._replace(headers=(f"Date: Sat, 21 Nov 2026 10:15:0{second} GMT",)) for second in range(2)]
    with serving(*dated, Answer(body=b"{}"), Answer(500), dated[1], other, one) as server:
        imds = Imds(server.url)
        first, second = imds.events(), imds.events()
        assert second.events is first.events and second.warnings is first.warnings
        assert first.server_time is not None and second.server_time is not None
        assert (second.server_time - first.server_time).total_seconds() == 1
        # another document in between does not matter
        for _sick in range(2):
            with pytest.raises(ImdsError):
                imds.events()
        assert imds.events().events is first.events
        assert imds.events().events == ()
        assert imds.events().events == first.events
