# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A hook as a child of the daemon, in a session of its own, where systemd cannot run it. It ends with the daemon."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import subprocess
import time

from hook_runner.hooks.one_run import LINES_PER_SECOND, OUTPUT_TAIL, Run, RunOrder, RunResult, tail_of
from hook_runner.log import with_fields

log = logging.getLogger(__name__)

CHUNK_SIZE = 65536
# pieces of output that are read at once: a hook that writes without end must not hold the daemon up
CHUNKS = 16
MAX_LINE = 1300
# waits for the end of the daemon, also by kill -9: the next one may run the hook again
_GUARD = 'read -r group; read -r _; kill -KILL "-$group"'
_Process = subprocess.Popen[bytes]


class ChildRun(Run):
    """A hook that runs as a child; make it with `start`. Its output goes to the log of the daemon."""

    def __init__(self, order: RunOrder, ends: select.epoll, process: _Process, guard: _Process, output: int) -> None:
        super().__init__(ends)
        self.kill_after = order.kill_after
        self._watch(output)
        self._watch_process(process.pid)
        self._label = f"{order.hook.stage}/{order.hook.name}"
        self._event_id = order.environment.get("EVENT_ID", "")
        self._process = process
        self._output = output
        self._guard = guard
        self._began = time.monotonic()
        self._tail = self._line = b""
        self._second, self._left = 0, 0

    @classmethod
    def start(cls, order: RunOrder, ends: select.epoll) -> ChildRun:
        """Start the hook. Raises OSError if it cannot be started."""
        # it begins before the hook, and learns its process group a moment later
        words, pipe, null = ["/bin/sh", "-c", _GUARD], subprocess.PIPE, subprocess.DEVNULL
        guard = subprocess.Popen(words, 0, stdin=pipe, stdout=null, stderr=null, env={}, start_new_session=True)
        output = -1
        try:
            output, writer = os.pipe()
            os.set_blocking(output, False)
            # in memory: there may be no room for a file
            with open(writer, "wb"), open(os.memfd_create("input"), "w+b") as given:
                given.write(order.input)
                given.seek(0)
                process = subprocess.Popen(
                    [order.hook.path],
                    stdin=given,
                    stdout=writer,
                    stderr=writer,
                    cwd="/",
                    env={name: value.encode("utf-8", "backslashreplace") for name, value in order.environment.items()},
                    start_new_session=True,
                    umask=0o022,
                )
        except (OSError, ValueError) as error:
            if output != -1:
                os.close(output)
            with guard:
                guard.kill()
            raise OSError(str(error)) from error
        assert guard.stdin is not None
        with contextlib.suppress(OSError):  # the guard was killed; the hook goes on
            guard.stdin.write(b"%d\n" % process.pid)
        return cls(order, ends, process, guard, output)

    def look(self) -> RunResult | None:
        """Read what it has written; return the result if it has ended."""
        self._read()
        # the number of the process stays its own until it is waited for
        if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        self.signal(signal.SIGKILL)
        self._read()
        if self._line:
            self._log(b"\n")
        self._close(*self.descriptors)
        with self._guard:
            self._guard.kill()
        return RunResult(self._process.wait(), tail_of(self._tail), time.monotonic() - self._began)

    def signal(self, number: int) -> None:
        """Send a signal to its process group."""
        with contextlib.suppress(OSError):  # it has ended, or has left its group
            os.killpg(self._process.pid, number)

    def _read(self) -> None:
        for _piece in range(CHUNKS if self._output in self.descriptors else 0):
            try:
                chunk = os.read(self._output, CHUNK_SIZE)
            except BlockingIOError:
                return
            if not chunk:
                self._close(self._output)
                return
            self._tail = (self._tail + chunk)[-OUTPUT_TAIL:]
            self._log(chunk)

    def _log(self, chunk: bytes) -> None:
        """Log the complete lines of a chunk, up to a limit in each second; keep an incomplete one for the next."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._left = second, LINES_PER_SECOND
        if not self._left:
            return
        *lines, self._line = (self._line + chunk).split(b"\n", self._left)
        self._left -= len(lines)
        if not self._left:
            lines[-1], self._line = b"further lines of this second are dropped", b""
        self._line = self._line[:MAX_LINE]
        for line in lines:
            text = line[:MAX_LINE].decode("utf-8", "replace")
            log.info("%s: %s", self._label, text, extra=with_fields(azure_event_id=self._event_id))
