# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The work of module event_wait."""

from __future__ import annotations

from ..azure_scheduled_events.waiting import STATES, EventWait
from .event_task import EventCall, EventTask, Result


def wait_for_events(call: EventCall) -> Result:
    """Return the result of the wait; raise ImdsError if IMDS supports none of the api-versions."""
    params = call.params
    watch = EventWait(params["state"], call.selection(), call.open_session(params["poll_interval"]))
    waited = watch.poll_once() if call.check_mode else watch.wait(params["timeout"])
    call.warn_about(waited.document)
    if waited.errors:
        call.warn(f"IMDS gave no good answer to {waited.errors} polls; the last error: {waited.last_error}")
    result = watch.result(waited)
    if call.check_mode:
        return dict(result, changed=False, outcome="checked")
    outcome = watch.outcome(waited)
    if outcome == "reached":
        return dict(result, changed=False, outcome=outcome)
    return dict(result, failed=True, msg=watch.failure(waited), outcome=outcome)


EVENT_WAIT = EventTask(
    wait_for_events,
    timeout=900,
    options=dict(
        state=dict(type="str", choices=list(STATES), default="present"), poll_interval=dict(type="raw", default=1)
    ),
)
