# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The tables of options in docs/ready-hooks have the options of the hooks."""

from __future__ import annotations

import re

import pytest

from ready_hooks import hooks
from support.ready_hooks.page import PAGES


@pytest.mark.parametrize("name", [name for name in hooks.NAMES if (PAGES / f"{name}.md").exists()])
def test_table_of_options_names_every_option(name: str) -> None:
    _before, _heading, after = (PAGES / f"{name}.md").read_text(encoding="utf-8").partition("\n## Options\n")
    rows = re.findall(r"^\| (`.*?) \| (.*?) \|", after.partition("\n## ")[0], re.MULTILINE)
    options = hooks.load(name).options
    named = [word for row in rows for word in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(option.name for option in options)
    required = [word for row in rows if row[1] == "required" for word in re.findall(r"`(\w+)`", row[0])]
    assert sorted(required) == sorted(option.name for option in options if option.required)
