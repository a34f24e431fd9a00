# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from soak.evidence import CLOCK_TOLERANCE, Evidence
from soak.hooks import HookRun
from soak.plan import PREPARE, RECOVER, Hook
from soak.preparation_invariants import INTERRUPTED_STATES
from soak.violations import Violation

# recovery must wait for an event that was in so many documents, so many seconds before
KNOWN_AFTER_POLLS = 2
KNOWN_FOR_SECONDS = 0.3
# the hooks of one recovery begin within so many seconds; a later attempt is another decision
RECOVERY_SPAN = 5.0


def recoveries_succeed(evidence: Evidence) -> Iterator[Violation]:
    """After each prepare hook the recover hook of the same name succeeds, for that event or another one."""
    for hook in _recover_hooks(evidence):
        done = [run for run in evidence.runs_of(hook.path) if run.how == "ok"]
        for key in evidence.event_ids():
            prepared = evidence.runs_of(f"{PREPARE}/{hook.name}", key)
            if not prepared or evidence.forgotten(key, "", prepared[-1].began, math.inf):
                continue
            if not any(run.began >= prepared[-1].began for run in done):
                yield Violation(
                    "3 recovered", f"{hook.path} never succeeded after {prepared[-1].hook} for event {key[:8]}"
                )


def recoveries_succeed_once(evidence: Evidence) -> Iterator[Violation]:
    """Each recover hook succeeds at most once for each occurrence."""
    for hook in _recover_hooks(evidence):
        for key in evidence.event_ids():
            good = [run for run in evidence.runs_of(hook.path, key) if run.how == "ok"]
            cut_short = sum(state in INTERRUPTED_STATES for state in evidence.steps(key, hook.path))
            for first, second in itertools.pairwise(good):
                if _is_another_occurrence(evidence, key, hook, first, second) or evidence.forgotten(
                    key, hook.path, first.began, second.began
                ):
                    continue
                if cut_short:
                    cut_short -= 1
                    continue
                assert first.ended is not None
                text = "%s recovered from event %s again, %.1f s after its success"
                yield Violation("3 recovered once", text % (hook.path, key[:8], second.began - first.ended))


def recoveries_wait_for_the_end(evidence: Evidence) -> Iterator[Violation]:
    """Recovery from an event begins after two good documents in a row without it.

    Only documents after the one that led to the preparation count. A hook marks its beginning later
    than the daemon decides to run it, on a busy machine by seconds. The decision therefore has the
    date of the last document before that mark with the event.
    """
    for run in evidence.runs:
        if not run.hook.startswith(RECOVER):
            continue
        seen = [poll.at for poll in evidence.polls if run.key in poll.keys | poll.uncertain]
        if not seen:
            continue
        prepared = [
            each.began
            for each in evidence.runs
            if each.hook.startswith(PREPARE) and each.key == run.key and each.began < run.began
        ]
        since = max((at for at in seen if prepared and at <= prepared[-1]), default=seen[0])
        if not evidence.absent_twice(run.key, since, run.began + CLOCK_TOLERANCE):
            yield Violation(
                "3 recovery after the end",
                f"{run.hook} began for event {run.key[:8]}, which was not missing twice in a row",
            )
            return  # the further ones are of the same decision


def recoveries_wait_for_other_events(evidence: Evidence) -> Iterator[Violation]:
    """No recovery begins while this VM is, or is going to be, prepared for another event that is listed."""
    for run in evidence.runs:
        stage, name = run.hook.split("/")
        if stage != RECOVER:
            continue
        names = {hook.name for hook in evidence.plan.setup.hooks if hook.stage == PREPARE}
        began = min(
            each.began
            for each in evidence.runs
            if each.hook.startswith(RECOVER) and each.key == run.key and each.began > run.began - RECOVERY_SPAN
        )
        for key in evidence.event_ids():
            # a recovery that had begun before the other event was known is finished
            if key == run.key or not _is_waiting(evidence, key, began) or not _is_waiting(evidence, key, run.began):
                continue
            of_event = [each for each in evidence.runs if each.hook.startswith(PREPARE) and each.key == key]
            prepared = [each for each in of_event if name in (each.hook.split("/")[1], *({name} - names))]
            if prepared:
                text = "%s for event %s began while event %s was listed, for which %s ran"
                yield Violation(
                    "3 recovery waits for others", text % (run.hook, run.key[:8], key[:8], prepared[0].hook)
                )
                return


def _is_waiting(evidence: Evidence, key: str, at: float) -> bool:
    """Return True if an event was known for a while, and is in the documents directly before and after a time."""
    before = [poll for poll in evidence.polls if poll.at <= at]
    known = [poll.at for poll in before if key in poll.keys and poll.at <= at - KNOWN_FOR_SECONDS]
    around = before[-2:] + [poll for poll in evidence.polls if poll.at > at][:1]
    return (
        len(known) >= KNOWN_AFTER_POLLS
        and all(key in poll.keys for poll in around)
        and not evidence.forgotten(key, "", known[0], at)
    )


def _is_another_occurrence(evidence: Evidence, key: str, hook: Hook, first: HookRun, second: HookRun) -> bool:
    """Return True if it was prepared again, or listed again after an end, between two recoveries."""
    prepared = any(
        each.hook.startswith(PREPARE) and each.key == key and first.began <= each.began <= second.began
        for each in evidence.runs
    )
    # at least one document listed it after the decision on the first recovery
    return prepared or any(key in poll.keys and first.began - 1.0 <= poll.at <= second.began for poll in evidence.polls)


def _recover_hooks(evidence: Evidence) -> list[Hook]:
    return [hook for hook in evidence.plan.setup.hooks if hook.stage == RECOVER]
