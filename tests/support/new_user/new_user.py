# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A user other than root with an empty home folder, and shells of this user."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.new_user.shell import Shell
from support.other_user import python_for_user
from support.repository import REPOSITORY
from tools.repository.collection_tree import copy_tree

USER = pwd.getpwnam("nobody")
AS_USER = ("setpriv", f"--reuid={USER.pw_uid}", f"--regid={USER.pw_gid}", "--clear-groups", "--")
# the names of the machines on the pages are this machine
OWN_NETWORK = ("unshare", "--net", "--mount", "--", "sh", "-ec")
IN_OWN_NETWORK = 'ip link set lo up; mount --bind "$0" /etc/hosts; exec "$@"'
HOSTS = "127.0.0.1 localhost linux1\n"
# what pip needs on this machine
KEPT = ("PIP_", "SSL_", "REQUESTS_", "HTTP_", "HTTPS_", "NO_PROXY", "http_", "https_", "no_proxy")
SOURCE = "https://github.com/azure-imds/scheduled_events"


class NewUser:
    """A user whose git gets this checkout in place of the public repository.

    Attributes:
        home: the home folder.
        checkout: a copy of this checkout that the user can read.
    """

    def __init__(self, folder: Path, python: Path) -> None:
        self.home = folder / "you"
        self.home.mkdir()
        self.checkout = committed_copy(folder / "tree")
        self._hosts = folder / "hosts"
        self._hosts.write_text(HOSTS)
        redirect = f'[url "file://{self.checkout}"]\n\tinsteadOf = {SOURCE}\n'
        (self.home / ".gitconfig").write_text(f"[safe]\n\tdirectory = *\n{redirect}")
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.program("python3", f'exec {python} "$@"')
        for path in (self.home, self.home / ".gitconfig"):
            os.chown(path, USER.pw_uid, USER.pw_gid)

    def program(self, name: str, script: str) -> None:
        """Put a program in front of those of the system."""
        (self.programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.programs / name).chmod(0o755)

    @contextlib.contextmanager
    def shell(self, network: bool, variables: Mapping[str, str] | None = None) -> Iterator[Shell]:
        """Start a login shell in the home folder.

        Args:
            network: whether it has that of this machine, or one of its own in which all ports are free.
            variables: further environment variables.
        """
        environment = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        path = f"{self.programs}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        environment |= {"HOME": str(self.home), "PATH": path, "LC_ALL": "C.UTF-8", **(variables or {})}
        command = [*AS_USER, "bash"]
        if not network:
            command = [*OWN_NETWORK, IN_OWN_NETWORK, str(self._hosts), *command]
        with Shell(command, self.home, environment) as shell:
            yield shell


def committed_copy(folder: Path) -> Path:
    """Return a repository with the files of this checkout in one commit."""
    copy = copy_tree(REPOSITORY, folder)
    author = ("-c", "user.name=test", "-c", "user.email=test")
    for words in (("add", "--all"), (*author, "commit", "--quiet", "--message=test")):
        subprocess.run(["git", *words], cwd=copy, check=True, capture_output=True)
    return copy


@contextlib.contextmanager
def new_user(oldest: tuple[int, int]) -> Iterator[NewUser]:
    """Create a user who has a Python of at least this version; skip where this is impossible."""
    if sys.platform != "linux" or os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "ip"))):
        pytest.skip("another user with a network of its own needs root, unshare, setpriv and ip")
    python = python_for_user(f"sys.version_info >= {oldest} and bool(__import__('ensurepip').version())")
    if python is None:
        pytest.skip("other users have no Python of version {}.{} with venv".format(*oldest))
    # short, because Salt has sockets below it
    with tempfile.TemporaryDirectory(prefix="new-") as name:
        os.chmod(name, 0o755)
        yield NewUser(Path(name), python)
