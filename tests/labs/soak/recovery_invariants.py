# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from soak.evidence import CLOCK_TOLERANCE, Evidence
from soak.hooks import HookRun
from soak.plan import PREPARE, RECOVER, Hook
from soak.violations import Violation

# states in the records of a run that is repeated, although its script may have marked a success
INTERRUPTED_STATES = ("interrupted", "stopped", "timeout")


def recoveries_succeed(evidence: Evidence) -> Iterator[Violation]:
    """After the last run of each other hook each recover hook succeeds."""
    others = [run for run in evidence.runs if not run.hook.startswith(RECOVER)]
    last = max(others, key=lambda run: run.began, default=None)
    if last is None or evidence.forgotten(last.key, "", last.began, math.inf):
        return
    for hook in _recover_hooks(evidence):
        if not any(run.how == "ok" and run.began >= last.began for run in evidence.runs_of(hook.path)):
            yield Violation("3 recovered", f"{hook.path} never succeeded after {last.hook} for event {last.key[:8]}")


def recoveries_succeed_once(evidence: Evidence) -> Iterator[Violation]:
    """Each recover hook succeeds at most once for a maintenance."""
    for hook in _recover_hooks(evidence):
        good = [run for run in evidence.runs_of(hook.path) if run.how == "ok"]
        cut_short = sum(state in INTERRUPTED_STATES for state in evidence.states(hook.path))
        for first, second in itertools.pairwise(good):
            if _is_another_maintenance(evidence, first, second) or evidence.forgotten(
                first.key, hook.path, first.began, second.began
            ):
                continue
            if cut_short:
                cut_short -= 1
                continue
            assert first.ended is not None
            text = "%s recovered again, %.1f s after its success"
            yield Violation("3 recovered once", text % (hook.path, second.began - first.ended))


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


def _is_another_maintenance(evidence: Evidence, first: HookRun, second: HookRun) -> bool:
    """Return True if another hook ran, or a document listed an event of this VM, between two recoveries."""
    has_run = any(
        not run.hook.startswith(RECOVER) and first.began <= run.began <= second.began for run in evidence.runs
    )
    # at least one document listed it after the decision on the first recovery
    return has_run or any(poll.keys and first.began - 1.0 <= poll.at <= second.began for poll in evidence.polls)


def _recover_hooks(evidence: Evidence) -> list[Hook]:
    return [hook for hook in evidence.plan.setup.hooks if hook.stage == RECOVER]
