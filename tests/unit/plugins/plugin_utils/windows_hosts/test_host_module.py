# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module on a host whose connection may be lost."""

from __future__ import annotations

import time

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._windows_hosts import host_module
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._windows_hosts.host_module import (
    ConnectionLost,
    HostModule,
)


class Host:
    """A host that returns these results or raises these errors, one for each run."""

    def __init__(self, *replies):
        self.replies = list(replies)
        self.resets = 0
        self.module = HostModule(self.execute, self.reset)

    def execute(self, options):
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if callable(reply):
            reply()
        return reply

    def reset(self):
        self.resets += 1
        raise OSError("the host is down")


def test_first_error_is_that_of_ansible():
    host = Host(AnsibleConnectionFailure("no route"))
    with pytest.raises(AnsibleConnectionFailure, match="no route"):
        host.module.run({}, 1.0)
    assert host.resets == 0


@pytest.mark.parametrize("error", [AnsibleConnectionFailure("lost"), OSError("lost"), RuntimeError("lost")])
def test_later_error_is_a_lost_connection_which_is_reset(error):
    host = Host({"status": 200}, error, {"status": 304})
    assert host.module.run({}, 1.0) == {"status": 200}
    with pytest.raises(ConnectionLost, match="lost"):
        host.module.run({}, 1.0)
    assert host.resets == 1
    assert host.module.run({}, 1.0) == {"status": 304}


def test_result_that_says_unreachable_is_an_error():
    with pytest.raises(AnsibleConnectionFailure, match="no route"):
        Host({"unreachable": True, "msg": "no route"}).module.run({}, 1.0)


def test_run_that_hangs_is_interrupted(monkeypatch):
    monkeypatch.setattr(host_module, "_STARTING", 0.05)
    began = time.monotonic()
    host = Host({"status": 200}, lambda: time.sleep(30))
    host.module.run({}, 0.0)
    with pytest.raises(ConnectionLost, match="did not answer"):
        host.module.run({}, 0.05)
    assert time.monotonic() - began < 20
