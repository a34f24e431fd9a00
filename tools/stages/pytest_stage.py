# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages that plain pytest runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.junit import read_junit
from tools.stage import Job, Outcome, Skip

NO_TESTS_COLLECTED = 5


def pytest_folder(
    job: Job,
    folder: str,
    *,
    options: Sequence[str] = (),
    prefix: Sequence[str] = (),
    results: str = "",
    python: Path | None = None,
    env: Mapping[str, str] | None = None,
    limit: float = 1800,
) -> Outcome:
    """Run the tests of tests/FOLDER.

    Args:
        job: the job of the stage.
        folder: the folder below tests/; several, separated by spaces, are one run of pytest.
        options: options of pytest.
        prefix: a command that runs the command behind it, such as unshare.
        results: the name of the JUnit file; made of the folder if it is empty.
        python: a Python that has pytest; that of .venv by default.
        env: further environment variables.
        limit: seconds until the run is ended.
    """
    folders = [f"tests/{name}" for name in folder.split()]
    report = job.environment.cache / "results" / f"{results or folder.replace('/', '-')}.xml"
    report.unlink(missing_ok=True)
    tests = ("-m", "pytest", *folders, "-q", "-rs", f"--junitxml={report}")
    status = job.run(*prefix, python or job.environment.python, *tests, *options, env=env, limit=limit)
    if status == NO_TESTS_COLLECTED:
        raise Skip(f"{' '.join(folders)}: no tests")
    return read_junit(report, status)
