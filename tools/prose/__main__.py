# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Check prose by docs/style.md: PYTHONPATH=. python -m tools.prose [FILE or FOLDER ...]."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tools.prose.linter import check, files_with_prose
from tools.prose.vocabulary import load

REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str]) -> int:
    """Print the findings in the given files and folders, or in all; return 1 if there are any, 2 for a wrong path."""
    given = [Path(argument).resolve() for argument in arguments] or [REPOSITORY]
    names = [name for name in files_with_prose(REPOSITORY) if is_in(REPOSITORY / name, given)]
    if not names:
        print(f"{' '.join(arguments)}: no Markdown, Python or YAML file of this repository; name one", file=sys.stderr)
        return 2
    found = check(REPOSITORY, names, load()).findings
    for finding in found:
        print(finding)
    return 1 if found else 0


def is_in(file: Path, places: Sequence[Path]) -> bool:
    """Return True if a file is one of the places, or in one of them."""
    return any(place in (file, *file.parents) for place in places)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
