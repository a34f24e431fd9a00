# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""What the engine knows. All values are immutable; the reducer makes new ones."""

from __future__ import annotations

import math
from typing import Mapping, NamedTuple

from .mapping import Names
from .settings import Settings


class Minion(NamedTuple):
    """One minion, without regard to an event.

    Attributes:
        complaint: what is wrong with its last answer, or "".
        unavailable: why its IMDS gives no document, or "".
        working: key of the event whose preparation or recovery it works on, or "".
        look_wanted: whether it has to be asked for its status.
        look_job: token of the question that it has not answered, 0 for none.
        look_asked_at, look_at: time of the last question, and before which no further one is asked.
        look_pause: seconds between two questions that hints cause; grows while the answers bring
            nothing new.
        answered_at: time of its last good answer.
        answered_job: token of the newest question that it answered.
        silent: questions in a row that it did not answer in time.
        interrupted: whether an event that takes its VM down has started there, as it says.
        started_at: time of the last start of the minion that made its preparations doubtful.
        credit, credit_at: questions that it may be asked without a pause, and when that was
        counted.
    """

    complaint: str = ""
    unavailable: str = ""
    working: str = ""
    poll_wanted: bool = False
    poll_job: int = 0
    poll_sent_at: float = -math.inf
    poll_at: float = -math.inf
    poll_pause: float = 0.0
    answered_at: float = -math.inf
    answered_job: int = 0
    silent: int = 0
    interrupted: bool = False
    started_at: float = -math.inf
    credit: float = math.inf
    credit_at: float = -math.inf


class Member(NamedTuple):
    """One minion in one maintenance: what it said about itself.

    Attributes:
        listed: whether its own IMDS lists the event, for its own VM.
        absent: answers in a row that do not list it.
        returns: how often it was listed again after that.
        status: Scheduled or Started.
        resources: of the event, as its own IMDS has them.
        not_selected: code of its own selection where that excludes the event, else "".
        record: state of its own record for this event, "" for none. A preparation of an earlier
            boot is "old_boot".
        outcome, reason: of its last prepare or recover.
        doing, job, asked_at: function, token and time of the question that it has not answered.
        done_at, seen_at: time of its last return, and of the question after it whose answer showed
        the minion's record.
        tries, next_at: failed attempts in a row, and the time before which none follows; infinite
            until the minion answers after a restart of the engine.
    """

    listed: bool = False
    absent: int = 0
    returns: int = 0
    status: str = ""
    resources: tuple[str, ...] = ()
    not_selected: str = ""
    record: str = ""
    outcome: str = ""
    reason: str = ""
    doing: str = ""
    job: int = 0
    asked_at: float = -math.inf
    done_at: float = -math.inf
    seen_at: float = -math.inf
    tries: int = 0
    next_at: float = -math.inf


class Approval(NamedTuple):
    """An approval that IMDS took, or that is on its way (``outcome`` "")."""

    minion: str
    by: str
    at: str
    forced: bool = False
    outcome: str = ""
    job: int = 0
    asked_at: float = -math.inf


class Hold(NamedTuple):
    """An operator's order not to approve."""

    by: str
    at: str


class Maintenance(NamedTuple):
    """One event.

    Attributes:
        members: by minion id.
        approval: taken, or on its way.
        refusals: by minion id: time before which it is not asked to approve again, and why.
        hold: by an operator, or None.
        forced: order to approve though the engine withholds, as an Approval without a minion.
        announced: names of the bus events that were sent; "held" has its reason in withheld.
        withheld: the last reason that was announced.
        examine: whether something has changed since the approval was last decided on.
        examined_at: when that was.
        unrecorded: why the approval could not be recorded, or "".
        last_word: time of the last answer of a member.
        work_at: time before which no preparation and no recovery is due, unless something changes.
        changed: whether something has changed since its steps were last announced.
        over_at: time at which it ended.
    """

    event_id: str
    event_type: str = ""
    not_before: str = ""
    members: Mapping[str, Member] = {}
    approval: Approval | None = None
    refusals: Mapping[str, tuple[float, str]] = {}
    hold: Hold | None = None
    forced: Approval | None = None
    announced: frozenset[str] = frozenset()
    withheld: str = ""
    examine: bool = True
    examined_at: float = -math.inf
    unrecorded: str = ""
    last_answer_at: float = -math.inf
    work_at: float = -math.inf
    changed: bool = True
    over_at: float = -math.inf

    @property
    def approved(self) -> bool:
        return self.approval is not None and self.approval.outcome != ""

    @property
    def is_over(self) -> bool:
        return self.over_at != -math.inf

    def listing(self) -> list[str]:
        """Minions whose IMDS lists the event."""
        return sorted(minion for minion, member in self.members.items() if member.listed)


class Job(NamedTuple):
    """A question to minions whose answers have not all come."""

    function: str
    key: str
    minions: frozenset[str]
    asked_at: float


class State(NamedTuple):
    """Everything.

    Attributes:
        maintenances: by event key, while they last.
        over: the same for those that are over, for the status.
        now: time of the last input, monotonic seconds.
        next_job: token of the next question.
        swept_at: time of the last question to all minions.
        polled_at: time of the last question to the members of all maintenances.
        disk_error: why the last attempt to write failed, or "".
        referred: by minion id: time before which it is not asked on the word of another minion, and
            the pause that follows.
    """

    settings: Settings
    names: Names = Names()
    minions: Mapping[str, Minion] = {}
    maintenances: Mapping[str, Maintenance] = {}
    over: Mapping[str, Maintenance] = {}
    jobs: Mapping[int, Job] = {}
    now: float = -math.inf
    next_job: int = 1
    swept_at: float = -math.inf
    polled_at: float = -math.inf
    disk_error: str = ""
    referred: Mapping[str, tuple[float, float]] = {}
