# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Replaces texts in JSON and keeps every other byte: spaces, order and numbers."""

from __future__ import annotations

import json
import re
from typing import Callable

# a text, a bracket, or a comma; all else (spaces, colons, numbers) is copied
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},]')

Path = tuple[str, ...]


def replace_strings(text: str, replace: Callable[[Path, str], str]) -> str:
    """Return the valid JSON ``text`` with each text replaced, names of members excepted.

    ``replace`` gets the names of the members that lead to a text (list items have the name of their list), and the
    text; it returns the new text.
    """
    parts: list[str] = []
    # for each open bracket: True for an object, and the name of the present member
    objects: list[bool] = []
    names: list[str] = []
    copied = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            objects.append(token == "{")
            names.append("")
        elif token in "}]":
            objects.pop()
            names.pop()
        elif token == ",":
            if objects[-1]:
                names[-1] = ""
        elif objects and objects[-1] and not names[-1]:
            # an empty name is possible, and must not make its value a name
            names[-1] = json.loads(token) or "?"
        else:
            value = json.loads(token)
            new = replace(tuple(name for name in names if name), value)
            if new != value:
                parts += [text[copied : match.start()], json.dumps(new, ensure_ascii=False)]
                copied = match.end()
    return "".join([*parts, text[copied:]])
