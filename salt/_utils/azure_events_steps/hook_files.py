# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The files of the ready hooks on this minion: those of the installed package, or a copy of the master's.

The copy is a complete version of all files in a folder of its own. It is replaced as a whole, and
remains while the master does not answer, and after a reboot.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from typing import Callable, Iterator, Mapping

from azure_events_watch import durable_file, state_file

from . import lock
from .configuration import FUNCTION, Step
from .execution.results import DONE
from .execution.step_runner import run_step

PACKAGE = "ready_hooks"
MAIN = "__main__.py"
# seconds for the transfer of the files: in a preparation with an older copy, and else
REFRESH_TIMEOUT = 5.0
FIRST_TIMEOUT = 60.0

_LOCK = "hooks.lock"
# the link to the folder with the present version, the beginning of the names of such folders, and an incomplete one
_CURRENT, _VERSION, _NEW = "hooks", "hooks-", "hooks-new"
_FILE_NAME = re.compile(r"(?:[A-Za-z0-9_]+/)*[A-Za-z0-9_]+\.py")

# returns the path on this minion of each file that the master has, by its name below the package
Fetch = Callable[[], Mapping[str, str]]


class HookFiles:
    """The files of the ready hooks.

    Args:
        cachedir: the minion's cachedir.
        installed: folder of the package's files; it may not exist.
        fetch: transfers the master's files; it is called in a process of its own.
        refresh_timeout: seconds for an urgent transfer if there is a copy.
        first_timeout: seconds for any other transfer.
    """

    def __init__(
        self,
        cachedir: str,
        installed: str,
        fetch: Fetch,
        refresh_timeout: float = REFRESH_TIMEOUT,
        first_timeout: float = FIRST_TIMEOUT,
    ) -> None:
        self._cachedir = cachedir
        self._folder = state_file.folder(cachedir)
        self._installed = os.path.join(installed, PACKAGE)
        self._fetch = fetch
        self._refresh_timeout, self._first_timeout = refresh_timeout, first_timeout

    def find(self) -> str | None:
        """Return the folder that Python runs, or None if the minion has no complete version."""
        if os.path.isfile(os.path.join(self._installed, MAIN)):
            return self._installed
        version = os.path.realpath(os.path.join(self._folder, _CURRENT))
        folder = os.path.join(version, PACKAGE)
        try:
            contents = {name: _read(os.path.join(folder, name)) for name in _names_below(folder)}
        except OSError:
            return None
        return folder if contents and os.path.basename(version) == _VERSION + _digest(contents) else None

    def refresh(self, urgent: bool = True) -> str:
        """Replace the copy by the files of the master; return why that failed, or "".

        The installed package needs no copy. Without an answer of the master the function returns
        after the timeout. ``urgent`` means that an older copy is better than a wait of more than the
        refresh_timeout.
        """
        found = self.find()
        if found == self._installed:
            return ""
        timeout = self._refresh_timeout if urgent and found is not None else self._first_timeout
        step = Step("transfer of the ready hooks", FUNCTION, "cp.cache_dir", (), {}, {}, timeout)
        result = run_step(step, {}, lambda _step, _variables: self._replace(timeout))
        return "" if result.outcome == DONE else result.output

    def _replace(self, timeout: float) -> tuple[bool, str]:
        """Transfer and publish the files, in a process of its own."""
        state_file.ensure_directory(self._cachedir)
        with lock.acquire(self._folder, _LOCK, timeout) as held:
            if held is None:
                return False, "another job transfers them"
            contents = {name: _read(path) for name, path in self._fetch().items() if _FILE_NAME.fullmatch(name)}
            if MAIN not in contents:
                return False, "the master has no such files; its file roots lack azure_events/hooks of this project"
            self._publish(contents)
        return True, ""

    def _publish(self, contents: Mapping[str, bytes]) -> None:
        version = _VERSION + _digest(contents)
        link = os.path.join(self._folder, _CURRENT)
        before = os.path.basename(os.path.realpath(link))
        if before == version and self.find() is not None:
            return
        new = os.path.join(self._folder, _NEW)
        # a transfer was killed
        shutil.rmtree(new, ignore_errors=True)
        os.mkdir(new, 0o700)
        target = os.path.join(self._folder, version)
        try:
            for name, content in contents.items():
                file = os.path.join(new, PACKAGE, name)
                os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
                durable_file.create(file, content)
            for folder, _folders, _files in os.walk(new):
                durable_file.sync_folder(folder)
            # a folder of that name is damaged
            shutil.rmtree(target, ignore_errors=True)
            os.rename(new, target)
        finally:
            # on a full disk a part would take the space of the minion's record
            shutil.rmtree(new, ignore_errors=True)
        with durable_file.replacing(link) as draft:
            os.symlink(version, draft)
        # a job may still run the version before
        for name in os.listdir(self._folder):
            if name.startswith(_VERSION) and name not in (version, before):
                shutil.rmtree(os.path.join(self._folder, name), ignore_errors=True)


def _digest(contents: Mapping[str, bytes]) -> str:
    found = hashlib.sha256()
    for name in sorted(contents):
        found.update(f"{name} {len(contents[name])}\n".encode())
        found.update(contents[name])
    return found.hexdigest()[:20]


def _names_below(folder: str) -> Iterator[str]:
    """Yield the names of the files below a folder, with "/" between levels."""
    for here, _folders, files in os.walk(folder):
        for name in files:
            yield os.path.relpath(os.path.join(here, name), folder).replace(os.sep, "/")


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
