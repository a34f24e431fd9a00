# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds variables that are one typing mistake away from an option."""

from __future__ import annotations

import typing as t


def is_one_mistake_away(given: str, meant: str) -> bool:
    """Return True for one character too much, missing, or wrong, or two neighbours that are swapped."""
    if given == meant or abs(len(given) - len(meant)) > 1:
        return False
    begin = 0
    while begin < min(len(given), len(meant)) and given[begin] == meant[begin]:
        begin += 1
    rest, right = given[begin:], meant[begin:]
    return (
        rest[1:] == right  # too much
        or rest == right[1:]  # missing
        or rest[1:] == right[1:]  # wrong
        or (rest[:2] == right[1::-1] and rest[2:] == right[2:])  # swapped
    )


def misspelt(given: t.Iterable[str], options: t.Collection[str]) -> dict[str, str]:
    """Return which of the given names are misspelt options: name -> option."""
    return {
        name: option for name in given if name not in options for option in options if is_one_mistake_away(name, option)
    }
