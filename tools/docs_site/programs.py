# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run the programs of antsibull, which .venv contains."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools.docs_site.source_error import SourceError


def run_program(name: str, *arguments: str | Path, collection: Path, folder: Path) -> None:
    """Run a program to its end in the working directory `folder`; raise SourceError if it failed.

    `collection` is the copy of the collection that Ansible finds.
    """
    ended = subprocess.run(
        [programs() / name, *arguments],
        cwd=folder,
        env=environment(collection),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if ended.returncode:
        output = ended.stdout.replace(f"{collection}/", "").strip()
        raise SourceError(f"{name}: failed with exit status {ended.returncode}; correct its input\n{output}")


def programs() -> Path:
    """Return the folder of the programs of this Python."""
    return Path(sys.executable).parent


def environment(collection: Path) -> dict[str, str]:
    """Return environment variables with which the tools of Ansible find their programs and the collection."""
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(programs()), os.environ.get("PATH", os.defpath)]),
        "ANSIBLE_COLLECTIONS_PATH": str(collection.parents[2]),
    }
