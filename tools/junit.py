# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Counts in the JUnit files that pytest and ansible-test write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from tools.stage import Outcome


def read_junit(path: Path, status: int) -> Outcome:
    """Return the counts of a file, or of all files of a folder.

    An exit status other than 0 counts as a failed test if no file contains a failure.
    """
    outcome = Outcome()
    for file in sorted(path.glob("*.xml")) if path.is_dir() else [path] if path.exists() else []:
        for suite in ElementTree.parse(file).getroot().iter("testsuite"):
            outcome += suite_outcome(suite)
    return outcome + Outcome(failed=1) if status and not outcome.failed else outcome


def suite_outcome(suite: ElementTree.Element) -> Outcome:
    """Return the counts of one test suite, the reasons of skipped tests, and the failures."""
    total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    reasons = [mark.get("message", "") for mark in suite.iter("skipped")]
    return Outcome(
        max(0, total - skipped - failed),
        failed,
        skipped,
        tuple(dict.fromkeys(filter(None, reasons))),
        tuple(failures_in(suite)),
    )


def failures_in(suite: ElementTree.Element) -> Iterator[str]:
    """Return each failed test with the first line of its message and the comparison that failed."""
    for case in suite.iter("testcase"):
        for mark in case:
            if mark.tag in ("failure", "error"):
                lines = (mark.get("message") or mark.text or "").strip().splitlines() or [""]
                # pytest prints the comparison after the message of the assertion, which may have several lines
                compared = [line for line in lines[1:] if line.startswith("assert ")]
                test = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
                yield f"{test}: {' '.join(lines[:1] + compared[:1])}"
