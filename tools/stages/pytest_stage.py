# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages that plain pytest runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools.junit import read_junit
from tools.stage import Job, Outcome, Skip

NO_TESTS_COLLECTED = 5


def pytest_folder(
    job: Job,
    folder: str,
    *options: str,
    prefix: tuple[str, ...] = (),
    results: str = "",
    python: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Outcome:
    """Run the tests of tests/FOLDER.

    `prefix` is a command that runs the rest of its words, such as unshare; `results` names what a
    second run leaves; `python` has a pytest of its own.
    """
    if not (job.workshop.repository / "tests" / folder).is_dir():
        raise Skip(f"there is no tests/{folder}")
    report = job.workshop.cache / "results" / f"{results or folder.replace('/', '-')}.xml"
    report.unlink(missing_ok=True)
    tests = ("-m", "pytest", f"tests/{folder}", "-q", "-rs", f"--junitxml={report}")
    status = job.run(*prefix, python or job.workshop.python, *tests, *options, env=env)
    if status == NO_TESTS_COLLECTED:
        raise Skip(f"tests/{folder} has no tests")
    return read_junit(report, status)
