# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/start/salt.md as printed, by a new user."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from support.new_user.new_user import NewUser, new_user
from support.new_user.page_reader import PageReader
from support.wait import wait_until

OLDEST_PYTHON = (3, 10)


@pytest.fixture
def user() -> Iterator[NewUser]:
    with new_user(OLDEST_PYTHON) as found:
        yield found


def test_salt_page_as_printed_prepares_approves_and_recovers(user: NewUser) -> None:
    began = time.monotonic()
    reader = PageReader("docs/start/salt.md", str(user.home))
    folder = user.home / "azure-salt"
    serving, log = folder / "serving", folder / "simulator.log"
    with user.shell(network=True) as shell:
        reader.go_on(shell, "pip install")
    with user.shell(network=False) as shell:
        shell.paste("cd azure-salt\n. venv/bin/activate\n")
        reader.go_on(shell, "imds-simulator --vm")
        reader.go_on(shell, "azure_events.list")
        print(f"first result after {time.monotonic() - began:.0f} s")
        assert serving.exists()
        reader.go_on(shell, "azure_events.prepare")
        assert not serving.exists()
        reader.go_on(shell, "azure_events.sweep")
        assert serving.exists()
        assert log.read_text().count(" approved ") == 1
        reader.go_on(shell, "salt-minion")
        wait_until(lambda: not serving.exists(), "the preparation", (folder / "minion.log").read_text)
        reader.go_on(shell, "finished .*event=second")
        assert serving.exists()
        reader.go_on(shell)
        print(f"end after {time.monotonic() - began:.0f} s")
    assert reader.is_at_end() and not folder.exists()
