# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stand-in for imds_exchange keeps the contract of the PowerShell module, but for options that it refuses."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest

from support.windows_exchange.cases import CASES, Case, check
from support.windows_hosts.exchange import perform

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in runs on a controller, never on Windows")


class StandIn:
    """The stand-in, with a clock that skips the pauses between repeated requests."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def clock(self) -> float:
        return time.monotonic() + self._skipped

    def sleep(self, seconds: float) -> None:
        self._skipped += seconds

    def perform(self, options: Mapping[str, Any], environment: Mapping[str, str]) -> Mapping[str, Any]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            return perform(options, clock=self.clock, sleep=self.sleep)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exchange_has_the_result_of_the_contract(case: Case) -> None:
    stand_in = StandIn()
    check(case, stand_in.perform, stand_in.clock)
