# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Make the committed pictures of docs/images: python -m tools.pictures [NAME...]; without a name, all of them.

A picture is a function of the code or of recorded data. Its module has the function
``pictures``, which returns the name of each file and its content.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tools.pictures import screenshots
from tools.pictures.dashboard import drawing as dashboard
from tools.pictures.names import chosen
from tools.pictures.picture_error import PictureError
from tools.pictures.states import drawing as states
from tools.pictures.time_lines import drawing as time_lines

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"

# name for the command line -> function that returns name of a file in docs/images -> its content
PICTURES: dict[str, Callable[[], Mapping[str, str | bytes]]] = {
    "time-lines": time_lines.pictures,
    "states": states.pictures,
    "dashboard": dashboard.pictures,
    "screenshots": screenshots.pictures,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures and return the exit code."""
    names = chosen("python -m tools.pictures", "Make the pictures of docs/images.", PICTURES, arguments)
    try:
        for name in names:
            for file, content in PICTURES[name]().items():
                data = content.encode() if isinstance(content, str) else content
                (IMAGES / file).write_bytes(data)
                print(f"docs/images/{file}: {len(data) // 1024 + 1} kB")
    except PictureError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
