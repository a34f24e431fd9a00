# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Reads a recording. Damaged lines are named and left out; the rest is used."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from .lines import Answer, Begin, End, Header, LineError, parse_header, parse_line

# longer lines are not decoded: the recorder writes bodies of 4 MiB at most
_MAX_LINE = 32 * 1024 * 1024


class Unusable(Exception):
    """The file is not a recording, or cannot be read; the text names the file."""


class Recording(NamedTuple):
    """A recording.

    ``lines`` are in the order of the file; ``problems`` has a text for each line that was left out.
    """

    name: str
    header: Header
    lines: tuple[Begin | End | Answer, ...]
    problems: tuple[str, ...]

    @property
    def answers(self) -> list[Answer]:
        """The answers, in the order of the file."""
        return [each for each in self.lines if isinstance(each, Answer)]


def read(file: Path) -> Recording:
    """Read the recording ``file``; raise Unusable if it cannot be read, or is not a recording."""
    try:
        # one bad byte must not make the whole file unusable
        with file.open("rb") as opened:
            return parse(opened, str(file))
    except OSError as error:
        raise Unusable(f"{file}: {error.strerror}; name a file that 'record' wrote") from None


def parse(lines: Iterable[bytes], name: str) -> Recording:
    """Return the recording that ``lines`` contain; ``name`` is that of the file for messages.

    Raises:
        Unusable: this is not a recording.
    """
    answers: dict[int, Answer] = {}
    found: list[Begin | End | Answer] = []
    problems: list[str] = []
    header: Header | None = None
    for number, line in enumerate(lines, 1):
        try:
            data = _decode(line)
            if header is None:
                header = parse_header(data)
                continue
            value = parse_line(data, answers.get)
        except LineError as error:
            if header is None:
                raise Unusable(f"{name}:1: {error}; name a file that 'record' wrote") from None
            problems.append(f"{name}:{number}: {error}; this line is left out")
            continue
        found.append(value)
        if isinstance(value, Answer):
            answers[value.line] = value
    if header is None:
        raise Unusable(f"{name}: the file is empty; name a file that 'record' wrote")
    return Recording(name, header, tuple(found), tuple(problems))


def _decode(line: bytes) -> object:
    if len(line) > _MAX_LINE:
        raise LineError("the line is too long")
    if not line.endswith(b"\n"):
        raise LineError("the line is not complete")
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        raise LineError("not valid JSON") from None
    return value
