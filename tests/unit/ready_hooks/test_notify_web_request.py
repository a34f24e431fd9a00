# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import pytest

from ready_hooks.hooks.notify.web_request import parse_url


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
