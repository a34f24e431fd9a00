# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Prepare, approve, wait and recover as states, in the order of their requisites.

.. versionadded:: 0.1.0

The following states act only if an event affects this VM:

.. code-block:: yaml

    something is coming:
      azure_events.pending

    prepare:
      cmd.run:
        - name: /usr/local/bin/leave-load-balancer
        - onchanges:
          - azure_events: something is coming

    let it start:
      azure_events.approved:
        - of: something is coming
        - types: [Freeze, Reboot, Redeploy]
        - require:
          - cmd: prepare
        - onchanges:
          - azure_events: something is coming

    it is over:
      azure_events.settled:
        - timeout: 1800
        - require:
          - azure_events: let it start
        - onchanges:
          - azure_events: something is coming

    recover:
      cmd.run:
        - name: /usr/local/bin/join-load-balancer
        - require:
          - azure_events: it is over
        - onchanges:
          - azure_events: something is coming

``of`` limits the approval to the events that were listed before the preparation, and without
``types`` to the types that they had. The VM is not prepared for an event that comes later, or that
becomes more severe.

These states suit events that the minion survives, such as a Freeze. A reboot ends the state run; for
reboots use the engine on the master, which calls the functions ``prepare`` and ``recover`` of the
execution module. The states :py:func:`prepared` and :py:func:`recovered` call them too:

.. code-block:: yaml

    C7061BAC-AFDC-4513-B24B-AA5F13A16123:
      azure_events.prepared: []

Every state fails if IMDS gives no good answer, because it is then unknown whether there are events.
The arguments of the selection (event_ids, types, statuses, sources, affects) and of the connection
(endpoint, api_version, resource_name, timeout) are those of the execution module.
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import time

from salt.exceptions import CommandExecutionError, SaltInvocationError

try:
    from azure_events_steps.answers import is_success
    from azure_events_watch.settings import parse_duration, selectable_types
except ImportError:
    is_success = parse_duration = selectable_types = None  # the execution module reports the same error

__virtualname__ = "azure_events"

# key in __context__ of the events that the states "pending" and "prepared" of this run have seen: by name of the state,
# the type of each event by its ID
_SEEN = "azure_events.seen"
_FIRST_ANSWER_TIMEOUT = 130.0


def __virtual__():
    if "azure_events.list" not in __salt__:
        return False, "azure_events: the execution module azure_events is not available"
    return __virtualname__


def prepared(name, by_hand=False):
    """Ensure that this minion has prepared for an event, with the steps of ``azure_events:prepare``.

    The steps run once in a boot, and again for a more severe event. The state fails if Azure does not list the event,
    if the event does not affect this VM, or if the minion's selection excludes it.

    Args:
        name: ID of the event, and the value for ``of`` of :py:func:`approved`.
        by_hand: prepare whatever Azure lists; the name is then a free text, and no value for ``of``.

    Returns:
        The result of the state.
    """
    return _run_job(name, by_hand, "prepare", {"old": "not prepared", "new": "prepared"})


def recovered(name, by_hand=False):
    """Ensure that this minion has recovered from an event, with the steps of ``azure_events:recover``.

    The state succeeds if the minion had not prepared for the event. It fails while Azure lists the
    event, or another one that the minion has prepared for.

    Args:
        name: ID of the event.
        by_hand: recover from a preparation by hand, and from every event that is over; the name is then
            a free text.

    Returns:
        The result of the state.
    """
    return _run_job(name, by_hand, "recover", {"old": "prepared", "new": "recovered"})


def pending(
    name,
    event_ids=None,
    types=None,
    statuses=None,
    sources=None,
    affects=None,
    endpoint=None,
    api_version=None,
    resource_name=None,
    timeout=130,
):
    """Report changes if a selected event is listed, for ``onchanges`` of other states.

    The state itself changes nothing.

    Args:
        name: a free text, and the value for ``of`` of :py:func:`approved`.
        event_ids: IDs of the selected events.
        types: event types of the selected events.
        statuses: statuses of the selected events.
        sources: sources of the selected events.
        affects: ``self``, ``any`` or names of VMs that the selected events affect.
        endpoint: of IMDS.
        api_version: of IMDS.
        resource_name: this VM's name.
        timeout: seconds in all.

    Returns:
        The result of the state.
    """
    seen = __context__.setdefault(_SEEN, {})
    seen.pop(name, None)
    try:
        found = __salt__["azure_events.list"](
            event_ids=event_ids,
            types=types,
            statuses=statuses,
            sources=sources,
            affects=affects,
            endpoint=endpoint,
            api_version=api_version,
            resource_name=resource_name,
            timeout=timeout,
        )
    except (CommandExecutionError, SaltInvocationError) as error:
        return _result(name, False, _error_text(error))
    if not found["events"] and not found["complete"]:
        return _result(name, False, "not all of the document could be read; it is unknown whether an event is there")
    seen[name] = {event["event_id"]: event["event_type"] for event in found["events"]}
    if not found["events"]:
        return _result(name, True, "No event is there")
    changes = {"events": {"old": [], "new": _ids(found["events"])}}
    return _result(name, None if __opts__["test"] else True, f"There is: {_event_list(found['events'])}", changes)


def approved(
    name,
    event_ids=None,
    types=None,
    statuses=None,
    sources=None,
    affects=None,
    policy=None,
    policy_file=None,
    prepared="none",
    gates=None,
    release_others=False,
    receipts=None,
    endpoint=None,
    api_version=None,
    resource_name=None,
    timeout=130,
    of=None,
):
    """Ensure that the selected events are approved, have started, or are over.

    No event is approved twice.

    Args:
        name: ID of the event, without selection, policy and ``of``. Else a free text.
        event_ids: IDs of the selected events.
        types: event types of the selected events.
        statuses: statuses of the selected events.
        sources: sources of the selected events.
        affects: ``self``, ``any`` or names of VMs that the selected events affect.
        policy: as for the function ``azure_events.approve``.
        policy_file: as for the function.
        prepared: as for the function. With ``require`` on the states that prepare, nothing is approved
            after a failed preparation.
        gates: as for the function.
        release_others: as for the function.
        receipts: as for the function.
        endpoint: of IMDS.
        api_version: of IMDS.
        resource_name: this VM's name.
        timeout: seconds in all.
        of: name of a state :py:func:`pending` or :py:func:`prepared` that has run before in this run. Only
            the events that it saw are approved; the state fails if that one could not read the events, or,
            without ``types``, if an event has a type now that it did not see. Events that affect other
            VMs too are then ignored, which is not a failure, as are events that only advise, or whose
            type, source or resource type is unknown, unless event_ids, types or a policy says otherwise.

    Returns:
        The result of the state.
    """
    selection = {"event_ids": event_ids, "types": types, "statuses": statuses, "sources": sources}
    if of is not None:
        if of not in __context__.get(_SEEN, {}):
            return _result(
                name,
                False,
                f"of: no state azure_events.pending or prepared with the name {of!r} has seen the events in this run",
            )
        chosen = _chosen(__context__[_SEEN][of], event_ids)
        selection.update(event_ids=list(chosen), types=selectable_types(chosen.values()) if types is None else types)
        if event_ids is None and types is None and policy is None and policy_file is None:
            # no operator has named these events: unless a policy decides, their IDs would release unknown types, too
            policy = {"rules": [{"name": f"seen by {of}", "approve": "now"}]}
    elif policy is None and policy_file is None and all(value is None for value in selection.values()):
        selection["event_ids"] = [name]
    try:
        done = __salt__["azure_events.approve"](
            affects=affects,
            policy=policy,
            policy_file=policy_file,
            prepared=prepared,
            gates=gates,
            release_others=release_others,
            receipts=receipts,
            endpoint=endpoint,
            api_version=api_version,
            resource_name=resource_name,
            timeout=timeout,
            test=bool(__opts__["test"]),
            **selection,
        )
    except (CommandExecutionError, SaltInvocationError) as error:
        done = getattr(error, "info", None)
        done = done if isinstance(done, dict) else {"approvals": [], "approved": []}
        if (
            of is None
            or event_ids is not None
            or not done["approvals"]
            or any(item["outcome"] == "failed" for item in done["approvals"])
        ):
            # in test mode nothing was approved, and a failure plans nothing
            return _result(name, False, _error_text(error), _approvals([] if __opts__["test"] else done["approved"]))
    comment = (
        "; ".join(f"{item['event_id']}: {item['outcome']}: {item['reason']}" for item in done["approvals"])
        or "No event is selected"
    )
    changed = _of_other_types(done["approvals"], chosen) if of is not None and types is None else []
    if changed:
        comment = f"{comment}; the type has changed since {of}: {', '.join(changed)}"
        return _result(name, False, comment, _approvals([] if __opts__["test"] else done["approved"]))
    if __opts__["test"] and done["changed"]:
        return _result(name, None, "Would be approved: " + ", ".join(done["approved"]), _approvals(done["approved"]))
    ret = _result(name, True, comment, _approvals(done["approved"]))
    if done["warnings"]:
        ret["warnings"] = done["warnings"]
    return ret


def settled(
    name,
    event_ids=None,
    types=None,
    statuses=None,
    sources=None,
    affects=None,
    endpoint=None,
    api_version=None,
    resource_name=None,
    timeout=1800,
    poll_interval=1,
):
    """Wait until all selected events are over.

    At least two good answers in a row, requested two seconds apart, must not list one.

    Args:
        name: a free text.
        event_ids: IDs of the selected events.
        types: event types of the selected events.
        statuses: statuses of the selected events.
        sources: sources of the selected events.
        affects: ``self``, ``any`` or names of VMs that the selected events affect.
        endpoint: of IMDS.
        api_version: of IMDS.
        resource_name: this VM's name.
        timeout: seconds in all, after which the state fails.
        poll_interval: seconds between two documents.

    Returns:
        The result of the state.
    """
    options = {
        "event_ids": event_ids,
        "types": types,
        "statuses": statuses,
        "sources": sources,
        "affects": affects,
        "endpoint": endpoint,
        "api_version": api_version,
        "resource_name": resource_name,
    }
    try:
        ends = time.monotonic() + parse_duration("timeout", timeout, 0.001)
        interval = parse_duration("poll_interval", poll_interval, 0.25)
    except ValueError as error:
        return _result(name, False, str(error))
    began = time.monotonic()
    try:
        found = __salt__["azure_events.list"](timeout=min(_FIRST_ANSWER_TIMEOUT, ends - began), **options)
    except SaltInvocationError as error:
        return _result(name, False, _error_text(error))
    except CommandExecutionError as error:
        # a failure of IMDS does not end the wait before the timeout
        if __opts__["test"] or time.monotonic() >= ends:
            return _result(name, False, _error_text(error))
        found = {"events": [], "complete": False}
    if __opts__["test"]:
        if _is_confirmed_absent(found):
            return _result(name, True, "No event is there")
        comment = f"Would wait for the end of: {_event_list(found['events'])}"
        return _result(name, None, comment, _ended_changes(found["events"]))
    try:
        __salt__["azure_events.wait"]("absent", timeout=_time_left(ends), poll_interval=interval, **options)
    except (CommandExecutionError, SaltInvocationError) as error:
        return _result(name, False, _error_text(error))
    if _is_confirmed_absent(found):
        return _result(name, True, "No event is there")
    comment = f"Over after {time.monotonic() - began:.0f} seconds"
    return _result(name, True, comment, _ended_changes(found["events"]))


def _chosen(seen, event_ids):
    """Return the types by ID of the events that another state has seen, without those that event_ids leaves out."""
    if event_ids is None:
        return seen
    wanted = {str(one).casefold() for one in ([event_ids] if isinstance(event_ids, str) else event_ids)}
    return {event_id: event_type for event_id, event_type in seen.items() if event_id.casefold() in wanted}


def _of_other_types(approvals, seen):
    """Return the IDs of the events that have not started, and have a type now that no event had before."""
    return [
        item["event_id"]
        for item in approvals
        if item["event"] and item["event"]["status"] != "Started" and item["event"]["event_type"] not in seen.values()
    ]


def _ended_changes(events):
    return {"events": {"old": _ids(events), "new": []}} if events else {}


def _run_job(name, by_hand, function, change):
    """Call ``prepare`` or ``recover``, and return the result of the state."""
    seen = __context__.setdefault(_SEEN, {})
    seen.pop(name, None)
    if not isinstance(by_hand, bool):
        return _result(name, False, f"by_hand: expected true or false, not {by_hand!r}")
    test = bool(__opts__["test"])
    try:
        answer = __salt__["azure_events." + function](None if by_hand else name, test=test)
    except (CommandExecutionError, SaltInvocationError) as error:
        return _result(name, False, _error_text(error))
    result = is_success(function, answer["outcome"])
    if function == "prepare" and result and answer["event"]:
        seen[name] = {answer["event"]["event_id"]: answer["event"]["event_type"]}
    changes = {}
    if answer["changed"]:
        changes[function] = change if result else {"old": change["old"], "new": answer["outcome"]}
        steps = {f"{number} {step['name']}": step["outcome"] for number, step in enumerate(answer["steps"], 1)}
        changes.update({"steps": steps} if steps else {})
    return _result(
        name, None if result and test and changes else result, f"{answer['outcome']}: {answer['reason']}", changes
    )


def _is_confirmed_absent(found):
    return not found["events"] and found["complete"]


def _time_left(ends):
    return max(0.1, ends - time.monotonic())


def _error_text(error):
    """Return the message of an error without Salt's additions."""
    return str(getattr(error, "error", error))


def _result(name, result, comment, changes=None):
    return {"name": name, "result": result, "comment": comment, "changes": changes or {}}


def _approvals(ids):
    return {"approved": {event_id: {"old": "not approved", "new": "approved"} for event_id in ids}} if ids else {}


def _ids(events):
    return [event["event_id"] for event in events]


def _event_list(events):
    return (
        ", ".join(f"{event['event_type']} {event['event_id']}, {event['status']}" for event in events)
        or "unknown events"
    )
