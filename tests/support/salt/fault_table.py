# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A pytest plugin: run each test SALT_FAULTS_TIMES times, and print the notes of the tests as a table."""

from __future__ import annotations

import os

import pytest

TIMES = "SALT_FAULTS_TIMES"
HEAD = ("situation", "preparations/recoveries by minion; approvals", "measured")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    times = int(os.environ[TIMES])
    if times > 1:
        metafunc.fixturenames.append("_run")
        metafunc.parametrize("_run", range(1, times + 1), ids="run{}".format)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = {
        report.nodeid: report
        for kind in ("passed", "skipped", "failed", "error")
        for report in terminalreporter.getreports(kind)
    }
    rows = [HEAD, *(_row(report) for _name, report in sorted(reports.items()))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    terminalreporter.section("faults and attacks")
    for row in rows:
        terminalreporter.write_line("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _row(report: pytest.TestReport) -> tuple[str, str, str]:
    """Return the row of a test's last report, which is that of a failure."""
    name = report.nodeid.rpartition("::test_")[2].partition("@")[0].replace("_", " ")
    counts = [str(value) for key, value in report.user_properties if key == "counts"]
    measured = [str(value) for key, value in report.user_properties if key == "measured"]
    return (
        name + ("" if report.passed else f": {report.outcome.upper()}"),
        "; then ".join(counts),
        ", ".join(measured),
    )
