# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Parses arguments, and names the remedy for an option that does not exist."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..suggestions import suggestion
from .removed import REMOVED_OPTIONS

_NO_REMEDIES: Mapping[str, str] = MappingProxyType({})


def parse_strictly(
    parser: argparse.ArgumentParser, arguments: Sequence[str], remedies: Mapping[str, str] = _NO_REMEDIES
) -> argparse.Namespace:
    """Return the options of ``arguments``; end the process with exit code 2 if ``parser`` does not know one.

    ``parser`` has no verbs of its own. ``remedies``: option of another verb to the end of the message about it.
    """
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        name = unknown[0].partition("=")[0]
        if not name.startswith("-"):
            parser.error(f"unrecognized arguments: {' '.join(unknown)}; --help lists the options")
        if name in REMOVED_OPTIONS:
            parser.error(f"{name}: {REMOVED_OPTIONS[name]}")
        known = [each.lstrip("-") for action in parser._actions for each in action.option_strings]
        # without the hyphens, which would make all options similar
        near = suggestion(name.lstrip("-"), known).replace("mean ", "mean --")
        remedy = remedies.get(name) or near or "; --help lists the options"
        parser.error(f"{name}: there is no such option{remedy}")
    return options
