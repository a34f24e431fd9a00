# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/start/salt.md as printed, by a user without root and with an empty home directory."""

from __future__ import annotations

import pytest

from support.start.default_ports import default_ports
from support.start.new_user import NAMED, new_user
from support.start.page import follow

pytestmark = pytest.mark.all

PAGE = "docs/start/salt.md"


def test_page_as_printed_lists_prepares_approves_and_recovers() -> None:
    # Salt needs the name of its user
    with new_user("sys.version_info >= (3, 10)", NAMED) as user, default_ports(), user.terminal() as terminal:
        follow(PAGE, user, terminal)
        folder = user.home / "azure-salt"
        log = (folder / "simulator.log").read_text(encoding="utf-8")
        assert log.count(" approved ") == 2
        assert (folder / "serving").exists()
        # a record exists as long as a recovery is due
        assert list(folder.glob("var/cache/salt/minion/azure_events/approvals/*"))
        assert not list(folder.glob("var/cache/salt/minion/azure_events/prepared.json"))
