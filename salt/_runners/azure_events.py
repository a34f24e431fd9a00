# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""
Azure Scheduled Events of a fleet: what the engine of this master does
======================================================================

.. versionadded:: 0.1.0

The functions ask the engine ``azure_events`` of this master over the master's bus. The engine runs
where the master's configuration has

.. code-block:: yaml

    engines:
      - azure_events: {}

All but :py:func:`fleet` return ``rows``, one for each event and VM, with ``event_id``,
``event_type``, ``not_before``, ``vm``, ``minion``, ``prepared`` (the state of the minion's own
record), ``approved``, ``waiting_for``, ``withheld`` (why the event is not approved) and ``why_not``
(why this VM is not ready); and ``problem``, what keeps the engine itself from its work, or an empty
text.

A function that fails returns ``error`` and the ``retcode`` 1, with which ``salt-run`` then ends.
"""

# Salt's loader puts __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import os
import time
import uuid

import salt.utils.event
import salt.utils.user

try:
    from azure_events_engine import signature, text_table
    from azure_events_engine.engine import REPLY, REQUEST

    MISSING = None
except ImportError as error:
    MISSING = f"{error}: run salt-run saltutil.sync_utils, or install the package into the master's Python"

__virtualname__ = "azure_events"

_WAIT = 10


def __virtual__():
    return __virtualname__ if MISSING is None else (False, "azure_events: " + MISSING)


def status(event_id=None, table=False):
    """
    All maintenances, or the one of an event. Returns ``rows`` and ``problem``.

    table
        Return a text for people instead: a line about each event, and a table of its VMs.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.status
        salt-run azure_events.status table=True
        salt-run azure_events.status C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    return _shown(_request("status", event_id), text_table.events_as_text if table is True else None)


def fleet(table=False):
    """
    The minions that take part. Returns ``rows``, one for each minion, with ``minion``, ``vm``, ``name_from`` (table, pillar, id or
    observed), ``answered_seconds_ago``, ``problem`` and ``events``, those that the minion lists; and ``problem``.

    table
        Return a table for people instead.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.fleet
        salt-run azure_events.fleet table=True
    """
    return _shown(_request("fleet"), text_table.minions_as_text if table is True else None)


def prepare(event_id):
    """
    Ask the minions of an event again to prepare, also where that failed before. A minion prepares only for what its own IMDS lists.
    Returns ``rows`` and ``problem``.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.prepare C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    return _request("prepare", event_id)


def recover(event_id):
    """
    Ask the minions of an event again to recover. A minion recovers only what it has prepared, and only when its own IMDS no longer lists
    the event. Returns ``rows`` and ``problem``.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.recover C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    return _request("recover", event_id)


def approve(event_id, force=False):
    """
    Approve an event now. Fails with the reason where the engine withholds the approval. Returns ``rows`` and ``problem``.

    force Approve through a prepared minion although other VMs of the event are not ready, and
        although the event is held.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.approve C7061BAC-AFDC-4513-B24B-AA5F13A16123
        salt-run azure_events.approve C7061BAC-AFDC-4513-B24B-AA5F13A16123 force=True
    """
    return _request("approve", event_id, force=force is True)


def hold(event_id):
    """
    Do not approve an event until it is released, also one that is not listed yet. Returns ``rows`` and ``problem``.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.hold C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    return _request("hold", event_id)


def release(event_id):
    """
    Let the engine approve an event again that was held. Returns ``rows`` and ``problem``.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.release C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    return _request("release", event_id)


def _request(do, event_id=None, force=False):
    request = {
        "request_id": uuid.uuid4().hex,
        "do": do,
        "event_id": "" if event_id is None else str(event_id),
        "force": force,
        "by": salt.utils.user.get_specific_user(),
        "time": time.time(),
    }
    path = os.path.join(__opts__["cachedir"], "azure_events", "secret")
    try:
        request["signature"] = signature.sign(request, signature.read_secret(path))
    except OSError as error:
        return _failed(f"azure_events: {path} cannot be read: {error}; run the command as the user of the master")
    with salt.utils.event.get_master_event(__opts__, __opts__["sock_dir"], listen=True) as bus:
        bus.fire_event(request, REQUEST + request["request_id"])
        reply = bus.get_event(wait=_WAIT, tag=REPLY + request["request_id"])
    if reply is None:
        return _failed(
            "azure_events: no engine answers on this master; wait some seconds where the master has just started; else add "
            "'azure_events: {}' to 'engines' in the master's configuration, run 'salt-run saltutil.sync_all', and restart the master"
        )
    answer = {key: reply[key] for key in ("rows", "problem") if key in reply}
    return _failed(reply["error"], **answer) if "error" in reply else answer


def _shown(answer, as_text):
    """The answer, or its text; a function that failed has none."""
    return answer if as_text is None or "error" in answer else as_text(answer["rows"], answer["problem"])


def _failed(error, **more):
    """The answer of a function that failed: an exception would show the operator a traceback."""
    __context__["retcode"] = 1
    return {"error": error, "retcode": 1, **more}
