# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Send an event for each change of the Azure Scheduled Events of this VM.

.. versionadded:: 0.1.0

The tag is ``salt/beacon/MINION/azure_events/CHANGE``, where CHANGE is ``scheduled``, ``changed``,
``started`` or ``gone``. The data are flat: the event (event_id, event_type, status, resources,
resource_type, not_before, description, source, duration_seconds), and

change, fields
    CHANGE, and the names of the fields that differ.
outcome
    For ``gone``: ``completed`` if the event was seen Started, else ``unknown``: it was canceled, or
    started and ended between two polls.
resource_name
    This VM's name in Azure. The minion's ID is ``id``.
sequence
    Number of the change on this minion, which only grows. A repeated change keeps its number.
first_seen, changed_at, checked
    Times (ISO 8601 UTC) of the event's first document, of this change, and of the last good answer.
repeated, incarnation
    How often this change was sent before; DocumentIncarnation.

A listed event is repeated every ``repeat`` seconds, and at once after a restart of the master;
therefore a master that was away or a minion that restarts loses no event. A receiver must check the
event (``azure_events.get``) before it acts, and must tolerate repeats. The end of an event is sent
once, if the event was sent. For an event for which this minion has prepared, the end is repeated
until the minion has recovered.

One tick sends at most 64 kB, the next ticks send the rest. In a larger event, texts are truncated,
and ``cut`` names them; ``resources_omitted``, their number, replaces ``resources``.
``azure_events.get`` returns the complete event.

A thread polls IMDS. The beacon itself waits for an answer for at most 50 milliseconds.

.. code-block:: yaml

    beacons:
      azure_events:
        - interval: 1            # seconds between two ticks of the beacon
        - affects: self          # self, any, or a list of names of VMs
        - types: [Reboot]        # default: all but advice; all statuses and sources
        - statuses: [Scheduled]  # the end of an event is sent if the event was sent
        - sources: [Platform]
        - endpoint: http://169.254.169.254
        - api_version: 2020-07-01
        - resource_name: vm1     # default: read from IMDS
        - timeout: 10            # seconds for one answer
        - first_timeout: 130     # seconds for the very first answer
        - poll_interval: 1       # seconds between two polls of the thread
        - repeat: 60             # seconds after which a listed event is repeated
        - gone_for: 1h           # time for which watch_status shows an event that is over

All options are optional. The key ``azure_events`` of the minion's configuration or pillar has
defaults for endpoint, api_version and resource_name. Its types, sources and statuses, which select
the events that the minion prepares for, limit this beacon too, but no beacon with another name.
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import copy
import logging

log = logging.getLogger(__name__)

__virtualname__ = "azure_events"

_MISSING = (
    "azure_events beacon: the execution module azure_events is not available: run saltutil.sync_all, "
    "and see azure_events in sys.doc"
)

# valid configurations, with their messages
_VALID = []
_MAX_VALID = 10


def __virtual__():
    # the execution module may be synced later; every call checks for it
    return __virtualname__


def validate(config):
    """Return whether the configuration is valid, and a message."""
    # Salt validates before every call; a refresh, which may bring another pillar, reloads this module
    for known, message in _VALID:
        if known == config:
            return True, message
    if "azure_events.watch_check" not in __salt__:
        return False, _MISSING
    valid, message = __salt__["azure_events.watch_check"](config)
    if valid:
        _VALID.append((copy.deepcopy(config), message))
        del _VALID[:-_MAX_VALID]
    return valid, message


def beacon(config):
    """Return the events to send, always as a list.

    Another result, or an exception, would disturb the minion's other beacons.
    """
    try:
        notices = __salt__["azure_events.watch_news"](config)
        return [dict(notice, tag=notice["change"]) for notice in notices]
    except Exception as error:  # pylint: disable=broad-except
        log.error("azure_events beacon: %s", error)
        return []


def close(config):
    """Stop the thread that polls IMDS."""
    if "azure_events.watch_close" in __salt__:
        __salt__["azure_events.watch_close"](config)
