# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The benchmarks find what they import when they are started as their pages print it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import REPOSITORY

BENCHMARKS = sorted((REPOSITORY / "tests" / "bench").glob("bench_*.py"))
# as Python starts a program, but without its work
IMPORT = "import runpy, sys; sys.path[0] = sys.argv[2]; runpy.run_path(sys.argv[1], run_name='imported')"


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda path: path.stem)
def test_benchmark_starts_without_pythonpath(benchmark: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", IMPORT, str(benchmark), str(benchmark.parent)]
    ended = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
