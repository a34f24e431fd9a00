# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/start/contributing.md as printed, by a user without root and with an empty home directory."""

from __future__ import annotations

import subprocess

import pytest

from support.other_user import AS_USER
from support.start.new_user import new_user
from support.start.page import follow

pytestmark = pytest.mark.all

PAGE = "docs/start/contributing.md"
BREAKS = "sed -i 's/if after.complete:/if True:/' plugins/module_utils/azure_scheduled_events/changes.py"
CHANGED = "tests/unit/plugins/module_utils/azure_scheduled_events/test_changes.py"


def test_page_as_printed_breaks_code_and_adds_a_test() -> None:
    with new_user("sys.version_info >= (3, 11)") as user, user.terminal() as terminal:
        follow(PAGE, user, terminal, failing={BREAKS})
        changed = subprocess.run(
            ["git", "diff", "--name-only"],
            cwd=user.home / "scheduled_events",
            env=user.environment,
            capture_output=True,
            text=True,
            check=True,
            **AS_USER,
        )
        assert changed.stdout.split() == [CHANGED]
