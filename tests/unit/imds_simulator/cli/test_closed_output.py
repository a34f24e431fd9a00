# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Commands whose reader has gone, as after ``| head``: no traceback, and the exit code of SIGPIPE."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from support import simulator_process

SIGPIPE = 141


def run_without_reader(*arguments: str, stream: str = "stdout", **env: str) -> tuple[int, str]:
    """Run a command whose stdout, or stderr, has no reader; return the exit code and the other stream."""
    reader, writer = os.pipe()
    os.close(reader)
    other = "stderr" if stream == "stdout" else "stdout"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "imds_simulator", *arguments],
            stdin=subprocess.DEVNULL,
            **{stream: writer, other: subprocess.PIPE},
            text=True,
            timeout=60,
            check=False,
            # buffered, as usual: then the error comes at the end of the process
            env={**simulator_process.environment(), "PYTHONUNBUFFERED": "", **env},
        )
    finally:
        os.close(writer)
    return done.returncode, getattr(done, other)


@pytest.mark.parametrize(
    "arguments",
    [["--schema"], ["--list-scenarios"], ["--list-knobs"], ["--list-faults"], ["--check", "terminate"]],
)
def test_printing_option_survives_a_reader_that_has_gone(arguments):
    assert run_without_reader(*arguments) == (SIGPIPE, "")


def test_help_has_no_traceback_without_a_reader():
    # argparse of some Pythons ignores the error, and the exit code is 0
    code, errors = run_without_reader("--help")
    assert errors == "" and code in (0, SIGPIPE)


def test_check_survives_a_reader_of_its_problems_that_has_gone(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("groups: {web: {vms: {vm1: }}}\nevents:\n" + "  - {type: Freez, resources: [vm1]}\n" * 500)
    assert run_without_reader("--check", str(bad), stream="stderr") == (SIGPIPE, "")


def test_verb_survives_a_reader_that_has_gone_and_takes_effect(frozen_simulator):
    control = {"IMDS_SIMULATOR_CONTROL": frozen_simulator.control}
    arguments = ("schedule", "--name", "piped", "--type", "Freeze", "--resources", "vm1")
    assert run_without_reader(*arguments, **control) == (SIGPIPE, "")
    assert frozen_simulator.get("/events/piped")["type"] == "Freeze"
    assert run_without_reader("requests", **control) == (SIGPIPE, "")
    assert run_without_reader("approve", "nothing", stream="stderr", **control) == (SIGPIPE, "")


def test_command_without_stdout_prints_nothing():
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "imds_simulator", "--schema"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        env=simulator_process.environment(),
    )
    assert (done.returncode, done.stderr) == (0, "")
