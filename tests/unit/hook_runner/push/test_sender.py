# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""One attempt over real sockets: what is sent, and what each kind of answer or failure becomes."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hook_runner.config.settings import Settings
from hook_runner.permissions import trusted_owners
from hook_runner.push.delivery_queue import Answer, Delivery
from hook_runner.push.exchange import Exchange, NoReply, parse_url
from hook_runner.push.sender import Sender
from support.push_endpoint import Reaction, push_endpoint
from support.ready_hooks.certificates import Certificates
from support.transport.fault_helpers import raw_server

DELIVERY = Delivery(3, "id", "a", 0.0, b'{"change": "appeared"}')


def attempt(url: str, **settings: object) -> Answer:
    answers: list[Answer] = []
    made = Settings(push_url=url, **{"push_timeout": 30.0, **settings})  # type: ignore[arg-type]
    return Sender(made, trusted_owners(), answers.append).attempt(DELIVERY)


def test_a_delivery_is_one_post_with_its_body_and_credentials(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    token.chmod(0o600)
    with push_endpoint(Reaction(204)) as endpoint:
        assert attempt(endpoint.url + "?x=1", push_token_file=str(token)) == Answer(3, 204)
    (request,) = endpoint.taken
    assert (request.path, request.body) == ("/endpoint?x=1", DELIVERY.body)
    assert request.headers["content-type"] == "application/json"
    assert request.headers["authorization"] == "Bearer s3cret"


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with push_endpoint() as endpoint:
        assert attempt(endpoint.url).error == ""


def test_a_redirect_is_not_followed() -> None:
    with push_endpoint() as other, push_endpoint(Reaction(307, (("Location", other.url),))) as endpoint:
        answer = attempt(endpoint.url)
        assert (answer.status, other.requests) == (307, [])


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ((("Retry-After", "7"),), 7.0),
        ((("Retry-After", "soon"),), None),
        (
            (
                ("Retry-After", "Mon, 23 Nov 2026 10:00:30 GMT"),
                ("Date", "Mon, 23 Nov 2026 10:00:00 GMT"),
            ),
            30.0,
        ),
        ((), None),
    ],
)
def test_status_and_retry_after_are_returned(headers: tuple[tuple[str, str], ...], seconds: float | None) -> None:
    with push_endpoint(Reaction(503, headers)) as endpoint:
        answer = attempt(endpoint.url)
        assert (answer.status, answer.retry_after) == (503, seconds)
        assert answer.error == f"{endpoint.url} answered 503"


def test_an_answer_that_drips_ends_at_the_time_limit() -> None:
    began = time.monotonic()
    with push_endpoint(Reaction(drip=0.2)) as endpoint:
        answer = attempt(endpoint.url, push_timeout=1.0)
        assert answer.status is None and "no answer within 1 s" in answer.error
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "answer",
    [b"", b"SSH-2.0-x\r\n", b"y" * 9000 + b"\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x" * 70000],
)
def test_what_is_not_http_is_no_answer(answer: bytes) -> None:
    with raw_server(answer) as (url, _received):
        found = attempt(url)
        assert found.status is None and found.error.startswith(url) and len(found.error) < 500


def test_a_refused_connection_and_an_unknown_host_are_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "refused" in attempt(f"http://127.0.0.1:{port}/").error
    assert attempt("http://no-such-host.invalid/").status is None


def test_a_secret_that_cannot_be_used_sends_nothing(tmp_path: Path) -> None:
    with push_endpoint() as endpoint:
        answer = attempt(endpoint.url, push_token_file=str(tmp_path / "none"))
        assert answer.status is None and str(tmp_path / "none") in answer.error
        assert endpoint.requests == []


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Certificates]:
    yield Certificates(tmp_path_factory.mktemp("tls"), "127.0.0.1")


def test_tls_is_verified_by_a_private_authority(certificates: Certificates) -> None:
    with push_endpoint(context=certificates.server_context()) as endpoint:
        assert attempt(endpoint.url, push_ca_file=str(certificates.authority)) == Answer(3, 200)
        Exchange(endpoint.url, str(certificates.authority), 30).try_connection()
        unknown = attempt(endpoint.url)
        assert unknown.status is None and "its certificate is refused" in unknown.error
        other_name = attempt(endpoint.url.replace("127.0.0.1", "localhost"), push_ca_file=str(certificates.authority))
        assert other_name.status is None and "localhost" in other_name.error and "certificate" in other_name.error
    assert len(endpoint.requests) == 1


def test_tls_that_fails_is_no_answer(certificates: Certificates, tmp_path: Path) -> None:
    with push_endpoint() as plain:
        found = attempt(plain.url.replace("http:", "https:"), push_ca_file=str(certificates.authority))
        assert found.status is None
        (tmp_path / "ca").write_text("nothing")
        assert "push_ca_file" in attempt(plain.url.replace("http:", "https:"), push_ca_file=str(tmp_path / "ca")).error
    assert plain.requests == []


def test_a_host_that_does_not_speak_tls_ends_at_the_time_limit(certificates: Certificates) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(NoReply, match="no answer within 0.5 s"):
            Exchange(url, str(certificates.authority), 0.5).try_connection()


@pytest.mark.parametrize(
    ("url", "shown", "target"),
    [
        ("https://eda.example", "https://eda.example:443/", "/"),
        ("http://[::1]:5000/a?key=s3cret", "http://[::1]:5000/a", "/a?key=s3cret"),
    ],
)
def test_the_query_of_the_url_is_sent_and_not_shown(url: str, shown: str, target: str) -> None:
    address = parse_url(url)
    assert (address.shown(), address.target) == (shown, target)


def test_an_unexpected_error_does_not_end_the_thread(tmp_path: Path) -> None:
    fifo = tmp_path / "token"
    os.mkfifo(fifo, 0o600)
    assert "not a regular file" in attempt("http://127.0.0.1:9/", push_token_file=str(fifo)).error
