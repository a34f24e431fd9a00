# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/zero-loss.md prints the playbook that runs, and the figures of the drawing beside it."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from demo.load import Answer
from demo.plot import drawing
from demo.report import table
from demo.result import Phases, Result
from demo.topology import HERE
from support.repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "zero-loss.md").read_text(encoding="utf-8")
IMAGE = REPOSITORY / "docs" / "images" / "zero-loss.svg"
RESULT = Result(
    handling="one <handling>",
    answers=(Answer("order-0", 1.0, 0.01, ""), Answer("order-1", 2.0, 3.0, "status 504")),
    phases=(Phases("Freeze", "web1", "Platform", 1.0, None, 2.0, 3.0, "db1"),),
    stored=1,
    lost=(),
    out_of_pool={"web1": 2.0},
    repeated=0,
    errors=(),
)


def test_page_prints_the_playbook_that_runs() -> None:
    (printed,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert yaml.safe_load(printed) == yaml.safe_load((HERE / "site.yml").read_text(encoding="utf-8"))


def test_page_has_the_figures_of_the_drawing() -> None:
    rows = {
        name.strip(): [cell.strip() for cell in cells]
        for name, *cells in re.findall(r"^\|(.*?)\|(.*?)\|(.*?)\|(.*?)\|$", PAGE, re.MULTILINE)
    }
    drawn = re.findall(
        r"(\d+) of (\d+) requests failed, slowest .*?, (\d+) acknowledged", IMAGE.read_text().split("</title>")[0]
    )
    names = ("requests failed", "requests sent", "acknowledged writes lost")
    assert [tuple(rows[name][column].replace(",", "") for name in names) for column in range(3)] == drawn
    assert (drawn[2][0], drawn[2][2]) == ("0", "0")


def test_result_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    RESULT.write(tmp_path / "result")
    assert Result.read(tmp_path / "result") == RESULT


def test_table_and_drawing_count_failures() -> None:
    assert re.search(r"^\| requests failed +\| +1 \|$", table([RESULT]), re.MULTILINE)
    text = drawing([RESULT])
    assert "one &lt;handling&gt;: 1 of 2 requests failed, slowest 3.0 s" in text
    assert text.count('<rect class="failed"') == 2  # the legend, and the half second of the failure


def test_problems_name_a_lost_write_and_a_failure() -> None:
    assert len(RESULT._replace(lost=("order-0",)).problems()) == 2
    assert RESULT._replace(answers=RESULT.answers[:1]).problems() == []
