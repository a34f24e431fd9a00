# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The report of a run in a real browser: it needs nothing else, and fits a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from imds_simulator.__main__ import main
from support import simulator_process
from support.browser import Page

pytestmark = pytest.mark.all


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_report_fits_a_phone_and_reports_no_error(page: Page, tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "report.html"
    with simulator_process.start("two-at-once", args=["--clock", "manual"]) as simulator:
        simulator.advance(100)
        assert main(["report", "--control", simulator.control, "--output", str(file)]) == 0
    page.errors()
    page.show(390, 800, scheme)
    page.driver.get(f"file://{file}")
    assert page.evaluate("return document.documentElement.scrollWidth <= window.innerWidth")
    # the picture is larger than the phone, and its frame scrolls
    assert page.evaluate("const f = document.querySelector('.scroll'); return f.scrollWidth > f.clientWidth")
    backgrounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}
    assert page.evaluate("return getComputedStyle(document.body).backgroundColor") == backgrounds[scheme]
    assert page.errors() == []
