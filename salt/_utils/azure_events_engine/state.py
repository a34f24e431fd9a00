# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The state of the engine. All values are immutable; the reducer makes new ones."""

from __future__ import annotations

import math
from typing import Iterable, Mapping, NamedTuple

from azure_scheduled_events.tracking import Sighting, Tracker
from azure_scheduled_events.urgency import counts_for

from .answers import PREPARED
from .mapping import Names
from .settings import Settings


class Minion(NamedTuple):
    """One minion, independent of an event.

    Attributes:
        complaint: the problem of its last answer, or "".
        left_out: number of events and records that its last answer has with invalid IDs.
        unavailable: why its IMDS gives no document, or "".
        working: key of the event whose preparation or recovery it works on, or "".
        poll_job: token of the poll that it has not answered, 0 for none.
        poll_sent_at, poll_at: time of the last poll, and before which it is not polled again.
        poll_pause: seconds between two polls because of hints; grows while the answers bring no
            change.
        refer_at, refer_pause: the time before which it is not polled because another minion names its
            VM, and the pause that led to it.
        answered_at: time of its last valid answer.
        answered_job: token of the newest poll that it answered.
        silent: polls in a row that it did not answer in time.
        interrupted: whether it reports that an event that does more than advise has started.
        started_at: time of the last start of the minion after which its preparations were
            distrusted.
        credit, credit_at: jobs that the minion may be sent without a pause, and the time for which
            that holds.
        tracker: of the events of its own VM; None until an answer, and after stored events were read.
        documents: good documents that it has read since then, for answers and for preparations.
    """

    complaint: str = ""
    left_out: int = 0
    unavailable: str = ""
    working: str = ""
    poll_wanted: bool = False
    poll_job: int = 0
    poll_sent_at: float = -math.inf
    poll_at: float = -math.inf
    poll_pause: float = 0.0
    refer_at: float = -math.inf
    refer_pause: float = 0.0
    answered_at: float = -math.inf
    answered_job: int = 0
    silent: int = 0
    interrupted: bool = False
    started_at: float = -math.inf
    credit: float = math.inf
    credit_at: float = -math.inf
    tracker: Tracker | None = None
    documents: int = 0


class Member(NamedTuple):
    """One minion in one maintenance, as it reports itself.

    Attributes:
        sighting: of the event by its own IMDS and for its own VM; None if it is gone.
        returned: whether it came back after it was gone.
        not_selected: the key of its configuration that excludes the event, or "".
        record: state of its own record for this event, "" for none. A preparation of an earlier
            boot is "old_boot".
        record_type: the type of the event for which the minion has that state.
        outcome, reason: of its last prepare or recover.
        doing, job, asked_at: function, token and time of the job that it has not returned.
        done_at, seen_at: time of its last return, and of the poll after it whose answer showed the
            minion's record.
        tries, next_at: failed attempts in a row, and the time before which there is no further one;
            infinite until the minion answers after a restart of the engine.
    """

    sighting: Sighting | None = None
    returned: bool = False
    not_selected: str = ""
    record: str = ""
    record_type: str = ""
    outcome: str = ""
    reason: str = ""
    doing: str = ""
    job: int = 0
    asked_at: float = -math.inf
    done_at: float = -math.inf
    seen_at: float = -math.inf
    tries: int = 0
    next_at: float = -math.inf

    @property
    def present(self) -> bool:
        """Return True if the event is not gone."""
        return self.sighting is not None

    @property
    def listed(self) -> bool:
        """Return True if the minion's last answer lists the event."""
        return self.sighting is not None and self.sighting.listed

    @property
    def status(self) -> str:
        """Return the status of the event as Azure names it, or "" if the event is gone."""
        return "" if self.sighting is None else self.sighting.event.status

    @property
    def resources(self) -> tuple[str, ...]:
        """Return the VMs of the event that are not gone."""
        return () if self.sighting is None else self.sighting.event.resources

    @property
    def is_prepared(self) -> bool:
        """Return True if the minion is prepared for the event, with the type that its own IMDS lists."""
        return (
            self.sighting is not None
            and self.record == PREPARED
            and counts_for(self.record_type, self.sighting.event.event_type)
        )


class Approval(NamedTuple):
    """An approval that IMDS accepted, or that was not answered yet (``outcome`` "")."""

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


class Order(NamedTuple):
    """An operator's order to approve regardless.

    Attributes:
        types: those that the minions listed for the event.
        vms: the VMs that an approval released, by key.
    """

    by: str
    at: str
    types: frozenset[str]
    vms: frozenset[str]

    def covers(self, types: Iterable[str], vms: Iterable[str]) -> bool:
        """Return True if the event has got no further type, and no VM has joined."""
        return self.types.issuperset(types) and self.vms.issuperset(vms)


class Maintenance(NamedTuple):
    """One event.

    Attributes:
        members: by minion id.
        refusals: by minion id, the time before which the engine does not approve through it again,
            and why.
        forced: an operator's order to approve regardless.
        announced: names of the bus events that were sent; "held" has its reason in withheld.
        withheld: the last reason that was announced.
        examine: whether something has changed since the last decision about the approval.
        examined_at: time of that decision.
        last_answer_at: time of the last answer of a member.
        work_at: time before which no preparation and no recovery is due, unless something changes.
        changed: whether something has changed since its steps were last announced.
        over_at: time of its end; minus infinity while it is not over.
    """

    event_id: str
    event_type: str = ""
    not_before: str = ""
    members: Mapping[str, Member] = {}
    approval: Approval | None = None
    refusals: Mapping[str, tuple[float, str]] = {}
    hold: Hold | None = None
    forced: Order | None = None
    announced: frozenset[str] = frozenset()
    withheld: str = ""
    examine: bool = True
    examined_at: float = -math.inf
    last_answer_at: float = -math.inf
    work_at: float = -math.inf
    changed: bool = True
    over_at: float = -math.inf

    @property
    def approved(self) -> bool:
        """Return True if IMDS has accepted an approval."""
        return self.approval is not None and self.approval.outcome != ""

    @property
    def is_over(self) -> bool:
        """Return True if the maintenance has ended."""
        return self.over_at != -math.inf

    def affected(self) -> list[str]:
        """Return the minions for which the event is not gone."""
        return sorted(minion for minion, member in self.members.items() if member.present)


class Job(NamedTuple):
    """A job of which some minions have not returned."""

    function: str
    key: str
    minions: frozenset[str]
    asked_at: float


class State(NamedTuple):
    """The whole state. Times are monotonic seconds.

    Attributes:
        minions: by minion id.
        maintenances: those that are not over, by event key.
        over: those that are over, for the status.
        jobs: by token.
        now: time of the last input.
        next_job: token of the next job.
        swept_at: time of the last poll of all minions.
        polled_at: time of the last poll of the members of all maintenances.
        unwritten: why the state cannot be written to the disk, or "".
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
    unwritten: str = ""
