# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""
Azure Scheduled Events of a fleet: who is hit, and one maintenance for each event
=================================================================================

.. versionadded:: 0.1.0

A beacon tells that something happens, perhaps twice, late, or from several minions of one event. So nothing is done on its word:
:py:func:`react` starts one orchestration for each event at a time, and that asks the minions themselves with :py:func:`look`.

:configuration: Keys of the master's configuration, with their defaults:

    .. code-block:: yaml

        azure_events:
          minions: '*'                      # who may be hit
          minions_type: glob
          unknown_resources: hold           # or approve, though an event hits VMs that are no minions
          patience: 3600                    # seconds to wait for the end of an event
          answer: 5                         # seconds to wait for answers of minions
          orchestration: orch.maintenance
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time

import salt.client
import salt.runner
from salt.exceptions import CommandExecutionError, SaltInvocationError

try:
    import fcntl
except ImportError:
    fcntl = None

log = logging.getLogger(__name__)

__virtualname__ = "azure_events"

_DEFAULTS = {
    "minions": "*",
    "minions_type": "glob",
    "unknown_resources": "hold",
    "patience": 3600,
    "answer": 5,
    "orchestration": "orch.maintenance",
}
_CHANGES = ("scheduled", "changed", "started", "gone")
_PAUSE = 5.0
_FIND_JOB = 2
# good answers in a row that do not list the event
_SIGHTS_OF_ABSENCE = 2
# when it is over for some, those that do not answer may still be booting; they tell of the end themselves when they are back
_GRACE = 15.0


def __virtual__():
    return __virtualname__ if fcntl is not None else (False, "azure_events: needs a master on a POSIX system")


def fleet(tgt=None, tgt_type=None):
    """
    What the beacons of all minions last saw, by id of the event. IMDS is not asked.

    Returns for each event: ``event``, as the latest beacon has it; and ``minions``, a dictionary with a minion, or None, for each of its
    resources.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.fleet
    """
    found = {}
    seen = _seen(tgt, tgt_type)
    for beacons in seen.values():
        for status in beacons.values():
            for event in status["events"]:
                known = found.get(event["event_id"].casefold())
                if event["change"] != "gone" and (known is None or known["changed_at"] < event["changed_at"]):
                    found[event["event_id"].casefold()] = event
    return {event["event_id"]: {"event": event, "minions": _minions_of(event, _knowing(seen, event["event_id"]))} for event in found.values()}


def look(event_id, minion=None, tgt=None, tgt_type=None):
    """
    Ask the minions that an event hits whether Azure still lists it.

    Returns a dictionary: ``listed``, True or False, or None when nobody could tell; ``event``, as it is now, else None; ``minions``, the minion
    for each resource as far as one is known; ``unknown_resources``; and ``silent``, minions that gave no good answer.

    minion
        Asked in any case: the one that told of the event.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.look C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    _check_id(event_id)
    seen = _seen(tgt, tgt_type)
    last = _latest(seen, event_id)
    names = _names(seen)
    asked = {one for one, name in names.items() if last is not None and _hits(last, name)}
    answers = _ask(sorted(asked | ({minion} if minion else set())), event_id)
    event = next((answer for answer in answers.values() if answer), None)
    if event is not None:
        # more VMs may have come to it since a beacon told of it
        late = {one for one, name in names.items() if _hits(event, name)} - set(answers)
        answers.update(_ask(sorted(late), event_id))
        hit = _minions_of(event, {one: names[one] for one, answer in answers.items() if answer and one in names})
    elif last is not None:
        hit = _minions_of(last, _knowing(seen, event_id))
    else:
        hit = {}
    listed = True if event is not None else (False if answers else None)
    return {
        "event_id": event_id,
        "listed": listed,
        "event": event,
        "minions": {resource: one for resource, one in hit.items() if one is not None},
        "unknown_resources": [resource for resource, one in hit.items() if one is None],
        "silent": sorted((asked | ({minion} if minion else set())) - set(answers)),
    }


def react(event_id, minion=None, change=None):
    """
    Start the maintenance for an event in a process of its own, and return at once. For the reactor.

    Returns a dictionary with ``outcome``: "started", with the job's id in ``jid``; or "running", when it is under way already.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.react C7061BAC-AFDC-4513-B24B-AA5F13A16123 vm1 scheduled
    """
    _check_id(event_id)
    if change is not None and change not in _CHANGES:
        raise SaltInvocationError("change: expected one of %s, not %r" % (", ".join(_CHANGES), change))
    with _alone(event_id) as free:
        if not free:
            return {"outcome": "running", "event_id": event_id}
    low = {"fun": "azure_events.maintain", "event_id": event_id, "minion": minion}
    published = salt.runner.RunnerClient(__opts__).asynchronous(low["fun"], low, user="reactor")
    return {"outcome": "started", "event_id": event_id, "jid": published["jid"]}


def maintain(event_id, minion=None):
    """
    Run the orchestration for an event, unless that is under way. Safe to repeat.

    Returns what ``state.orchestrate`` returns, or a dictionary with ``outcome`` "running".

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.maintain C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    _check_id(event_id)
    with _alone(event_id) as free:
        if not free:
            return {"outcome": "running", "event_id": event_id}
        pillar = {"azure_events": dict(_settings(), event_id=event_id, minion=minion)}
        return __salt__["state.orchestrate"](mods=_settings()["orchestration"], pillar=pillar)


def approve(event_id, minions, unknown_resources=None):
    """
    Approve an event for all minions that it hits, which have to be ready. The first of them that answers does it.

    Returns a dictionary: ``minion``, which did it, ``outcome`` (approved, already_approved or started) and ``reason``. Fails otherwise; so it does when
    more VMs have come to the event meanwhile.

    minions
        The minion for each resource, as :py:func:`look` has it.

    unknown_resources
        ``approve`` to release other VMs than these, too.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.approve C7061BAC-AFDC-4513-B24B-AA5F13A16123 '{vm1: vm1.example.com}'
    """
    _check_id(event_id)
    words = {"event_ids": [event_id], "affects": ["any"], "release_others": True, "timeout": max(1, _settings()["answer"] - 2)}
    if (unknown_resources or _settings()["unknown_resources"]) != "approve":
        # decided on the minion, by the event as it is then
        words["policy"] = {"rules": [{"name": "all of its VMs are ready", "when": {"resources": {"all": list(minions)}}, "do": "approve"}]}
    reason = "no minion answered"
    for one in dict.fromkeys(minions.values()):
        answer = _command([one], "azure_events.approve", "list", words).get(one)
        for item in answer["approvals"] if isinstance(answer, dict) else []:
            if item["outcome"] in ("approved", "already_approved", "started"):
                return {"minion": one, "outcome": item["outcome"], "reason": item["reason"]}
            reason = "%s: %s: %s" % (one, item["outcome"], item["reason"])
    raise CommandExecutionError("event %s was not approved: %s" % (event_id, reason))


def await_end(event_id, minions, patience=None):
    """
    Wait until an event is over. Minions that cannot be reached, because they reboot, are asked again and again.

    Returns a dictionary: ``over``, the minions that said so; ``waiting``, the others; and ``comment``. Fails after patience seconds. Once it is over for
    one, those that do not answer are waited for no longer than 15 seconds: their beacons tell of the end when they are back.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.await_end C7061BAC-AFDC-4513-B24B-AA5F13A16123 '[vm1, vm2]'
    """
    _check_id(event_id)
    started = time.monotonic()
    limit = float(_settings()["patience"] if patience is None else patience)
    absences = dict.fromkeys(minions, 0)
    first_end = None
    listing = set()
    while True:
        for one, answer in _ask(sorted(minions), event_id).items():
            absences[one] = 0 if answer else absences.get(one, 0) + 1
            (listing.add if answer else listing.discard)(one)
        over = sorted(one for one, count in absences.items() if count >= _SIGHTS_OF_ABSENCE)
        now = time.monotonic()
        if over and first_end is None:
            first_end = now
        waiting = sorted(set(minions) - set(over))
        late = first_end is not None and now - first_end >= _GRACE and not listing
        if not waiting or late or now - started >= limit:
            break
        time.sleep(max(0.1, min(_PAUSE, limit - (now - started))))
    comment = "event %s is over for %s" % (event_id, ", ".join(over) or "nobody")
    if waiting:
        comment += "; %s did not say so within %.0f seconds" % (", ".join(waiting), now - started)
    if not over or listing:
        raise CommandExecutionError(comment)
    return {"over": over, "waiting": waiting, "comment": comment}


def _settings():
    settings = dict(_DEFAULTS)
    given = __opts__.get("azure_events")
    settings.update({key: value for key, value in (given or {}).items() if key in _DEFAULTS})
    if settings["unknown_resources"] not in ("hold", "approve"):
        raise SaltInvocationError("azure_events: unknown_resources has to be hold or approve, not %r" % settings["unknown_resources"])
    return settings


def _check_id(event_id):
    # it comes from a minion, and goes into a file's name and into log lines
    if not isinstance(event_id, str) or not event_id.strip() or len(event_id) > 200 or not event_id.isprintable():
        raise SaltInvocationError("event_id: expected the id of an event, not %r" % (event_id,))


def _seen(tgt, tgt_type):
    """The answer of every minion that has the module to watch_status."""
    settings = _settings()
    answers = _command(tgt or settings["minions"], "azure_events.watch_status", tgt_type or settings["minions_type"])
    return {one: answer for one, answer in answers.items() if isinstance(answer, dict)}


def _ask(minions, event_id):
    """The event, or None where it is not listed, by minion; those that gave no good answer are left out."""
    if not minions:
        return {}
    patience = _settings()["answer"]
    # as keyword, since Salt takes the words of positional arguments apart
    answers = _command(minions, "azure_events.get", "list", {"event_id": event_id, "timeout": max(1, patience - 2)})
    return {one: answer for one, answer in answers.items() if answer is None or (isinstance(answer, dict) and "event_id" in answer)}


def _command(tgt, fun, tgt_type, kwarg=None):
    """The good answers by minion; who failed or did not answer is left out."""
    with salt.client.get_local_client(__opts__["conf_file"]) as client:
        # without an own limit one minion that is down costs the master's gather_job_timeout, and an eviction is 30 seconds away
        answers = client.cmd(
            tgt, fun, timeout=_settings()["answer"], tgt_type=tgt_type, kwarg=kwarg, full_return=True, gather_job_timeout=_FIND_JOB
        )
    good = {}
    for one, answer in answers.items():
        if isinstance(answer, dict) and answer.get("retcode", 1) == 0 and "ret" in answer:
            good[one] = answer["ret"]
    return good


def _names(seen):
    """The resource name of each minion whose beacon knows it."""
    return {
        one: status["resource_name"] for one, beacons in seen.items() for status in beacons.values() if status.get("resource_name")
    }


def _knowing(seen, event_id):
    """The resource names of the minions whose beacons know the event: names alone may be taken twice in a fleet."""
    knowing = {
        one for one, beacons in seen.items() for status in beacons.values() for event in status["events"] if _same(event["event_id"], event_id)
    }
    return {one: name for one, name in _names(seen).items() if one in knowing}


def _latest(seen, event_id):
    events = [event for beacons in seen.values() for status in beacons.values() for event in status["events"] if _same(event["event_id"], event_id)]
    return max(events, key=lambda event: event["changed_at"], default=None)


def _minions_of(event, names):
    """Resource -> minion, or None, in the order of the event."""
    return {
        resource: next((one for one, name in sorted(names.items()) if _is_vm(resource, name)), None) for resource in event["resources"]
    }


def _hits(event, name):
    return any(_is_vm(resource, name) for resource in event["resources"])


def _is_vm(resource, name):
    # the oldest api-version puts an underscore before the names of VMs
    return _same(resource, name) or (_same(resource, "_" + name) and not name.startswith("_"))


def _same(one, two):
    return one.casefold() == two.casefold()


@contextlib.contextmanager
def _alone(event_id):
    """Whether nobody else works on the event. The lock goes with the process that holds it, however that ends."""
    folder = os.path.join(__opts__["cachedir"], "azure_events", "locks")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, hashlib.sha256(event_id.casefold().encode("utf-8", "backslashreplace")).hexdigest())
    with open(path, "w", encoding="ascii") as file:
        held = _locked(file, path)
        try:
            yield held
        finally:
            if held:
                os.unlink(path)


def _locked(file, path):
    # another may look for a moment whether it is free
    for _attempt in range(5):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(0.1)
            continue
        try:
            return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
        except FileNotFoundError:
            return False  # who held it has just removed it, and the beacon will tell again
    return False
