# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""
Do something about Azure Scheduled Events, in the order of requisites
=====================================================================

.. versionadded:: 0.1.0

Drain, approve, wait and bring back, if and only if an event concerns this VM:

.. code-block:: yaml

    something is coming:
      azure_events.pending

    drain:
      cmd.run:
        - name: /usr/local/bin/leave-load-balancer
        - onchanges:
          - azure_events: something is coming

    let it start:
      azure_events.approved:
        - types: [Freeze, Reboot, Redeploy]
        - require:
          - azure_events: something is coming
          - cmd: drain

    it is over:
      azure_events.settled:
        - timeout: 1800
        - require:
          - azure_events: let it start

    undrain:
      cmd.run:
        - name: /usr/local/bin/join-load-balancer
        - require:
          - azure_events: it is over
        - onchanges:
          - azure_events: something is coming

This fits events that the minion survives, such as a Freeze. A reboot ends the run: for that take the orchestration ``orch/maintenance.sls``.

Where IMDS gives no good answer every state fails: nobody knows then whether there are events. The selection words (event_ids, types, statuses,
sources, affects) and connection words (endpoint, api_version, resource_name, timeout) are those of the execution module.
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

from salt.exceptions import CommandExecutionError, SaltInvocationError

__virtualname__ = "azure_events"


def __virtual__():
    if "azure_events.list" not in __salt__:
        return False, "azure_events: the execution module azure_events is not available"
    return __virtualname__


def pending(name, event_ids=None, types=None, statuses=None, sources=None, affects=None,
            endpoint=None, api_version=None, resource_name=None, timeout=130):
    """
    Has changes when a selected event is there, so that other states can name it in ``onchanges``. It changes nothing itself.

    name
        For people.
    """
    try:
        found = __salt__["azure_events.list"](
            event_ids=event_ids, types=types, statuses=statuses, sources=sources, affects=affects,
            endpoint=endpoint, api_version=api_version, resource_name=resource_name, timeout=timeout,
        )
    except (CommandExecutionError, SaltInvocationError) as error:
        return _result(name, False, str(error))
    if not found["events"]:
        if not found["complete"]:
            return _result(name, False, "an entry of the document could not be read, so nobody knows whether an event is there")
        return _result(name, True, "No event is there")
    changes = {"events": {"old": [], "new": _ids(found["events"])}}
    return _result(name, None if __opts__["test"] else True, "There is: %s" % _told(found["events"]), changes)


def approved(name, event_ids=None, types=None, statuses=None, sources=None, affects=None,
             policy=None, policy_file=None, prepared="none", gates=None, release_others=False, receipts=None,
             endpoint=None, api_version=None, resource_name=None, timeout=130):
    """
    The selected events have been approved, or have started, or are over. Nothing is approved twice.

    name
        The id of the event, if neither event_ids nor another selection word nor a policy is given. Else for people.

    policy, policy_file, prepared, gates, release_others, receipts
        As for ``azure_events.approve``. With ``require`` on the states that drain, nothing is approved after a drain
        that failed.
    """
    words = {"event_ids": event_ids, "types": types, "statuses": statuses, "sources": sources}
    if policy is None and policy_file is None and all(word is None for word in words.values()):
        words["event_ids"] = [name]
    try:
        done = __salt__["azure_events.approve"](
            affects=affects, policy=policy, policy_file=policy_file, prepared=prepared, gates=gates, release_others=release_others,
            receipts=receipts, endpoint=endpoint, api_version=api_version, resource_name=resource_name, timeout=timeout,
            test=bool(__opts__["test"]), **words,
        )
    except (CommandExecutionError, SaltInvocationError) as error:
        info = getattr(error, "info", None)
        return _result(name, False, str(error), _approvals(info["approved"] if isinstance(info, dict) else []))
    comment = "; ".join("%(event_id)s: %(outcome)s: %(reason)s" % item for item in done["approvals"]) or "No event is selected"
    if __opts__["test"] and done["changed"]:
        return _result(name, None, "Would be approved: " + ", ".join(done["approved"]), _approvals(done["approved"]))
    ret = _result(name, True, comment, _approvals(done["approved"]))
    if done["warnings"]:
        ret["warnings"] = done["warnings"]
    return ret


def settled(name, event_ids=None, types=None, statuses=None, sources=None, affects=None,
            endpoint=None, api_version=None, resource_name=None, timeout=1800, poll_interval=1):
    """
    No selected event is there; if there is one, wait until it is over. Fails after timeout seconds.

    name
        For people.
    """
    words = {"event_ids": event_ids, "types": types, "statuses": statuses, "sources": sources, "affects": affects}
    where = {"endpoint": endpoint, "api_version": api_version, "resource_name": resource_name}
    try:
        found = __salt__["azure_events.list"](timeout=min(130, timeout), **words, **where)
    except SaltInvocationError as error:
        return _result(name, False, str(error))
    except CommandExecutionError as error:
        # not known now is no reason to give up before the time is up
        if __opts__["test"]:
            return _result(name, False, str(error))
        found = {"events": [], "complete": False}
    if not found["events"] and found["complete"]:
        return _result(name, True, "No event is there")
    changes = {"events": {"old": _ids(found["events"]), "new": []}} if found["events"] else {}
    if __opts__["test"]:
        return _result(name, None, "Would wait for the end of: %s" % _told(found["events"]), changes)
    try:
        waited = __salt__["azure_events.wait"]("absent", timeout=timeout, poll_interval=poll_interval, **words, **where)
    except (CommandExecutionError, SaltInvocationError) as error:
        return _result(name, False, str(error))
    return _result(name, True, "Over after %.0f seconds" % waited["elapsed"], changes)


def _result(name, result, comment, changes=None):
    return {"name": name, "result": result, "comment": comment, "changes": changes or {}}


def _approvals(ids):
    return {"approved": {event_id: {"old": "not approved", "new": "approved"} for event_id in ids}} if ids else {}


def _ids(events):
    return [event["event_id"] for event in events]


def _told(events):
    return ", ".join("%(event_type)s %(event_id)s, %(status)s" % event for event in events) or "unknown events"
