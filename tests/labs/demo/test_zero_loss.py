# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`make demo-zero-loss` with two events: a web server reboots, and the database's primary freezes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from demo.handlings import HANDLINGS, OURS
from demo.plan import SHORT
from demo.result import events, problems, table
from demo.run import run
from demo.topology import HERE
from support.repository import REPOSITORY


def test_ready_hooks_lose_no_request_and_no_write(tmp_path: Path) -> None:
    result = run(HANDLINGS[OURS], SHORT, tmp_path)
    print(f"{events(result)}\n{table([result])}")
    logs = tmp_path / "logs"
    assert not result.problems(), f"{problems(result)}\n{logs.read_text()[-20000:] if logs.exists() else ''}"
    # the limits are long, so that a busy machine fails no request; therefore these show that the
    # hosts were out of use when the interruptions came
    assert result.repeated == 0
    web, primary = result.phases
    assert web.approved is not None and result.out_of_pool[web.host] > 0
    assert primary.approved is not None and primary.primary not in ("", primary.host)


@pytest.mark.all
def test_page_prints_the_playbook_that_runs() -> None:
    page = (REPOSITORY / "docs" / "zero-loss.md").read_text(encoding="utf-8")
    (printed,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert yaml.safe_load(printed) == yaml.safe_load((HERE / "site.yml").read_text(encoding="utf-8"))
