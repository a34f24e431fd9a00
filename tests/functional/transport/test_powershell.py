# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The PowerShell modules themselves, in PowerShell, against the contract of imds_exchange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from support.windows_exchange.cases import CASES, REFUSED, Case, check, check_refused
from support.windows_exchange.powershell import NOT_HERE, PROGRAM, run_module

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NOT_HERE)


def exchange(options: Mapping[str, Any], environment: Mapping[str, str]) -> Mapping[str, Any]:
    return run_module("imds_exchange", options, environment)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exchange_keeps_the_contract(case: Case) -> None:
    check(case, exchange)


@pytest.mark.parametrize("options, named", REFUSED, ids=str)
def test_exchange_refuses_an_option_that_is_not_valid(options: Mapping[str, Any], named: str) -> None:
    check_refused(options, named, exchange)


def test_exchange_in_check_mode_skips_a_post() -> None:
    # an exchange with this port would fail, rather than be skipped
    options = {"url": "http://127.0.0.1:9/", "method": "POST", "_ansible_check_mode": True}
    assert exchange(options, {})["skipped"] is True


def test_event_facts_reports_unknown_events() -> None:
    result = run_module("event_facts", {}, {})
    fact = result["ansible_facts"]["azure_scheduled_events"]
    assert (fact["available"], fact["events"]) == (False, [])
    assert "pending" not in fact
    assert not result.get("failed")
