# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The result of one step, and the bounds of its output."""

from __future__ import annotations

import codecs
from typing import Any, Callable, Mapping, NamedTuple

from ..configuration import Step

DONE = "done"
FAILED = "failed"
TIMEOUT = "timeout"
SKIPPED = "skipped"
WOULD_RUN = "would_run"

# characters kept of the end of the output
OUTPUT = 2000
# bytes of the output that are read for that
TAIL = 64 * 1024
# seconds to wait for output after the end of a step whose service keeps the pipe open
LAST_OUTPUT_TIMEOUT = 0.2
# seconds in which the processes of a step have to end after its timeout
END_TIMEOUT = 15.0
# seconds between two looks at a running step: the first, and the longest
PAUSES = (0.005, 0.1)

_LONGEST_CHARACTER = 4

# runs a step that is a function or an SLS file, with the environment variables; returns whether it
# succeeded, and its output
Call = Callable[[Step, Mapping[str, str]], "tuple[bool, str]"]


class StepResult(NamedTuple):
    """The result of one step: an outcome of those above, the seconds it took, the end of its output."""

    name: str
    kind: str
    outcome: str
    seconds: float
    output: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dict(self._asdict(), seconds=round(self.seconds, 2))


def not_run(step: Step, outcome: str, output: str = "") -> StepResult:
    """Return the result of a step that does not run."""
    return StepResult(step.name, step.kind, outcome, 0.0, output)


def of_command(code: int, text: str) -> tuple[str, str]:
    """Return outcome and output of a command that has ended with that exit code."""
    return (DONE, output_end(text)) if code == 0 else (FAILED, output_end(f"{text}\nexit code {code}"))


def of_timeout(step: Step, text: str) -> tuple[str, str]:
    """Return outcome and output of a step that was ended at its timeout."""
    return TIMEOUT, output_end(f"ended after {step.timeout:g} seconds; {text}")


def output_end(text: str) -> str:
    """Return the end of a text, without white space around it."""
    text = text.strip()
    return text if len(text) <= OUTPUT else "... " + text[-OUTPUT:]


def decode_windows_output(data: bytes, code_page: str) -> str:
    """Return the text that a program on Windows has written: UTF-8 if it is that, else the code page.

    ``data`` is the output, or its last TAIL bytes, which may begin within a character. ``code_page`` is
    the codec for output that is not UTF-8.
    """
    begins = 0
    while len(data) >= TAIL and begins < _LONGEST_CHARACTER - 1 and data[begins] & 0xC0 == 0x80:
        begins += 1
    try:
        # a program that was ended may have written a part of its last character
        text = codecs.getincrementaldecoder("utf-8")().decode(data[begins:])
    except UnicodeDecodeError:
        text = data.decode(code_page, "replace")
    return text.replace("\r\n", "\n")
