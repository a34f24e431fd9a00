# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._host_folder import folder_of_host


@pytest.mark.parametrize("host", ["web1", "..", ".", "a/b", "../x", "[::1]:22"])
def test_each_host_has_a_folder_below_that_of_all_hosts(host, tmp_path):
    path = folder_of_host(str(tmp_path), host)
    assert os.path.normpath(path) == path
    assert os.path.dirname(path) == str(tmp_path / "hosts")


def test_names_that_differ_have_different_folders():
    hosts = ["a/b", "a%2Fb", "..", "%2E.", ".", "%2E"]
    assert len({folder_of_host("/x", host) for host in hosts}) == len(hosts)


def test_home_directory_is_that_of_the_user():
    assert os.path.isabs(folder_of_host("~/x", "web1"))
