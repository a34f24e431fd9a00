# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Values of environment variables that are safe in a command for cmd.exe. Pure."""

from __future__ import annotations

import unicodedata

_CMD_SYNTAX = str.maketrans(dict.fromkeys('"%&()<>^|!', "?"))


def without_cmd_syntax(value: str) -> str:
    """Return the value with "?" for the characters that have a meaning for cmd.exe.

    Windows' shell replaces a variable by its value before it parses the command; a value with such
    characters could contain a command. Code pages replace other signs, such as a wide quotation mark, by
    these characters; therefore only letters and digits remain beyond ASCII.
    """
    return "".join(
        character if character.isascii() or _is_plain(character) else "?" for character in value.translate(_CMD_SYNTAX)
    )


def _is_plain(character: str) -> bool:
    # a letter of the category Lm may be a mark like a quotation mark
    return character.isalnum() and unicodedata.category(character) != "Lm"
