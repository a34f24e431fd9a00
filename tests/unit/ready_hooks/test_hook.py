# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

from pathlib import Path

import pytest

from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError
from ready_hooks.core.event import from_environment
from ready_hooks.core.hook import Run
from ready_hooks.core.record import Record


def test_record_that_cannot_be_shortened_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "records").write_text("not a folder", encoding="utf-8")
    record = Record(str(tmp_path / "records"), "web", "haproxy")
    run = Run("web", {}, from_environment({}), Deadline(60), record, dry_run=False)
    with pytest.raises(HookError):
        run.remember({"servers": {}})
    run.shorten_record({"servers": {}})
    assert "the record cannot be written" in capsys.readouterr().err
