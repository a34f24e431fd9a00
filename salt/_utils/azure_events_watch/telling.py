# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What is due to be told to one master: every change once, in order, and what lasts again and again.

What was told is remembered in the process only. "Told" on disk would lose events: the minion fires while the master is
away, and restarts before it is back.
"""

from __future__ import annotations

import math
from typing import Any, Iterable, Mapping, NamedTuple, Optional

from azure_scheduled_events.selection import Selection

from .ledger import Entry, Notice

# a document may hold thousands of events, and telling one takes the minion a moment
AT_ONCE = 100


class _Telling(NamedTuple):
    sequence: int
    at: float
    times: int


class Told:
    """What one master was told by one beacon of this process."""

    def __init__(self) -> None:
        self._cursor: Optional[int] = None
        self._last: dict[str, _Telling] = {}

    def due(
        self,
        history: Iterable[Notice],
        entries: Mapping[str, Entry],
        selection: Selection,
        repeat: float,
        now: float,
        doubtful: frozenset[str] = frozenset(),
    ) -> list[dict[str, Any]]:
        """What to tell now, as the data of beacon events; it then counts as told.

        history: the changes of this process that are meant, in order.
        now: monotonic seconds.
        doubtful: keys of events that may be over; they are not told again.
        """
        due: list[dict[str, Any]] = []
        for notice in history if self._cursor is not None else ():
            if notice.sequence > (self._cursor or 0) and len(due) < AT_ONCE:
                self._cursor = notice.sequence
                if _worth_telling(notice, selection):
                    due.append(self._tell(notice, now))
        if len(due) >= AT_ONCE:
            return due
        # before anything is left for the next time: a change that comes until then must be found in the history
        self._cursor = max([self._cursor or 0] + [entry.notice.sequence for entry in entries.values()])
        self._last = {key: telling for key, telling in self._last.items() if key in entries}
        waiting = [
            (self._was_told(key, entry), entry)
            for key, entry in entries.items()
            if key not in doubtful and entry.meant and _worth_telling(entry.notice, selection) and self._is_due(key, entry, repeat, now)
        ]
        # news first; of what was told before that which waits longest, so that no number of repetitions keeps anything back
        waiting.sort(key=lambda item: (item[0], item[1].notice.sequence))
        due += [self._tell(entry.notice, now) for _told_at, entry in waiting[: AT_ONCE - len(due)]]
        return due

    def _was_told(self, key: str, entry: Entry) -> float:
        """When this very change was told last; a time before all times if never."""
        last = self._last.get(key)
        return last.at if last is not None and last.sequence == entry.notice.sequence else -math.inf

    def _is_due(self, key: str, entry: Entry, repeat: float, now: float) -> bool:
        last = self._last.get(key)
        if last is None or last.sequence != entry.notice.sequence:
            return True
        # an end that was told needs no haste any more, and each telling may start an orchestration
        pause = repeat if entry.lasts else repeat * 2.0 ** min(last.times - 1, 20)
        return now - last.at >= pause

    def _tell(self, notice: Notice, now: float) -> dict[str, Any]:
        last = self._last.get(notice.event.key)
        times = last.times if last is not None and last.sequence == notice.sequence else 0
        self._last[notice.event.key] = _Telling(notice.sequence, now, times + 1)
        return dict(notice.as_dict(), repeated=times)


def _worth_telling(notice: Notice, selection: Selection) -> bool:
    """Whether the statuses that were asked for allow it; an end is always told."""
    return notice.change == "gone" or selection.statuses is None or notice.event.status.casefold() in {
        word.casefold() for word in selection.statuses
    }
