# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._maintenance.controller_notes import (
    note_on_controller,
)


@pytest.mark.parametrize("host", ["web1", "..", ".", "a/b", "../x", "[::1]:22"])
def test_each_host_has_a_folder_of_its_own(host, tmp_path):
    path = note_on_controller(str(tmp_path), host).path
    assert os.path.normpath(path) == path
    assert os.path.dirname(os.path.dirname(path)) == str(tmp_path / "hosts")


def test_names_that_differ_have_different_folders():
    hosts = ["a/b", "a%2Fb", "..", "%2E.", ".", "%2E"]
    assert len({note_on_controller("/x", host).path for host in hosts}) == len(hosts)
