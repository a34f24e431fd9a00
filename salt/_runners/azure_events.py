# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Show and control the maintenance engine of this master, and push the reports of beacons.

.. versionadded:: 0.1.0

All functions but :py:func:`push` send requests to the engine ``azure_events`` over the master's bus. The
engine runs if the master's configuration has

.. code-block:: yaml

    engines:
      - azure_events: {}

All of these but :py:func:`fleet` return ``rows``, one for each event and VM. A row has ``event_id``,
``event_type``, ``not_before``, ``vm``, ``minion``, ``prepared`` (the state of the minion's own
record), ``approved``, ``waiting_for``, ``withheld`` (why the event is not approved) and ``why_not``
(why this VM is not ready). All answers of the engine also have ``problem``, which prevents the engine
from its work, or an empty text.

A function that fails returns ``error`` and the ``retcode`` 1, with which ``salt-run`` then exits.
"""

# Salt's loader puts __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import json
import os
import time
import uuid

import salt.utils.event
import salt.utils.http
import salt.utils.user

try:
    from azure_events_engine import beacon_report, signature, text_table
    from azure_events_engine.engine import REPLY, REQUEST

    MISSING = None
except ImportError as error:
    MISSING = f"{error}: run salt-run saltutil.sync_utils, or install the package into the master's Python"

__virtualname__ = "azure_events"

# how often a request is sent while no reply comes, because the bus of a busy master loses events, and seconds between
_ATTEMPTS = 4
_WAIT = 2.5


def __virtual__():
    return __virtualname__ if MISSING is None else (False, "azure_events: " + MISSING)


def status(event_id=None, table=False):
    """Return all maintenances, or the one of an event.

    Args:
        event_id: of the event; by default all.
        table: return a text: a line about each event, and a table of its VMs.

    Returns:
        A dictionary with ``rows`` and ``problem``, or with ``error``; see the module.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.status
        salt-run azure_events.status table=True
        salt-run azure_events.status C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    return _shown(_request("status", event_id), text_table.events_as_text if table is True else None)


def fleet(table=False):
    """Return the minions that take part.

    Args:
        table: return a text with a table.

    Returns:
        A dictionary with ``rows``, one for each minion: ``minion``, ``vm``, ``name_from`` (table,
        pillar, id or observed), ``answered_seconds_ago``, ``problem``, and ``events`` that the minion
        lists; and ``problem`` of the engine.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.fleet
        salt-run azure_events.fleet table=True
    """
    return _shown(_request("fleet"), text_table.minions_as_text if table is True else None)


def prepare(event_id):
    """Retry the preparation of the minions of an event at once.

    A minion prepares only for an event that its own IMDS lists.

    Args:
        event_id: of the event.

    Returns:
        A dictionary with ``rows`` and ``problem``, or with ``error``; see the module.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.prepare C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    return _request("prepare", event_id)


def recover(event_id):
    """Retry the recovery of the minions of an event at once.

    A minion recovers only from its own preparation, when its own IMDS no longer lists the event.

    Args:
        event_id: of the event.

    Returns:
        A dictionary with ``rows`` and ``problem``, or with ``error``; see the module.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.recover C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    return _request("recover", event_id)


def approve(event_id, force=False):
    """Approve an event now.

    The function fails with the reason if the engine withholds the approval.

    Args:
        event_id: of the event.
        force: approve through a prepared minion although other VMs of the event are not ready, the
            event is held, or this version does not know its type, status, source or resource type.

    Returns:
        A dictionary with ``rows`` and ``problem``, or with ``error``; see the module.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.approve C7061BAC-AFDC-4513-B24B-AA5F13A16123
        salt-run azure_events.approve C7061BAC-AFDC-4513-B24B-AA5F13A16123 force=True
    """
    return _request("approve", event_id, force=force is True)


def hold(event_id):
    """Do not approve an event until it is released.

    The event need not be listed yet.

    Args:
        event_id: of the event.

    Returns:
        A dictionary with ``rows`` and ``problem``, or with ``error``; see the module.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.hold C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    return _request("hold", event_id)


def release(event_id):
    """Let the engine approve an event again that was held.

    Args:
        event_id: of the event.

    Returns:
        A dictionary with ``rows`` and ``problem``, or with ``error``; see the module.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.release C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    return _request("release", event_id)


def push(url, header_file, report):
    """Push a change that a beacon reports to Event-Driven Ansible.

    The function tries once, and fails if the endpoint redirects. ``salt://reactor/azure_events_push.sls`` calls it.

    Args:
        url: of the endpoint.
        header_file: path of a file with a header in each line, such as the bearer token.
        report: the data of the beacon's event: as JSON, or as the dictionary that ``salt-run`` makes of it.

    Returns:
        A dictionary with ``body``, or with ``error``; an empty dictionary for a report that is not of a change.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.push https://eda.example.com:5000/endpoint /etc/salt/azure_events_push.headers "$REPORT"
    """
    try:
        given = report if isinstance(report, dict) else json.loads(report)
    except (TypeError, ValueError) as error:
        return _failed(f"report: {error}; pass the data of the beacon's event as JSON")
    if not isinstance(given, dict):
        return _failed("report: not an object; pass the data of the beacon's event as JSON")
    change = beacon_report.change_of(given)
    if change is None:
        return {}
    data = json.dumps(change)
    answer = salt.utils.http.query(
        url, method="POST", header_file=header_file, data=data, opts=__opts__, node="master", handle=True
    )
    if "error" in answer:
        return _failed(**answer)
    # both backends of Salt, requests and tornado, follow a redirect, mostly by a GET, which pushes nothing
    reached = answer["handle"]
    final = getattr(reached, "effective_url", None) or getattr(reached, "url", url)
    if getattr(reached, "history", None) or getattr(reached, "effective_url", url) != url:
        return _failed(f"{url}: it redirects the push to {final}; set the final address")
    return {"body": (answer["body"] or b"").decode("utf-8", "replace")}


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
        for _attempt in range(_ATTEMPTS):
            bus.fire_event(request, REQUEST + request["request_id"])
            reply = bus.get_event(wait=_WAIT, tag=REPLY + request["request_id"])
            if reply is not None:
                break
    if reply is None:
        return _failed(
            "azure_events: no engine answers on this master; wait some seconds if the master has just started; "
            "else add 'azure_events: {}' to 'engines' in the master's configuration, run 'salt-run saltutil.sync_all', "
            "and restart the master"
        )
    answer = {key: reply[key] for key in ("rows", "problem") if key in reply}
    return _failed(reply["error"], **answer) if "error" in reply else answer


def _shown(answer, as_text):
    """Return the answer, or its text; a function that failed has none."""
    return answer if as_text is None or "error" in answer else as_text(answer["rows"], answer["problem"])


def _failed(error, **more):
    """Return the answer of a function that failed. An exception would show the operator a traceback."""
    __context__["retcode"] = 1
    return {"error": error, "retcode": 1, **more}
