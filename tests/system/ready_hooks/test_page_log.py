# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/ready-hooks/log.md as printed, through one event."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from support.ready_hooks import page
from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.workload_host import WorkloadHost
from support.recipes.printed import COMMAND, printed_in

pytestmark = pytest.mark.all

DOCUMENT = "docs/ready-hooks/log.md"


def test_printed_play_logs_an_event(workload_host: Callable[[str], WorkloadHost], tmp_path: Path) -> None:
    host = workload_host("web1")
    (entry,) = page.entries("log")
    printed = printed_in(DOCUMENT)
    (example,) = [json.loads(block.text) for block in printed if block.language == "json"]
    with printed_play("log", tmp_path, host) as play:
        play.apply()
        event_id = play.prepare("Redeploy")
        play.recover()
        written = [json.loads(line) for line in host.shell(f"cat {entry['file']}").splitlines()]
        assert [line["event_id"] for line in written] == [event_id] * len(written)
        assert (written[0]["stage"], written[-1]["stage"]) == ("prepare", "recover")
        assert list(written[-1]) == list(example)
        host.run("journalctl", "--sync")
        for command in (block.text for block in printed if block.kind == COMMAND):
            assert event_id in host.run(*shlex.split(command), "--output", "json").stdout
    host.shell(f"rm -f {entry['file']}; journalctl --rotate --vacuum-time=1us --quiet")
