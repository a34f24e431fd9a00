# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""YAML that another process reads is what it would be here, and a process that gets stuck is not waited for."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from azure_scheduled_events.yaml_lines import load_with_lines
from hook_runner.config import yaml_subprocess

TEXT = "interval: 2\nhooks:\n  10-a: {timeout: 5}\n" + "".join(f"x{number}: y\n" for number in range(20000))


@pytest.mark.parametrize("text", ["", TEXT], ids=["empty", "large"])
def test_it_is_the_same(text: str) -> None:
    assert yaml_subprocess.load_in_subprocess(text, "config.yml", "configuration") == load_with_lines(
        text, "config.yml", "configuration"
    )


@pytest.mark.parametrize("half", [b"", b"half"])
def test_a_child_that_gets_stuck_is_ended_and_the_file_is_read_here(
    half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    children = []
    fork = os.fork

    def remember() -> int:
        children.append(fork())
        return children[-1]

    def stuck(writer: int, *arguments: Any) -> None:
        os.write(writer, half)
        time.sleep(600)
        os._exit(0)

    monkeypatch.setattr(os, "fork", remember)
    monkeypatch.setattr(yaml_subprocess, "_read_in_child", stuck)
    monkeypatch.setattr(yaml_subprocess, "CHILD_TIMEOUT", 0.3)
    before = os.listdir("/proc/self/fd")
    assert yaml_subprocess.load_in_subprocess("interval: 2\n", "config.yml", "configuration") == load_with_lines(
        "interval: 2\n", "config.yml", "configuration"
    )
    assert os.listdir("/proc/self/fd") == before
    with pytest.raises(ProcessLookupError):
        os.kill(children[0], 0)
