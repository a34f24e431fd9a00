# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""
Fire an event for everything that happens to Azure Scheduled Events of this VM
==============================================================================

.. versionadded:: 0.1.0

Tag: ``salt/beacon/MINION/azure_events/CHANGE``, where CHANGE is ``scheduled``, ``changed``,
``started`` or ``gone``. The data are flat: the event (event_id, event_type, status, resources,
resource_type, not_before, description, source, duration_seconds), and

change, fields What happened, and the names of what differs. outcome Of ``gone``: ``ended`` when it
    was seen Started; ``not_started`` when it was not, so that it was cancelled, or over between two
    looks. resource_name This VM's name in Azure. The minion's id is ``id``. sequence Number of the
    change on this minion. It only grows; a change that is told again keeps its number. first_seen,
    changed_at, checked When the event and this change were first seen, and when IMDS last gave a
    good answer. ISO 8601 UTC. repeated, incarnation How often this change was told before;
    DocumentIncarnation.

An event that lasts is sent again every ``repeat`` seconds, and at once when the master has started
anew, so that a master that was away or a minion that restarts loses nothing. Whoever acts on it has
to look again (``azure_events.get``) and must not mind to be told twice. The end of an event is sent
once, if its beginning was; that of an event for which this minion has prepared again and again,
until it has recovered.

At most 64 kB are sent in one tick, the rest in the next ones. Of an event that is larger, texts are
cut, which ``cut`` names, and ``resources_omitted``, their number, stands for ``resources``: ask for
the whole with ``azure_events.get``.

A thread asks IMDS; the beacon itself waits for it no longer than a healthy one takes, 50
milliseconds at the most.

.. code-block:: yaml

    beacons:
      azure_events:
        - interval: 1            # seconds between two looks at what the thread has seen
        - affects: self          # self, any, or a list of names of VMs
        - types: [Reboot]        # default: all, as for statuses and sources
        - statuses: [Scheduled]  # the end of an event is sent if its beginning was
        - sources: [Platform]
        - endpoint: http://169.254.169.254
        - api_version: 2020-07-01
        - resource_name: vm1     # default: asked from IMDS
        - timeout: 10            # for one answer
        - first_timeout: 130     # for the very first one
        - poll_interval: 1       # of the thread
        - repeat: 60             # tell again what lasts
        - gone_for: 1h           # watch_status shows for so long what is over

All are optional. What is set under ``azure_events`` in the minion's configuration or pillar counts
for endpoint, api_version and resource_name. Its types, sources and statuses, which say what the
minion prepares for, limit this beacon too, but none with another name.
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import copy
import logging

log = logging.getLogger(__name__)

__virtualname__ = "azure_events"

_MISSING = "azure_events beacon: the execution module azure_events is not available: run saltutil.sync_all, and see azure_events in sys.doc"


# configurations that are right, with the sentence about it
_VALID = []
_MOST_VALID = 10


def __virtual__():
    # the execution module may be synced later than this, so that it is looked for at every call
    return __virtualname__


def validate(config):
    """
    Whether the configuration is right: (bool, sentence).
    """
    # Salt asks before every call of the beacon; after a refresh, which may bring another pillar,
    # this module is a new one
    for known, sentence in _VALID:
        if known == config:
            return True, sentence
    if "azure_events.watch_check" not in __salt__:
        return False, _MISSING
    valid, sentence = __salt__["azure_events.watch_check"](config)
    if valid:
        _VALID.append((copy.deepcopy(config), sentence))
        del _VALID[:-_MOST_VALID]
    return valid, sentence


def beacon(config):
    """
    What there is to tell: a list, always. Another answer, or an exception, would disturb the minion's other beacons.
    """
    try:
        notices = __salt__["azure_events.watch_news"](config)
        return [dict(notice, tag=notice["change"]) for notice in notices]
    except Exception as error:  # pylint: disable=broad-except
        log.error("azure_events beacon: %s", error)
        return []


def close(config):
    """
    Stop the thread that asks IMDS.
    """
    if "azure_events.watch_close" in __salt__:
        __salt__["azure_events.watch_close"](config)
