# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""docs/ready-hooks/redis.md as printed, through one event."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.ready_hooks import page
from support.ready_hooks.printed_play import printed_play
from support.ready_hooks.redis_pair import PASSWORD, RedisPair, Writer
from support.ready_hooks.workload_host import WorkloadHost

pytestmark = pytest.mark.all


def test_printed_play_fails_over_for_an_event(workload_host: Callable[[str], WorkloadHost], tmp_path: Path) -> None:
    hosts = [workload_host(name) for name in ("redis1", "redis2")]
    (entry,) = page.entries("redis")
    pair = RedisPair(*hosts)
    pair.start()
    for host in hosts:
        for other in hosts:
            host.shell(f"echo {other.host.address} {other.host.name}.example >>/etc/hosts")
        host.write(entry["password_file"], PASSWORD, 0o600)
    with printed_play("redis", tmp_path, *hosts) as play:
        play.apply()
        with Writer(pair) as writer:
            writer.wait_for_more()
            play.prepare("Reboot", vm="redis1")
            assert pair.master() == pair.second.host.address
            writer.wait_for_more()
        assert writer.lost(pair.second) == []
        play.recover()
        assert pair.instance(pair.first).link_is_up
        assert pair.first.record("redis") is None
    pair.stop()
