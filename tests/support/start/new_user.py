# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A user with an empty home directory and a terminal, for whom the repository's address leads to the checkout."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import selectors
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from support.other_user import AS_USER, USER, folder_for_user, python_for_user
from support.repository import REPOSITORY
from support.wait import wait_until
from tools.repository.collection_tree import copy_tree

ADDRESS = "https://github.com/azure-imds/scheduled_events"
# settings of a machine's administrator for pip, Java and connections
_KEPT = (
    "PIP_",
    "JAVA_HOME",
    "SSL_CERT_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
# a user with a name, which some programs need
NAMED = {**AS_USER, **dict.fromkeys(["user", "group"] if AS_USER else [], pwd.getpwnam("nobody").pw_uid)}
_AUTHOR = ("-c", "user.name=Contributors", "-c", "user.email=contributors@example.com")
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
# the control API, and two VMs
PORTS = (8168, 8169, 8170)
# seconds; the tests of all pages may wait for one another
PORTS_TIMEOUT = 900.0


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


class NewUser(NamedTuple):
    """A home directory, a folder for pasted commands, the environment, and arguments of subprocess for the user.

    Attributes:
        origin: the repository that the user reaches by its public address.
    """

    home: Path
    pasted: Path
    environment: dict[str, str]
    account: Mapping[str, Any]
    origin: Path

    def terminal(self) -> Terminal:
        """Open a terminal in the home directory."""
        return Terminal(self.home, self.pasted, self.environment, self.account)


@contextlib.contextmanager
def new_user(requirement: str, account: Mapping[str, Any] | None = None) -> Iterator[NewUser]:
    """Make the user, whose python3 meets the requirement and has venv.

    ``requirement`` is an expression of Python. ``account`` are arguments of subprocess for the user; by default
    those of a user without a name.
    """
    account = AS_USER if account is None else account
    owner = account.get("user", USER)
    python = python_for_user(f"{requirement} and __import__('ensurepip')")
    if python is None:
        pytest.skip(f"the user has no Python with ensurepip and {requirement}")
    with folder_for_user() as folder:
        home, pasted, programs = (folder / name for name in ("you", "pasted", "bin"))
        for made in (home, pasted, programs):
            made.mkdir(mode=0o755)
        (programs / "python3").symlink_to(python)
        origin = commit_checkout(folder / "origin", owner)
        (home / ".gitconfig").write_text(f'[url "{origin.as_uri()}"]\n\tinsteadOf = {ADDRESS}\n', encoding="utf-8")
        for owned in (home, home / ".gitconfig"):
            os.chown(owned, owner, -1)
        path = os.pathsep.join([str(programs), "/usr/local/bin", "/usr/bin", "/bin"])
        given = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
        given |= {"HOME": str(home), "PATH": path, "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8"}
        yield NewUser(home, pasted, given, account, origin)


def commit_checkout(folder: Path, owner: int) -> Path:
    """Make a repository with the files of the checkout in one commit, and return its folder."""
    repository = copy_tree(REPOSITORY, folder)
    for command in (["add", "--all"], [*_AUTHOR, "commit", "--quiet", "--message", "the present checkout"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    for here, folders, files in os.walk(repository):
        for name in (".", *folders, *files):
            os.chown(os.path.join(here, name), owner, -1, follow_symlinks=False)
    return repository


@contextlib.contextmanager
def default_ports() -> Iterator[None]:
    """Reserve the ports; other tests that call this wait. AssertionError if another program listens on one."""
    lock = Path(tempfile.gettempdir(), f"imds-simulator-default-ports-{os.geteuid()}")
    with lock.open("w") as file:
        wait_until(lambda: _is_locked(file.fileno()), "the lock of the default ports", timeout=PORTS_TIMEOUT, pause=0.2)
        wait_until(lambda: all(map(_is_free, PORTS)), f"ports {PORTS} are free; end the program that listens there")
        yield


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) != 0
