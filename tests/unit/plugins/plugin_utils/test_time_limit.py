# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._time_limit import (
    TimeLimitExceeded,
    kill_children,
    time_limit,
)


def test_call_that_hangs_is_interrupted():
    reader, writer = os.pipe()
    try:
        with pytest.raises(TimeLimitExceeded), time_limit(0.05):
            try:
                os.read(reader, 1)
            except Exception:
                pytest.fail("code that handles its own errors has handled the limit")
    finally:
        os.close(reader)
        os.close(writer)


def test_limit_ends_with_the_block():
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(60):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0) and signal.getsignal(signal.SIGALRM) == before


def test_limit_keeps_the_alarm_of_the_task():
    alarms = []
    previous = signal.signal(signal.SIGALRM, lambda *_: alarms.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 100)
        with pytest.raises(TimeLimitExceeded), time_limit(0.05):
            time.sleep(30)
        assert 60 < signal.getitimer(signal.ITIMER_REAL)[0] < 100
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with time_limit(50):
            time.sleep(0.1)
        assert alarms == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.skipif(
    not os.path.exists(f"/proc/self/task/{os.getpid()}/children"), reason="only Linux lists the children of a process"
)
def test_children_are_killed():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        kill_children()
        assert child.wait(60) == -signal.SIGKILL
