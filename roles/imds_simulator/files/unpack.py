# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Make a directory equal to the files of a JSON object {path: content} from stdin.

    unpack.py DIRECTORY [--check] < bundle.json

The roles of this collection use it because a task that copies seventy files one by one takes more
than a minute. Prints each path that it wrote or removed; no output means that nothing differed.
Removes files below DIRECTORY that are not in the bundle and, if anything differed, compiled Python
files. With --check it only prints the paths.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

COMPILED = "__pycache__"


def unpack(directory: Path, files: Mapping[str, str], check: bool) -> list[str]:
    """Make ``directory`` equal to ``files`` and return the paths that differed.

    ``files``: path -> content.

    With ``check`` nothing is changed.
    """
    differing = [path for path, content in files.items() if not _holds(directory / path, content)]
    there = [file for file in directory.rglob("*") if file.is_file() and COMPILED not in file.parts]
    stale = [file for file in there if str(file.relative_to(directory)) not in files]
    if not check and (differing or stale):
        for folder in list(directory.rglob(COMPILED)):
            shutil.rmtree(folder)
        for path in differing:
            _write(directory / path, files[path])
        for file in stale:
            file.unlink()
    return differing + [str(file.relative_to(directory)) for file in stale]


def _holds(file: Path, content: str) -> bool:
    return file.is_file() and file.read_bytes() == content.encode() and file.stat().st_mode & 0o777 == 0o644


def _write(file: Path, content: str) -> None:
    file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    fresh = file.with_name(file.name + ".new")
    fresh.write_bytes(content.encode())
    fresh.chmod(0o644)
    os.replace(fresh, file)


if __name__ == "__main__":
    os.umask(0o022)
    for line in unpack(Path(sys.argv[1]), json.load(sys.stdin), "--check" in sys.argv[2:]):
        print(line)
