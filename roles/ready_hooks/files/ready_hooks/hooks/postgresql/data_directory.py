# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The files of a data directory, read and written with the rights of the user who owns them.

The owner can put links, named pipes and endless files there. Therefore small programs that run as
the owner read and write them, within a time limit; this process, which is root, opens none.
"""

from __future__ import annotations

import base64

from ready_hooks.core import commands
from ready_hooks.core.deadline import Deadline
from ready_hooks.core.errors import HookError, OutOfTime

_MOST_BYTES = 1024 * 1024
# a file is also looked at when the time of the hook is over
_MOST_SECONDS, _LEAST_SECONDS = 10.0, 1.0


class DataDirectory:
    """The files of one data directory; `owner` is the user of the operating system who owns it."""

    def __init__(self, path: str, owner: str, deadline: Deadline) -> None:
        self.path, self._owner, self._deadline = path, owner, deadline

    def has(self, name: str) -> bool:
        """Return True if the file exists. Raises HookError."""
        return bool(self._run('if test -e "$1"; then echo yes; fi', name))

    def read(self, name: str) -> str:
        """Return the first line of a file, or "" if it does not exist. Raises HookError."""
        return self._run('if test -e "$1"; then head -c 100 -- "$1"; fi', name).partition("\n")[0].strip()

    def save(self, name: str) -> str:
        """Return the content of a file, in base64, for `restore`. Raises HookError."""
        content = "".join(self._run(f'test -r "$1" && head -c {_MOST_BYTES + 1} -- "$1" | base64', name).split())
        if len(base64.b64decode(content)) > _MOST_BYTES:
            raise HookError(f"{self.path}/{name}", f"it is larger than {_MOST_BYTES} bytes")
        return content

    def restore(self, name: str, content: str) -> None:
        """Write a file, and sync it. Raises HookError."""
        self._run('base64 -d >"$1" && sync -- "$1" .', name, content)

    def create(self, name: str) -> None:
        """Create an empty file unless it exists, and sync it. Raises HookError."""
        self._run('umask 077 && touch -- "$1" && sync -- "$1" .', name)

    def remove(self, name: str) -> None:
        """Remove a file if it exists, and sync that. Raises HookError."""
        self._run('rm -f -- "$1" && sync -- .', name)

    def _run(self, script: str, name: str, given: str = "") -> str:
        """Run a script of the shell for a file as the owner, in the directory, and return its output."""
        arguments = ["sh", "-c", f'cd -- "$0" && {{ {script}; }}', self.path, name]
        limit = Deadline(self._deadline.answer_limit(_MOST_SECONDS, _LEAST_SECONDS))
        path = f"{self.path}/{name}"
        try:
            result = commands.run(arguments, limit, given=given, environment={"LC_ALL": "C"}, user=self._owner)
        except OutOfTime:
            raise OutOfTime(path, "it cannot be read or written in time") from None
        if result.status != 0:
            problem = f"user {self._owner} cannot read or write it: {result.reason}"
            raise HookError(path, problem, "set user to the owner of the data directory")
        return result.output
