# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The names on the command lines of this package."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence


def chosen(program: str, description: str, known: Collection[str], arguments: Sequence[str] | None) -> list[str]:
    """Return the names that a command line gives, or all known ones if it gives none.

    Args:
        program: the command, for messages.
        description: for the help of the command.
        known: the possible names.
        arguments: the command line; None for that of the process.

    Raises:
        SystemExit: the command line asks for help, or has an unknown name.
    """
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(known)}; by default, all")
    names = parser.parse_args(arguments).names or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"{unknown[0]}: unknown name; use one of: {', '.join(known)}")
    return names
