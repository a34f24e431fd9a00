# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Record the runs of which pictures are drawn: python -m tools.pictures.record [NAME...]; by default, all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

from tools.pictures.dashboard import recording as metrics
from tools.pictures.names import chosen
from tools.pictures.picture_error import PictureError
from tools.pictures.time_lines.drawing import table
from tools.pictures.time_lines.recording import FOLDER, Recording
from tools.pictures.time_lines.runs import host, playbook, salt


def time_line(name: str, record: Callable[[], Recording]) -> str:
    """Record a run for a time line, and return its table for docs/time-lines.md."""
    recording = record()
    (FOLDER / f"{name}.json").write_text(recording.as_json(), encoding="utf-8")
    return f"the table of docs/time-lines.md:\n\n{table(recording)}"


# name for the command line -> function that records, writes the file, and returns a text for the operator
RECORDINGS: dict[str, Callable[[], str]] = {
    "host": partial(time_line, "host", host.record),
    "playbook": partial(time_line, "playbook", playbook.record),
    "salt": partial(time_line, "salt", salt.record),
    "dashboard": metrics.record,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the recordings and return the exit code."""
    names = chosen("python -m tools.pictures.record", "Record real runs.", RECORDINGS, arguments)
    try:
        for name in names:
            print(f"{name}: {RECORDINGS[name]()}")
    except PictureError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
