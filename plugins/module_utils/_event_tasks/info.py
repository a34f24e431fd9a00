# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The work of module event_info."""

from __future__ import annotations

from .event_task import EventCall, EventTask, Result


def read_events(call: EventCall) -> Result:
    """Return the selected events; raise ImdsError if IMDS gives no good answer."""
    chosen = call.selection()._replace(advice=True)
    imds = call.open_session()
    document = imds.read_events(name_required=chosen.needs_own_name)
    events = chosen.pick(document, imds.resource_name)
    call.warn_about(document)
    return dict(
        changed=False,
        events=[event.as_dict() for event in events],
        api_version=document.api_version,
        complete=document.complete,
        incarnation=document.incarnation,
        resource_name=imds.resource_name,
    )


EVENT_INFO = EventTask(read_events, timeout=130)
