# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The folder of what every checkout of this user can share: environments, root file systems, downloads.

The name of each entry contains a hash of its inputs, so that checkouts with other inputs have entries of their own.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from support.repository import REPOSITORY


def caches() -> Path:
    """Return `$XDG_CACHE_HOME`, by default `~/.cache`, or `.cache/shared` of a user whose home cannot be written.

    The Makefile has the same rule: it installs before there is a Python.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    # the specification of XDG says that a relative path is ignored
    if os.path.isabs(named):
        return Path(named)
    with contextlib.suppress(OSError, RuntimeError):
        default = Path.home() / ".cache"
        default.mkdir(exist_ok=True)
        if os.access(default, os.W_OK):
            return default
    return REPOSITORY / ".cache" / "shared"


def shared_cache() -> Path:
    """Return the folder of this project in `caches()`."""
    return caches() / "azure-imds"


def entry(name: str, *inputs: object) -> Path:
    """Return the path of an entry that is made of these inputs; it may not exist yet."""
    digest = hashlib.sha256(json.dumps(inputs, default=str).encode()).hexdigest()
    return shared_cache() / f"{name}-{digest[:12]}"


@contextlib.contextmanager
def only_one(name: str) -> Iterator[None]:
    """Hold the lock of this name: no two processes make the same entry, or use apt-get, at the same time."""
    shared_cache().mkdir(parents=True, exist_ok=True)
    with (shared_cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
