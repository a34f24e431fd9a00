# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Check prose by docs/style.md: PYTHONPATH=. python -m tools.prose [FILE ...]."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tools.prose.linter import check, files_with_prose
from tools.prose.vocabulary import load

REPOSITORY = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str]) -> int:
    """Print the findings in the given files, or in all; return 1 if there are any."""
    given = [Path(argument).resolve().relative_to(REPOSITORY) for argument in arguments]
    found = check(REPOSITORY, given or files_with_prose(REPOSITORY), load()).findings
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
