# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exchanges by runs of imds_exchange."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events import (
    Imds,
    ImdsError,
    ImdsUnreachable,
)
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils.azure_scheduled_events.transport import (
    Request,
)
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._windows_hosts.host_module import HostModule
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._windows_hosts.host_transport import (
    LONGEST_HOLD,
    HostTransport,
)

ENDPOINT = "http://169.254.169.254"
DOCUMENT = b'{"DocumentIncarnation": 1, "Events": []}'
# the result of Ansible for a module that ended with an exception
CRASHED = {"changed": False, "failed": True, "msg": "Unhandled exception while executing module"}


class Host:
    """A host that answers each exchange with the next of these results, the last one again and again."""

    def __init__(self, *results):
        self.results = list(results)
        self.options = []
        self.module = HostModule(self.execute, lambda: None)
        self.transport = HostTransport(self.module, ENDPOINT, 1000, 3.0)

    def execute(self, options):
        self.options.append(options)
        result = self.results.pop(0) if len(self.results) > 1 else self.results[0]
        if isinstance(result, Exception):
            raise result
        return result


def answer(body, sent=1, **headers):
    encoded = base64.b64encode(body).decode("ascii")
    return {"status": 200, "headers": [list(pair) for pair in headers.items()], "body": encoded, "requests_sent": sent}


def test_request_becomes_options_of_plain_types():
    host = Host(answer(b""))
    host.transport.exchange(Request("POST", "/metadata", {"Metadata": "true"}, b"\xff{}"), 2.0, 1.0)
    (options,) = host.options
    assert options == {
        "url": ENDPOINT + "/metadata",
        "method": "POST",
        "headers": {"Metadata": "true"},
        "body": base64.b64encode(b"\xff{}").decode("ascii"),
        "connect_timeout": 2.0,
        "timeout": 2.0,
        "rest_timeout": 1.0,
        "max_bytes": 1000,
    }
    assert json.loads(json.dumps(options)) == options


@pytest.mark.parametrize("hold, expected", [(0.0, None), (20.0, 20.0), (3600.0, LONGEST_HOLD)])
def test_hold_becomes_a_repetition_of_the_module(hold, expected):
    host = Host(answer(DOCUMENT, sent=20))
    host.transport.exchange(Request("GET", "/metadata", {}, None, DOCUMENT, hold), 10.0, 10.0)
    (options,) = host.options
    assert options.get("repeat_for") == expected
    assert options.get("known_hash") == (hashlib.sha256(DOCUMENT).hexdigest() if expected else None)
    assert host.transport.requests_sent == 20


def test_short_limit_leaves_time_for_an_answer():
    host = Host(answer(b""))
    host.transport.exchange(Request("GET", "/metadata", {}), 0.02, 0.02)
    limits = ("connect_timeout", "timeout", "rest_timeout")
    assert [host.options[0][name] for name in limits] == [1.0, 1.0, 1.0]


def test_lost_connection_is_an_unreachable_service():
    host = Host(answer(DOCUMENT), OSError("lost"))
    host.transport.exchange(Request("GET", "/metadata", {}), 10.0, 10.0)
    with pytest.raises(ImdsUnreachable, match="lost") as raised:
        host.transport.exchange(Request("GET", "/metadata", {}), 10.0, 10.0)
    assert raised.value.connected and raised.value.retryable
    assert host.transport.requests_sent == 2


def test_client_uses_the_headers_of_the_host():
    host = Host(answer(DOCUMENT, dAtE="Mon, 23 Nov 2026 15:00:00 GMT"))
    imds = Imds(ENDPOINT, transport=lambda *_arguments: host.transport)
    assert imds.events().server_time.isoformat() == "2026-11-23T15:00:00+00:00"


def test_module_that_fails_after_it_has_worked_is_run_again():
    host = Host(CRASHED, answer(DOCUMENT), CRASHED)
    retryable = []
    for _number in range(3):
        try:
            host.transport.exchange(Request("GET", "/metadata", {}), 10.0, 10.0)
        except ImdsError as error:
            retryable.append(error.retryable)
    assert retryable == [False, True]
