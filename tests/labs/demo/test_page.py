# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/zero-loss.md prints the playbook that runs."""

from __future__ import annotations

import re

import pytest
import yaml

from demo.topology import HERE
from support.repository import REPOSITORY

pytestmark = pytest.mark.all

PAGE = (REPOSITORY / "docs" / "zero-loss.md").read_text(encoding="utf-8")


def test_page_prints_the_playbook_that_runs() -> None:
    (printed,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert yaml.safe_load(printed) == yaml.safe_load((HERE / "site.yml").read_text(encoding="utf-8"))
