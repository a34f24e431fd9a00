# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Why the daemon waits, and why it ends a hook: codes for programs, with one sentence each for operators."""

from __future__ import annotations

from azure_scheduled_events.release import Obstacle
from hook_runner.records import Cause

# why an event is not approved now; those of the helper's module release come in addition
ACCEPTED = Obstacle("accepted", "IMDS has taken the approval; Azure starts the event when it can")
NOT_LISTED = Obstacle("not_listed", "the last document does not list it for this VM; nothing begins until one does")
NOT_DURABLE = Obstacle("not_durable", "the records cannot be written, and a restart would forget the approval")
NOT_BEFORE_PASSED = Obstacle("not_before_passed", "NotBefore has passed; Azure starts the event without an approval")
NO_ANSWER = Obstacle("no_answer", "IMDS gives no good answer; the event may have changed")
REQUEST_FAILED = Obstacle("request_failed", "the last request failed; the events are read again first")
REQUEST_WAITS = Obstacle("request_waits", "the last request failed; the next one waits for some seconds")
TYPE_UNCONFIRMED = Obstacle(
    "type_unconfirmed", "the last document gives it a less severe type; more have to confirm it"
)
IN_FLIGHT = Obstacle("in_flight", "a request for an approval has no answer yet")
DRY_RUN = Obstacle("dry_run", "nothing is approved in a dry run")
OTHER_VMS = Obstacle("other_vms", "it does not affect this VM; an operator can approve it")
OWN_NAME_UNKNOWN = Obstacle("own_name_unknown", "the resource name of this VM is not known yet")

PAUSED = "paused"

# why a running hook is ended
ENDINGS = {
    Cause.EVENT_OVER: "its event is over",
    Cause.EVENT_STARTED: "an event has started",
    Cause.DEADLINE: "its event is about to start",
    Cause.MORE_URGENT: "a more urgent event needs the time",
}
MAY_BE_ENDED = "the daemon may have ended it while records could not be written"


def paused(text: str) -> Obstacle:
    """Return the obstacle of a pause, from its sentence."""
    return Obstacle(PAUSED, text)


def with_failures(obstacle: Obstacle, failures: list[str]) -> Obstacle:
    """Return the obstacle of a failed preparation with the hooks that have failed."""
    return obstacle._replace(text=": ".join(filter(None, (obstacle.text, "; ".join(failures)))))


def held(sentence: str) -> Obstacle:
    """Return why an event is not prepared, from the sentence of the policy."""
    return Obstacle("held", f"the policy holds it: {sentence}")


def hook_runs(title: str) -> Obstacle:
    """Return the reason to wait while a hook runs."""
    return Obstacle("hook_runs", f"{title} runs")


def not_prepared(title: str, seconds: float, needs: float) -> str:
    """Return why a prepare hook has not succeeded although it does not run: too little time is left for it."""
    text = f"{title}: too little time is left ({max(0.0, seconds):.0f} s)"
    return f"{text}, and it needs {needs:g} s" if needs else text
