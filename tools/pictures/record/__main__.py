# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Record the runs of which the time lines are drawn: python -m tools.pictures.record [NAME...]; by default, all."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from tools.pictures.record import host, playbook, salt
from tools.pictures.recording import FOLDER, Recording
from tools.pictures.time_lines import table

RECORDINGS: dict[str, Callable[[], Recording]] = {
    "host": host.record,
    "playbook": playbook.record,
    "salt": salt.record,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the recordings and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures.record", description="Record real runs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(RECORDINGS)}; by default, all")
    names = parser.parse_args(arguments).names or list(RECORDINGS)
    unknown = [name for name in names if name not in RECORDINGS]
    if unknown:
        parser.error(f"{unknown[0]}: not a recording; use one of: {', '.join(RECORDINGS)}")
    for name in names:
        recording = RECORDINGS[name]()
        (FOLDER / f"{name}.json").write_text(recording.as_json(), encoding="utf-8")
        print(f"tools/pictures/recorded/{name}.json; the table of docs/time-lines.md:\n\n{table(recording)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
