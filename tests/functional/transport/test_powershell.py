# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The PowerShell modules themselves, in PowerShell, against the contract of imds_exchange."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from support.repository import REPOSITORY
from support.transport.replies import Answer, serving
from support.windows_exchange.cases import CASES, DOCUMENT, HEADERS, REFUSED, Answered, Case, Failed, check
from support.windows_exchange.powershell import AT_A_TIME, NOT_HERE, PROGRAM, PowerShell, powershell

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason=NOT_HERE),
    # one worker of pytest, and therefore one process of PowerShell, for all cases
    pytest.mark.xdist_group("powershell"),
]

# cases that the stand-in does not keep
ONLY_HERE = (
    # PowerShell needs more than this limit for the header lines; Python's http.client refuses so many
    Case(
        "time-limit-that-passed-before-the-body",
        (Answer(200, DOCUMENT, tuple(f"X{number}: 1" for number in range(4000))),),
        Failed("unreachable", True, ("timeout",)),
        {"headers": HEADERS, "rest_timeout": 0.001},
    ),
    # HTTP allows the length that the document would have; the helper misses its bytes
    Case("not-modified-with-a-length", (Answer(304, b"", ("Content-Length: 37",)),), Answered(304, b"")),
)


@contextlib.contextmanager
def warm_powershell(environment: Mapping[str, str]) -> Iterator[PowerShell]:
    """Run a process that has made an exchange: .NET compiles then, which must not count as a case's time."""
    with powershell(environment) as started:
        with serving(Answer()) as server:
            started.run_module("imds_exchange", {"url": server.url})
        yield started


@pytest.fixture(scope="module")
def shell() -> Iterator[PowerShell]:
    with warm_powershell({}) as started:
        yield started


@pytest.fixture(scope="module")
def outcomes(shell: PowerShell, request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[None]]]:
    """The selected cases, which run side by side because most of them wait."""

    def run(case: Case) -> None:
        # the variables belong to a process
        with warm_powershell(case.environment) if case.environment else contextlib.nullcontext(shell) as chosen:
            check(case, lambda options, environment: chosen.run_module("imds_exchange", options))

    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    ours = [test for test in tests if test.path == request.path and "outcomes" in test.fixturenames]
    selected: list[Any] = [test.callspec.params["case"] for test in ours]
    with ThreadPoolExecutor(AT_A_TIME) as executor:
        yield {case.name: executor.submit(run, case) for case in selected}


@pytest.mark.parametrize("case", (*CASES, *ONLY_HERE), ids=lambda case: case.name)
def test_exchange_keeps_the_contract(case: Case, outcomes: Mapping[str, Future[None]]) -> None:
    outcomes[case.name].result()


@pytest.mark.parametrize("options, named", REFUSED, ids=str)
def test_exchange_refuses_an_option_that_is_not_valid(
    options: Mapping[str, Any], named: str, shell: PowerShell
) -> None:
    result = shell.run_module("imds_exchange", options)
    assert result["failed"] is True and f" {named} " in f" {result['msg']} "


def test_exchange_in_check_mode_skips_a_post(shell: PowerShell) -> None:
    # an exchange with this port would fail, rather than be skipped
    options = {"url": "http://127.0.0.1:9/", "method": "POST", "_ansible_check_mode": True}
    assert shell.run_module("imds_exchange", options)["skipped"] is True


def test_wait_whose_time_limit_has_passed_ends_at_once(shell: PowerShell, tmp_path: Path) -> None:
    """No case reaches it between two operations: the function itself gets one that never ends."""
    source = (REPOSITORY / "plugins" / "modules" / "imds_exchange.ps1").read_text(encoding="utf-8")
    begin = source.index("Function Wait-Operation")
    function = source[begin : source.index("\n}\n", begin) + 3]
    script = tmp_path / "wait.ps1"
    script.write_text(
        "$clock = [System.Diagnostics.Stopwatch]::StartNew()\n"
        "$operation = @{ AsyncWaitHandle = [System.Threading.ManualResetEvent]::new($false) }\n"
        + function
        + """try { Wait-Operation $operation -1.0 }
catch [System.TimeoutException] { '{"timeout": true}' }
"""
    )
    assert shell.run_script(script, {}) == {"timeout": True}


def test_event_facts_reports_unknown_events(shell: PowerShell) -> None:
    result = shell.run_module("event_facts", {})
    fact = result["ansible_facts"]["azure_scheduled_events"]
    assert (fact["available"], fact["events"]) == (False, [])
    assert "pending" not in fact
    assert not result.get("failed")
