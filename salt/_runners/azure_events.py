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

    Seconds may be written ``90s``, ``15m`` or ``2h``.
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import re
import subprocess
import sys
import tempfile
import time

import salt.client
import salt.utils.minions
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
# good answers in a row that do not list the event; ABSENCES_NEEDED of the helper, which is not synced to a master
_ABSENCES_NEEDED = 2
# when it is over for some, those that do not answer may still be booting; they tell of the end themselves when they are back
_GRACE = 15.0
# after these a VM is no more, and answers nothing; it counts as lost after so many seconds without a word
_ENDING = ("preempt", "terminate")
_LOST = 60.0
# the helper has the same, but a master has nothing but this runner
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)", re.IGNORECASE)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_LEAST = {"patience": 0.0, "answer": 1.0}
# salt-run in a process that begins anew, and is nobody's child. A fork of the reactor would do, had that no threads: what one of them has locked at that
# moment stays locked in the fork for ever
_SALT_RUN = "import os, sys\nif os.fork():\n    os._exit(0)\nsys.argv[0] = 'salt-run'\nfrom salt.scripts import salt_run\nsalt_run()\n"
# tells that process which descriptor holds the lock that it was given along
_GIVEN_LOCK = "AZURE_EVENTS_LOCK"


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
    seen = _seen(tgt, tgt_type)[1]
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
    for each resource as far as one is known; ``unknown_resources``, which no minion has; ``unready``, minions that it hits, or may hit, and that
    did not say that they list it; and ``silent``, minions that gave no good answer.

    A minion may be hit if Azure's name for its VM, as its beacon last told it to this master, is among the resources; or if it is silent, its name was never
    told, and there are resources that no other minion has.

    minion
        Asked in any case: the one that told of the event.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.look C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    _check_id(event_id)
    return _look(event_id, [minion] if minion else [], tgt, tgt_type)


def react(event_id, minion=None, change=None):
    """
    Start the maintenance for an event in a process of its own, and return at once. For the reactor.

    Returns a dictionary with ``outcome``: "started"; or "running", when it is under way already. That the event is gone is not lost then: the maintenance
    runs once more when it has come to its end.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.react C7061BAC-AFDC-4513-B24B-AA5F13A16123 vm1 scheduled
    """
    _check_id(event_id)
    _settings()  # a mistake in them is told here, and not in a process that nobody sees
    if change is not None and change not in _CHANGES:
        raise SaltInvocationError("change: expected one of %s, not %r" % (", ".join(_CHANGES), change))
    if change == "gone":
        # before it is looked who works, so that whoever does so finds it afterwards
        _leave_word(event_id)
    lock = _lock(event_id)
    if lock is None:
        return {"outcome": "running", "event_id": event_id}
    try:
        _start_maintenance(event_id, minion, lock)
    except (OSError, subprocess.SubprocessError) as error:
        _unlock(event_id, lock)
        raise CommandExecutionError("the maintenance for event %s could not be started: %s" % (event_id, error)) from None
    # it is held by the process that was started, and goes with that
    lock.close()
    return {"outcome": "started", "event_id": event_id}


def maintain(event_id, minion=None):
    """
    Run the orchestration for an event, unless that is under way. Safe to repeat.

    Returns what ``state.orchestrate`` returns, or a dictionary with ``outcome`` "running". It runs again when a minion told meanwhile that the event is gone.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.maintain C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    _check_id(event_id)
    while True:
        lock = _given_lock() or _lock(event_id)
        if lock is None:
            return {"outcome": "running", "event_id": event_id}
        try:
            _take_word(event_id)
            settings = _settings()
            pillar = {"azure_events": dict(settings, event_id=event_id, minion=minion)}
            result = __salt__["state.orchestrate"](mods=settings["orchestration"], pillar=pillar)
        finally:
            _unlock(event_id, lock)
        # one that failed, or approved nothing, would leave the minions drained until the end is told again
        if not os.path.exists(_path_of(event_id, "end")):
            return result


def approve(event_id, minions, unknown_resources=None):
    """
    Approve an event for all minions that it hits, which have to be ready. The first of them that answers does it.

    Returns a dictionary: ``minion``, which did it, ``outcome`` (approved, already_approved or started) and ``reason``. Fails otherwise; so it does when
    more VMs have come to the event meanwhile.

    minions
        The minion for each resource, as :py:func:`look` has it.

    unknown_resources
        ``approve`` to release VMs, too, that no minion has. The minions are asked again for that, and nothing is approved while one is silent, or does
        not list the event yet, that it may hit.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.approve C7061BAC-AFDC-4513-B24B-AA5F13A16123 '{vm1: vm1.example.com}'
    """
    _check_id(event_id)
    settings = _settings()
    if unknown_resources not in (None, "hold", "approve"):
        raise SaltInvocationError("unknown_resources has to be hold or approve, not %r" % (unknown_resources,))
    released = list(minions)
    if (unknown_resources or settings["unknown_resources"]) == "approve":
        now = _look(event_id, minions.values(), None, None)
        if now["unready"]:
            raise CommandExecutionError(
                "event %s was not approved: it may hit %s, where it is not known to be listed" % (event_id, ", ".join(now["unready"]))
            )
        released += now["unknown_resources"]
    # decided on the minion, by the event as it is then
    rule = {"name": "all of its VMs are ready", "when": {"resources": {"all": released}}, "do": "approve"}
    words = {
        "event_ids": [event_id], "affects": ["any"], "release_others": True, "timeout": max(1, settings["answer"] - 2), "policy": {"rules": [rule]}
    }
    reason = "no minion answered"
    for one in dict.fromkeys(minions.values()):
        answer = _command([one], "azure_events.approve", "list", words).get(one)
        for item in answer["approvals"] if isinstance(answer, dict) else []:
            if item["outcome"] in ("approved", "already_approved", "started"):
                return {"minion": one, "outcome": item["outcome"], "reason": item["reason"]}
            reason = "%s: %s: %s" % (one, item["outcome"], item["reason"])
    raise CommandExecutionError("event %s was not approved: %s" % (event_id, reason))


def await_end(event_id, minions, patience=None, event_type=None):
    """
    Wait until an event is over. Minions that cannot be reached, because they reboot, are asked again and again.

    Returns a dictionary: ``over``, the minions that said so, twice in a row; ``waiting``, the others; ``lost``, those of them that are counted as gone for
    ever; and ``comment``. Fails after patience seconds. Other minions that list the event are asked, too, and nothing is over while anybody lists it. Once it
    is over for one, those that do not answer are waited for no longer than 15 seconds: their beacons tell of the end when they are back.

    patience
        Seconds, or a text like ``90s`` or ``1h``.

    event_type
        What is known of it. After ``Preempt`` and ``Terminate`` a VM answers no more: when nobody has answered for 60 seconds it is over.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.await_end C7061BAC-AFDC-4513-B24B-AA5F13A16123 '[vm1, vm2]'
    """
    _check_id(event_id)
    settings = _settings()
    limit = settings["patience"] if patience is None else _seconds("patience", patience)
    started = last_word = time.monotonic()
    # a neighbour that lists the event is still there when those that it hits are not
    neighbours = sorted(set(_seen(None, None)[1]) - set(minions))
    witnesses = set(minions) | {one for one, answer in (_ask(neighbours, event_id) if neighbours else {}).items() if answer}
    absences = dict.fromkeys(minions, 0)
    listed = {}
    first_end = None
    while True:
        answers = _ask(sorted(witnesses), event_id)
        now = time.monotonic()
        for one, answer in answers.items():
            last_word = now
            absences[one] = 0 if answer else absences.get(one, 0) + 1
            if answer:
                listed[one] = now
                event_type = answer.get("event_type") or event_type
            else:
                listed.pop(one, None)
        over = sorted(one for one, count in absences.items() if count >= _ABSENCES_NEEDED)
        first_end = first_end or (now if over else None)
        waiting = sorted(set(minions) - set(over))
        # who listed it long ago, and has been silent since, knows less than those that answer
        lasts = sorted(one for one, when in listed.items() if now - when < _GRACE)
        late = first_end is not None and now - first_end >= _GRACE and not lasts
        ending = str(event_type).casefold() in _ENDING
        lost = ending and now - last_word >= _LOST
        if not (waiting or lasts) or late or lost or now - started >= limit:
            break
        time.sleep(max(0.1, min(_PAUSE, limit - (now - started))))
    gone = waiting if ending and (late or lost) else []
    comment = "event %s is over for %s" % (event_id, ", ".join(over) or "nobody")
    if gone:
        comment += "; after %s these count as lost, which have not answered since: %s" % (event_type, ", ".join(gone))
    elif waiting:
        comment += "; %s did not say so within %.0f seconds" % (", ".join(waiting), now - started)
    if lasts or not (over or gone):
        raise CommandExecutionError(comment)
    return {"over": over, "waiting": waiting, "lost": gone, "comment": comment}


def _look(event_id, also, tgt, tgt_type):
    expected, seen = _seen(tgt, tgt_type)
    last = _latest(seen, event_id)
    names = _names(seen)
    last_names = _remembered(names)
    told = set(also)
    asked = told | {one for one, name in names.items() if last is not None and _hits(last, name)}
    answers = _ask(sorted(asked), event_id)
    event = next((answer for answer in answers.values() if answer), None)
    unready = set()
    if event is not None:
        # more VMs may have come to it since a beacon told of it
        late = {one for one, name in names.items() if _hits(event, name)} - set(answers)
        answers.update(_ask(sorted(late), event_id))
        hit = _minions_of(event, {one: names[one] for one, answer in answers.items() if answer and one in names})
        without = [resource for resource, one in hit.items() if one is None]
        # who is silent, or whose beacon never learned its name, may be any of the VMs that nobody else is
        known = {one: name for one, name in last_names.items() if one in expected}
        unready = {one for one, name in known.items() if any(_is_vm(resource, name) for resource in without)}
        without = [resource for resource in without if not any(_is_vm(resource, name) for name in known.values())]
        if without:
            unready |= {one for one in expected if one not in known and (one not in seen or seen[one])}
    else:
        hit = _minions_of(last, _knowing(seen, event_id)) if last is not None else {}
        without = [resource for resource, one in hit.items() if one is None]
    return {
        "event_id": event_id,
        "listed": True if event is not None else (False if answers else None),
        "event": event,
        "minions": {resource: one for resource, one in hit.items() if one is not None},
        "unknown_resources": without,
        "unready": sorted(unready),
        "silent": sorted(((asked | set(expected)) - set(seen)) | (asked - set(answers))),
    }


def _settings():
    settings = dict(_DEFAULTS)
    given = __opts__.get("azure_events")
    if not (given is None or isinstance(given, dict)):
        raise SaltInvocationError("azure_events: expected keys with their values, not %r" % (given,))
    settings.update({key: value for key, value in (given or {}).items() if key in _DEFAULTS})
    if settings["unknown_resources"] not in ("hold", "approve"):
        raise SaltInvocationError("azure_events: unknown_resources has to be hold or approve, not %r" % settings["unknown_resources"])
    for key in ("minions_type", "orchestration"):
        if not (isinstance(settings[key], str) and settings[key]):
            raise SaltInvocationError("azure_events: %s has to be a text, not %r" % (key, settings[key]))
    if not (isinstance(settings["minions"], (str, list)) and settings["minions"]):
        raise SaltInvocationError("azure_events: minions has to say which minions, not %r" % (settings["minions"],))
    settings["patience"] = _seconds("azure_events: patience", settings["patience"], _LEAST["patience"])
    # Salt counts whole seconds
    settings["answer"] = math.ceil(_seconds("azure_events: answer", settings["answer"], _LEAST["answer"]))
    return settings


def _seconds(key, value, least=0.0):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    else:
        match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None:
            raise SaltInvocationError("%s: expected seconds as a number, or a text like 30s, 15m or 2h, not %r" % (key, value))
        seconds = float(match.group(1)) * _UNITS[match.group(2).lower()]
    if not least <= seconds < 1e9:
        raise SaltInvocationError("%s has to be at least %g seconds, not %r" % (key, least, value))
    return seconds


def _check_id(event_id):
    # it comes from a minion, and goes into a file's name and into log lines
    if not isinstance(event_id, str) or not event_id.strip() or len(event_id) > 200 or not event_id.isprintable():
        raise SaltInvocationError("event_id: expected the id of an event, not %r" % (event_id,))


def _seen(tgt, tgt_type):
    """Which minions should answer, and what each of them that has the module says to watch_status."""
    settings = _settings()
    tgt, tgt_type = tgt or settings["minions"], tgt_type or settings["minions_type"]
    answers = _returns(tgt, "azure_events.watch_status", tgt_type)
    # one without the module is not drained by this master, and is no minion here
    strangers = {one for one, answer in answers.items() if "is not available" in str(answer.get("ret")) and answer.get("retcode")}
    expected = (_expected(tgt, tgt_type) | set(answers)) - strangers
    return expected, {one: answer for one, answer in _good(answers).items() if isinstance(answer, dict)}


def _expected(tgt, tgt_type):
    found = salt.utils.minions.CkMinions(__opts__).check_minions(tgt, tgt_type)
    return set(found["minions"])


def _remembered(names):
    """The last known names of all minions, since one that is silent may be hit, too. Those of now are added."""
    path = os.path.join(__opts__["cachedir"], "azure_events", "names.json")
    try:
        with open(path, encoding="utf-8") as file:
            known = {one: name for one, name in json.load(file).items() if isinstance(name, str)}
    except FileNotFoundError:
        known = {}
    except (OSError, ValueError, AttributeError) as error:
        log.warning("azure_events: the names of minions in %s cannot be read, it is begun anew: %s", path, error)
        known = {}
    if not names.items() <= known.items():
        known.update(names)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        # another event may be looked at in this moment
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=os.path.dirname(path), delete=False) as file:
            json.dump(known, file)
        os.replace(file.name, path)
    return known


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
    return _good(_returns(tgt, fun, tgt_type, kwarg))


def _returns(tgt, fun, tgt_type, kwarg=None):
    """What came back, by minion, with its code."""
    with salt.client.get_local_client(__opts__["conf_file"]) as client:
        # without an own limit one minion that is down costs the master's gather_job_timeout, and an eviction is 30 seconds away
        answers = client.cmd(
            tgt, fun, timeout=_settings()["answer"], tgt_type=tgt_type, kwarg=kwarg, full_return=True, gather_job_timeout=_FIND_JOB
        )
    return {one: answer for one, answer in answers.items() if isinstance(answer, dict) and "ret" in answer}


def _good(answers):
    return {one: answer["ret"] for one, answer in answers.items() if answer.get("retcode", 1) == 0}


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


def _start_maintenance(event_id, minion, lock):
    """Run maintain in a process that holds the lock. Raises OSError and SubprocessError."""
    given = {"event_id": event_id} if minion is None else {"event_id": event_id, "minion": minion}
    # salt-run leaves the quotes around a word that has a #
    words = ["%s=%s" % (key, json.dumps(word).replace("#", "\\u0023")) for key, word in given.items()]
    command = [sys.executable, "-c", _SALT_RUN, "-c", os.path.dirname(__opts__["conf_file"]), "--out", "json", "azure_events.maintain", *words]
    subprocess.run(
        command,
        check=True,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=[lock.fileno()],
        env=dict(os.environ, **{_GIVEN_LOCK: str(lock.fileno())}),
    )


def _lock(event_id):
    """Let nobody else work on the event: an open file, or None where somebody does. It goes with the processes that have it open, however they end."""
    path = _path_of(event_id, "lock")
    while True:
        file = open(path, "w", encoding="ascii")  # pylint: disable=consider-using-with
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        except FileNotFoundError:
            pass  # who held it has removed it in this moment
        except BlockingIOError:
            file.close()
            return None
        file.close()


def _given_lock():
    """The lock that react has taken for this process, once; else None."""
    number = os.environ.pop(_GIVEN_LOCK, None)
    if number is None:
        return None
    # what the orchestration starts should not have it
    os.set_inheritable(int(number), False)
    return open(int(number), "w", encoding="ascii")  # pylint: disable=consider-using-with


def _unlock(event_id, file):
    _remove(_path_of(event_id, "lock"))
    file.close()


def _path_of(event_id, kind):
    folder = os.path.join(__opts__["cachedir"], "azure_events", "work")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, "%s.%s" % (hashlib.sha256(event_id.casefold().encode("utf-8", "backslashreplace")).hexdigest(), kind))


def _leave_word(event_id):
    """Let whoever works on the event know that it is over, as a minion says."""
    with open(_path_of(event_id, "end"), "w", encoding="ascii"):
        pass


def _take_word(event_id):
    _remove(_path_of(event_id, "end"))


def _remove(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
