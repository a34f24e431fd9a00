# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/start/event-driven.md as printed, by a user without root and with an empty home directory."""

from __future__ import annotations

import pytest

from support.eda.rulebook import java_home
from support.start.default_ports import default_ports
from support.start.new_user import new_user
from support.start.page import follow

pytestmark = pytest.mark.all

PAGE = "docs/start/event-driven.md"


def test_page_as_printed_prepares_approves_and_recovers() -> None:
    if java_home() is None:
        pytest.skip("ansible-rulebook needs Java 17 or later")
    with new_user("sys.version_info >= (3, 11)") as user, default_ports(), user.terminal() as terminal:
        follow(PAGE, user, terminal)
        folder = user.home / "rulebook"
        assert [(folder / vm / "ready").read_text() for vm in ("vm1", "vm2")] == ["yes\n", "yes\n"]
