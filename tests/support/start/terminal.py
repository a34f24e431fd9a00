# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A shell into which a test pastes the commands of a page."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

# seconds; long, because only a command that hangs takes all of it
PASTE_TIMEOUT = 600.0
END_TIMEOUT = 60.0
_END = "end of the pasted block"
# permits the group to write, as on Ubuntu
_UMASK = 0o002
# each command has to succeed, and reads nothing from the shell's own input
_BLOCK = """\
trap 'failed=1' ERR
failed=0; eval "$(cat '{file}')" < /dev/null; trap - ERR; printf '\\n%s %s\\n' '{end}' "$failed"
"""


class Terminal:
    """A bash of a user; commands that it leaves in the background end with it.

    ``folder`` is its present folder; ``pasted``, another folder, which the user can read, has what is pasted.
    ``environment`` is its whole environment; ``account`` are arguments of subprocess for the user.
    """

    def __init__(self, folder: Path, pasted: Path, environment: Mapping[str, str], account: Mapping[str, Any]) -> None:
        self._pasted = pasted
        self._blocks = 0
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=_UMASK,
            start_new_session=True,
            **account,
        )

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.close()

    def paste(self, block: str, fails: bool = False) -> str:
        """Run a block of commands, and return its output; ``fails`` is True if one of them has to fail.

        Raises:
            AssertionError: a command failed, or none did although one has to; or the block did not end in time.
        """
        self._blocks += 1
        file = self._pasted / f"block-{self._blocks}"
        file.write_text(block, encoding="utf-8")
        file.chmod(0o644)
        assert self._process.stdin is not None
        self._process.stdin.write(_BLOCK.format(file=file, end=_END).encode())
        self._process.stdin.flush()
        output, _end, status = self._read().rpartition(f"\n{_END} ")
        if status.strip() != str(int(fails)):
            raise AssertionError(f"a command {'succeeded' if fails else 'failed'}\n{block}\n{output}")
        return output

    def close(self) -> None:
        """End the shell and every process that it has started."""
        try:
            processes = psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            processes = []
        for each in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.terminate()
        _ended, left = psutil.wait_procs(processes, END_TIMEOUT)
        for each in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.kill()
        self._process.communicate()

    def _read(self) -> str:
        """Return the output up to the end of the block."""
        output: Any = self._process.stdout
        data = b""
        until = time.monotonic() + PASTE_TIMEOUT
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while f"\n{_END} ".encode() not in data or not data.endswith(b"\n"):
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise AssertionError(f"the block did not end in {PASTE_TIMEOUT:g} s\n{data.decode()}")
                read = os.read(output.fileno(), 65536)
                if not read:
                    raise AssertionError(f"the shell ended\n{data.decode()}")
                data += read
        return data.decode()
