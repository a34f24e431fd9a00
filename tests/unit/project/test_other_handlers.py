# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/other-handlers.md gives the defaults of the hook runner beside those of other programs."""

from __future__ import annotations

from hook_runner.config.settings import Settings
from imds_simulator.api_versions import EVENT_TYPES
from support.daemon.documents import rows
from support.repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "other-handlers.md").read_text(encoding="utf-8")


def test_row_of_the_hook_runner_has_its_defaults() -> None:
    plain = Settings()
    (events,) = [cells for cells in rows(PAGE, "Events and preparation") if cells[0] == "hook runner"]
    (errors,) = [cells for cells in rows(PAGE, "Errors of IMDS") if cells[0] == "hook runner"]
    assert events[1] == f"{plain.interval:g} s"
    assert events[2] == f"{', '.join(EVENT_TYPES)}, for each hook"
    assert errors[1] == f"{plain.timeout:g} s; {plain.first_timeout:g} s for the first answer"
