# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing in the result of imds_exchange is trusted."""

from __future__ import annotations

import base64

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.errors import (
    ImdsError,
    ImdsUnreachable,
    ImdsUnreadable,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._windows_hosts.exchange_result import (
    read_response,
    requests_sent,
)

ENDPOINT = "http://169.254.169.254"
LIMIT = 1000
DOCUMENT = '{"Events":["Prüfung 🎐"]}'.encode()


def encoded(body):
    return base64.b64encode(body).decode("ascii")


def answer(**changes):
    return dict({"changed": False, "requests_sent": 1, "status": 200, "headers": [], "body": ""}, **changes)


def read(result):
    return read_response(result, "GET /metadata", ENDPOINT, LIMIT)


def test_answer_is_returned_as_it_came():
    response = read(answer(status=410, headers=[["ETag", '"1"'], ["Date", "now"]], body=encoded(DOCUMENT)))
    assert (response.status, response.body) == (410, DOCUMENT)
    assert (response.headers.get("etag"), response.headers["DATE"], response.headers.get("x")) == ('"1"', "now", None)
    assert len(response.headers) == 2 and sorted(response.headers) == ["date", "etag"]


def test_body_may_have_the_largest_size():
    assert len(read(answer(body=encoded(b"x" * LIMIT))).body) == LIMIT


@pytest.mark.parametrize(
    "result",
    [
        {},
        answer(status="200"),
        answer(status=True),
        answer(status=99),
        answer(status=600),
        answer(headers=None),
        answer(headers={"ETag": "1"}),
        answer(headers=[["ETag", None]]),
        answer(headers=["ab"]),
        answer(body=None),
        answer(body="not base64"),
        answer(body=encoded(b"x" * (LIMIT + 3))),
        answer(body="A" * 100_000_000),
        {"failure": "refused"},
        {"failure": {"kind": "unreadable", "message": "too long"}},
    ],
    ids=lambda result: str(result)[:60],
)
def test_other_results_are_unreadable(result):
    with pytest.raises(ImdsUnreadable) as raised:
        read(result)
    assert raised.value.retryable
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("connected, expected", [(True, True), (False, False), ("false", False), (None, False)])
def test_failure_without_an_answer_is_unreachable(connected, expected):
    with pytest.raises(ImdsUnreachable) as raised:
        read({"failure": {"kind": "unreachable", "connected": connected, "reason": "timeout", "message": "no answer"}})
    assert raised.value.connected is expected
    assert "no answer" in str(raised.value)


def test_failed_module_is_not_repeated():
    with pytest.raises(ImdsError) as raised:
        read({"failed": True, "msg": "imds_exchange: option url is not valid"})
    assert not raised.value.retryable
    assert "option url is not valid" in str(raised.value)


@pytest.mark.parametrize(
    "result, shown",
    [
        ({"failed": True, "module_stdout": "", "module_stderr": "", "msg": "MODULE FAILURE"}, "no output"),
        ({"failed": True, "module_stdout": "#< CLIXML\r\n<Objs/>", "msg": "MODULE FAILURE"}, "#< CLIXML <Objs/>"),
        ({"failed": True, "module_stdout": "x", "module_stderr": "Prüfung \ud83d", "msg": ""}, "Prüfung \\ud83d"),
    ],
)
def test_output_that_is_not_json_counts_as_no_answer(result, shown):
    with pytest.raises(ImdsUnreachable) as raised:
        read(result)
    assert raised.value.connected
    assert str(raised.value).endswith(shown)


@pytest.mark.parametrize("sent", [None, "3", True, -1, 10**9, 1.5])
def test_unusable_number_of_requests_counts_as_one(sent):
    assert requests_sent({"requests_sent": sent}) == 1


def test_number_of_requests_is_returned():
    assert (requests_sent({"requests_sent": 0}), requests_sent({"requests_sent": 51})) == (0, 51)
