# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A shell into which a test pastes the blocks of a page."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# seconds for one block; an installation may be slow
LIMIT = 580.0
# folder and variables stay as a block leaves them; a failing command ends the shell
PASTE = 'eval "$(cat {block})" <{answers} >{output} 2>&1; touch {done}\n'


class Shell:
    """A bash whose folder, variables and background jobs stay from one block to the next."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._exchange = Path(tempfile.mkdtemp(prefix="shell-"))
        self._exchange.chmod(0o777)
        self._blocks = 0
        self._process = subprocess.Popen(
            [*command, "-e"], cwd=folder, env=dict(environment), stdin=subprocess.PIPE, start_new_session=True, text=True
        )

    def paste(self, block: str, answers: str = "") -> str:
        """Run all lines of a block, and return what they printed.

        Args:
            block: the lines.
            answers: lines for commands that read from the terminal.

        Raises:
            AssertionError: a command failed, or the block took too long.
        """
        self._blocks += 1
        names = ("block", "answers", "output", "done")
        files = {name: self._exchange / f"{self._blocks}-{name}" for name in names}
        files["block"].write_text(block)
        files["answers"].write_text(answers)
        assert self._process.stdin
        self._process.stdin.write(PASTE.format(**files))
        self._process.stdin.flush()
        end = time.monotonic() + LIMIT
        while not files["done"].exists():
            failed = self._process.poll() is not None or time.monotonic() > end
            assert not failed, f"a command of this block failed:\n{block}\n{files['output'].read_text()}"
            time.sleep(0.02)
        return files["output"].read_text()

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *exc_info: object) -> None:
        # also what the shell has left running
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(60)
        for file in self._exchange.iterdir():
            file.unlink()
        self._exchange.rmdir()
