# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/start/one-vm.md as printed, by a user without root and with an empty home directory."""

from __future__ import annotations

import pytest

from support.start.default_ports import default_ports
from support.start.new_user import new_user
from support.start.page import follow

pytestmark = pytest.mark.all

PAGE = "docs/start/one-vm.md"


def test_page_as_printed_prepares_approves_and_recovers() -> None:
    with new_user("sys.version_info >= (3, 9)") as user, default_ports(), user.terminal() as terminal:
        follow(PAGE, user, terminal)
        folder = user.home / "one-vm"
        assert (folder / "ready").exists()
        assert (folder / "state" / "clean").exists()
