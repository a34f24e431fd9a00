# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A user with an empty home directory, for whom the repository's address leads to the present checkout."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.other_user import AS_USER, USER, folder_for_user, python_for_user
from support.repository import REPOSITORY
from support.start.terminal import Terminal
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
