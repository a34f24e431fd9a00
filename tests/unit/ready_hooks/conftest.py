# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from pathlib import Path

import pytest

from support.ready_hooks.hook_host import HookHost


@pytest.fixture
def hook_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HookHost:
    return HookHost(tmp_path, monkeypatch)
