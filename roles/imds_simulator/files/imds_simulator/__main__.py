# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The commands ``imds-simulator`` and ``python3 -m imds_simulator``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .cli.output import fail, survive_closed_output

_LIBRARIES = "aiohttp, click and PyYAML"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run with ``arguments`` (default: those of the process) and return the exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    return survive_closed_output(lambda: _run(argv))


def _run(argv: Sequence[str]) -> int:
    try:
        from .cli.commands import dispatch

        return dispatch(argv)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("", __package__):
            raise
        if library == "fcntl":
            fail(f"{argv[0]}: not on {sys.platform}; use Linux, or WSL on Windows")
        fail(f"{sys.executable}: there is no library {library}; install {_LIBRARIES}")


if __name__ == "__main__":
    sys.exit(main())
