# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Receipts on the controller and policies on the host."""

from __future__ import annotations

import os

import pytest
from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._event_tasks.event_task import InvalidOptions
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._windows_hosts.approval_files import (
    policy_of_host,
    receipts_of_host,
)

PATH = "C:\\Policies\\freezes.yml"


def fetching(content):
    def fetch(path, copy):
        assert path == PATH
        with open(copy, "wb") as file:
            file.write(content)

    return fetch


def failing(error):
    def fetch(path, copy):
        raise error

    return fetch


def test_hosts_have_receipts_of_their_own(tmp_path):
    assert receipts_of_host(str(tmp_path), "web1") != receipts_of_host(str(tmp_path), "web2")


def test_default_folder_is_that_of_the_user():
    assert os.path.isabs(receipts_of_host(None, "web1"))


def test_policy_is_read_from_the_host():
    policy = policy_of_host(PATH, fetching(b"rules:\n- {name: all, when: {type: [Freeze]}, approve: now}\n"))
    assert policy.may_approve()


@pytest.mark.parametrize("content", [b"rules: [", b"", b"rules:\n- {name: all, approve: soon}\n", b"\xff\xfe"])
def test_unusable_policy_is_an_invalid_option_that_names_the_file(content):
    with pytest.raises(InvalidOptions) as raised:
        policy_of_host(PATH, fetching(content))
    assert PATH in str(raised.value)


@pytest.mark.parametrize("error", [AnsibleError("no such file"), OSError("no such file")])
def test_missing_policy_is_an_invalid_option(error):
    with pytest.raises(InvalidOptions, match="no such file"):
        policy_of_host(PATH, failing(error))


def test_unreachable_host_is_unreachable():
    with pytest.raises(AnsibleConnectionFailure):
        policy_of_host(PATH, failing(AnsibleConnectionFailure("no route")))
