# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The hooks of a run: executables that mark their beginning and end with event and time."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

# shell code of a hook after its first mark; `ok` and `failed` write the last mark
BODIES = {
    "works": "ok",
    "slow": "sleep 0.5; ok",
    "fails": "failed",
    "fails-first": "is_first && failed; ok",
    "fails-until-healed": '[ -e "$MARKS.healed" ] || failed; ok',
    "hangs": "sleep 1000",
    "hangs-first": "is_first && sleep 1000; ok",
    "ignores-term": "trap : TERM; while :; do sleep 1000; done",
    "leaves-a-child": "sleep 1000 & ok",
    "kills-itself": "kill -9 $$",
}

_SCRIPT = """#!/bin/sh
me=$EVENT_STAGE/${0##*/}
mark() {
    printf '%%s\\t%%s\\t%%s\\t%%s\\t%%s\\n' "$1" "$me" "$EVENT_ID" "$(date +%%s.%%N)" "$$" >> "$MARKS"
}
ok() { mark ok; exit 0; }
failed() { mark failed; exit 3; }
is_first() { [ "$(grep -c "^begin.$me.$EVENT_ID" "$MARKS")" -le 1 ]; }
mark begin
%s
"""


class Mark(NamedTuple):
    """One line of the marks.

    Attributes:
        what: begin, ok or failed; a run that was killed has neither ok nor failed.
        hook: STAGE/NAME.
        at: Unix time.
    """

    what: str
    hook: str
    event_id: str
    at: float
    pid: int


class HookRun(NamedTuple):
    """One run of a hook by its marks; if it was killed or still runs, ``ended`` is None and ``how`` is ""."""

    hook: str
    event_id: str
    began: float
    ended: float | None
    how: str


def write_hook(directory: Path, path: str, does: str) -> None:
    """Write the executable STAGE/NAME."""
    file = directory / path
    file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    file.write_text(_SCRIPT % BODIES[does])
    file.chmod(0o755)


def read_marks(path: Path) -> list[Mark]:
    """Return all marks so far, in their order."""
    lines = [line.split("\t") for line in path.read_text().split("\n")[:-1]] if path.exists() else []
    return [Mark(what, hook, event_id, float(at), int(pid)) for what, hook, event_id, at, pid in lines]


def hook_runs(marks: list[Mark]) -> list[HookRun]:
    """Return the runs of these marks, in the order of their beginning."""
    ends = {(mark.pid, mark.hook, mark.event_id): mark for mark in marks if mark.what != "begin"}
    found = []
    for mark in marks:
        if mark.what == "begin":
            end = ends.get((mark.pid, mark.hook, mark.event_id))
            found.append(HookRun(mark.hook, mark.event_id, mark.at, end.at if end else None, end.what if end else ""))
    return found
