# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Invariants of preparations, and of events in the records."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from azure_scheduled_events.tracking import GONE_AFTER
from soak.approval_invariants import undoes
from soak.evidence import Evidence
from soak.plan import PREPARE
from soak.violations import Violation

INTERRUPTED_STATES = ("interrupted", "stopped", "timeout")
# an event in so many documents must be in the records
ENOUGH_POLLS = 3


def preparations_succeed_once(evidence: Evidence) -> Iterator[Violation]:
    """Each hook prepares an occurrence successfully at most once, and again if its type may have become worse."""
    for hook in evidence.plan.setup.hooks:
        if hook.stage != PREPARE:
            continue
        for key in evidence.event_ids():
            good = [run for run in evidence.runs_of(hook.path, key) if run.how == "ok"]
            cut_short = sum(state in INTERRUPTED_STATES for state in evidence.steps(key, hook.path))
            for first, second in itertools.pairwise(good):
                assert first.ended is not None
                recovered = any(
                    first.began <= run.began <= second.began and undoes(evidence, run.hook, hook)
                    for run in evidence.runs
                )
                recovered_from = any(
                    first.began <= run.began <= second.began and run.hook.startswith("recover") and run.key == key
                    for run in evidence.runs
                )
                rebooted = not hook.persists and evidence.rebooted(first.began, second.began)
                retyped = any(
                    each.action.verb in ("retype", "announce")
                    and str(each.action.arguments[0]).casefold() == key
                    and first.began - 1 <= each.ended <= second.began
                    for each in evidence.performed
                )
                was_away = evidence.longest_absence(key, first.began, second.began) > GONE_AFTER - 1
                if (
                    recovered
                    or recovered_from
                    or retyped
                    or rebooted
                    or was_away
                    or evidence.forgotten(key, hook.path, first.began, second.began)
                ):
                    continue
                if cut_short:
                    cut_short -= 1
                    continue
                yield Violation(
                    "2 preparation once",
                    f"{hook.path} prepared event {key[:8]} again, {second.began - first.ended:.1f} s after its success",
                )


def events_are_in_the_records(evidence: Evidence) -> Iterator[Violation]:
    """Each event that several documents listed is in the records."""
    if any("records-" in performed_action.action.verb for performed_action in evidence.performed):
        return
    recorded = {record["event"]["event_id"].casefold() for record in evidence.history}
    for key in evidence.event_ids():
        seen = [poll.at for poll in evidence.polls if key in poll.keys and poll.at >= evidence.named_at]
        if (
            len(seen) >= ENOUGH_POLLS
            and key not in recorded
            and not evidence.forgotten(key, "", seen[0], seen[-1] + 3600)
        ):
            yield Violation(
                "5 event in the records",
                f"event {key[:8]} was in {len(seen)} documents and is not in the records",
            )
