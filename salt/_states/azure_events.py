# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""
Do something about Azure Scheduled Events, in the order of requisites
=====================================================================

.. versionadded:: 0.1.0

Prepare, approve, wait and recover, if and only if an event concerns this VM:

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

``of`` limits the approval to the events that were there when the VM was prepared; it is not
prepared for one that comes later.

This fits events that the minion survives, such as a Freeze. A reboot ends the run: for that take
the engine on the master, which calls the functions ``prepare`` and ``recover`` of the execution
module. The states :py:func:`prepared` and :py:func:`recovered` call them too:

.. code-block:: yaml

    C7061BAC-AFDC-4513-B24B-AA5F13A16123:
      azure_events.prepared: []

Where IMDS gives no good answer every state fails: nobody knows then whether there are events. The
selection words (event_ids, types, statuses, sources, affects) and connection words (endpoint,
api_version, resource_name, timeout) are those of the execution module.
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import time

from salt.exceptions import CommandExecutionError, SaltInvocationError

try:
    from azure_events_watch.ledger import ABSENCES_NEEDED
    from azure_events_watch.settings import parse_duration
except ImportError:
    parse_duration = ABSENCES_NEEDED = None  # the execution module is not available either, and says why

__virtualname__ = "azure_events"

# what the states "pending" of this run have seen, by their names
_SEEN = "azure_events.pending"
_FIRST_ANSWER_TIMEOUT = 130.0
# outcomes of prepare and recover with which the state is reached, or would be
_REACHED = ("prepared", "already_prepared", "would_prepare", "recovered", "not_prepared", "would_recover")


def __virtual__():
    if "azure_events.list" not in __salt__:
        return False, "azure_events: the execution module azure_events is not available"
    return __virtualname__


def prepared(name, by_hand=False):
    """
    This minion has prepared for an event, with the steps of ``azure_events:prepare``. They run once in a boot.

    Fails for an event that Azure does not list now, that does not hit this VM, or that the minion's
    own selection leaves out.

    name
        The id of the event.

    by_hand
        Prepare whatever Azure lists; the name is for people then.
    """
    return _run_job(name, by_hand, "prepare", {"old": "not prepared", "new": "prepared"})


def recovered(name, by_hand=False):
    """
    This minion has recovered from an event that it had prepared for, with the steps of ``azure_events:recover``, or had not prepared for it.

    Fails while Azure lists the event, or another one that the minion has prepared for.

    name
        The id of the event.

    by_hand Recover from a preparation by hand, and from every event that is over; the name is for
        people then.
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
    """
    Has changes when a selected event is there, so that other states can name it in ``onchanges``. It changes nothing itself.

    name
        For people, and for ``of`` of :py:func:`approved`.
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
        return _result(name, False, "not all of the document could be read, so nobody knows whether an event is there")
    seen[name] = _ids(found["events"])
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
    """
    The selected events have been approved, or have started, or are over. Nothing is approved twice.

    name The id of the event, if neither event_ids nor another selection word nor a policy nor
        ``of`` is given. Else for people.

    of Name of a state :py:func:`pending` that has run before in this run: no other events than
        those that it saw are approved. If it was not able to see, this fails. Events that hit other
        VMs too are left alone then, which is no failure.

    policy, policy_file, prepared, gates, release_others, receipts As for ``azure_events.approve``.
        With ``require`` on the states that prepare, nothing is approved after a preparation that
        failed.
    """
    words = {"event_ids": event_ids, "types": types, "statuses": statuses, "sources": sources}
    if of is not None:
        if of not in __context__.get(_SEEN, {}):
            return _result(
                name,
                False,
                f"of: no state azure_events.pending with the name {of!r} has seen the events in this run",
            )
        seen = __context__[_SEEN][of]
        wanted = (
            None
            if event_ids is None
            else {str(one).casefold() for one in ([event_ids] if isinstance(event_ids, str) else event_ids)}
        )
        words["event_ids"] = [event_id for event_id in seen if wanted is None or event_id.casefold() in wanted]
    elif policy is None and policy_file is None and all(word is None for word in words.values()):
        words["event_ids"] = [name]
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
            **words,
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
    """
    No selected event is there; if there is one, wait until it is over: until two good answers in a row do not list it. Fails after
    timeout seconds in all.

    name
        For people.
    """
    words = {"event_ids": event_ids, "types": types, "statuses": statuses, "sources": sources, "affects": affects}
    where = {"endpoint": endpoint, "api_version": api_version, "resource_name": resource_name}
    try:
        ends = time.monotonic() + parse_duration("timeout", timeout, 0.001)
        interval = parse_duration("poll_interval", poll_interval, 0.25)
    except ValueError as error:
        return _result(name, False, str(error))
    began = time.monotonic()
    try:
        found = __salt__["azure_events.list"](timeout=min(_FIRST_ANSWER_TIMEOUT, ends - began), **words, **where)
    except SaltInvocationError as error:
        return _result(name, False, _error_text(error))
    except CommandExecutionError as error:
        # not known now is no reason to give up before the time is up
        if __opts__["test"] or time.monotonic() >= ends:
            return _result(name, False, _error_text(error))
        found = {"events": [], "complete": False}
    changes = {"events": {"old": _ids(found["events"]), "new": []}} if found["events"] else {}
    if __opts__["test"]:
        if _is_confirmed_absent(found):
            return _result(name, True, "No event is there")
        return _result(name, None, f"Would wait for the end of: {_event_list(found['events'])}", changes)
    waited = not _is_confirmed_absent(found)
    absences = 0 if waited else 1
    while absences < ABSENCES_NEEDED:
        try:
            if absences == 0:
                __salt__["azure_events.wait"](
                    "absent", timeout=_time_left(ends), poll_interval=interval, **words, **where
                )
                break  # it counts the documents itself
            time.sleep(min(interval, _time_left(ends) / 2))
            again = __salt__["azure_events.list"](
                timeout=min(_FIRST_ANSWER_TIMEOUT, _time_left(ends)), **words, **where
            )
        except (CommandExecutionError, SaltInvocationError) as error:
            # an answer that is none neither counts nor takes back what was seen
            if absences == 0 or time.monotonic() >= ends:
                return _result(name, False, _error_text(error))
            continue
        absences = absences + 1 if _is_confirmed_absent(again) else 0
        waited = waited or absences == 0
        if again["events"] and not changes:
            changes = {"events": {"old": _ids(again["events"]), "new": []}}
    return _result(
        name, True, f"Over after {time.monotonic() - began:.0f} seconds" if waited else "No event is there", changes
    )


def _run_job(name, by_hand, function, change):
    """What came of ``prepare`` or ``recover``, as a state tells it."""
    if not isinstance(by_hand, bool):
        return _result(name, False, f"by_hand: expected true or false, not {by_hand!r}")
    test = bool(__opts__["test"])
    try:
        answer = __salt__["azure_events." + function](None if by_hand else name, test=test)
    except (CommandExecutionError, SaltInvocationError) as error:
        return _result(name, False, _error_text(error))
    changes = {}
    if answer["changed"]:
        changes[function] = (
            change if answer["outcome"] in _REACHED else {"old": change["old"], "new": answer["outcome"]}
        )
        steps = {f"{number} {step['name']}": step["outcome"] for number, step in enumerate(answer["steps"], 1)}
        changes.update({"steps": steps} if steps else {})
    result = answer["outcome"] in _REACHED
    return _result(
        name, None if result and test and changes else result, f"{answer['outcome']}: {answer['reason']}", changes
    )


def _is_confirmed_absent(found):
    return not found["events"] and found["complete"]


def _time_left(ends):
    return max(0.1, ends - time.monotonic())


def _error_text(error):
    """The sentence of an error, without what Salt appends to it."""
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
