# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""
Azure Scheduled Events: what Azure is about to do to this VM, and the approval of it
====================================================================================

.. versionadded:: 0.1.0

Every function asks the Instance Metadata Service (IMDS) of the VM on which the minion runs. An error page, an empty body or a
time-out is never taken for "no events": except for :py:func:`pending` they raise ``CommandExecutionError``.

The first request for events switches Scheduled Events on for the deployment: from then on restarts that a user asks for wait up to
15 minutes for an approval.

:depends: requests
:configuration: Where the arguments of a call say nothing, these keys of the minion's configuration count, or else of its pillar:

    .. code-block:: yaml

        azure_events:
          endpoint: http://169.254.169.254   # the default; or auto
          api_version: 2020-07-01            # the default; a list is tried in its order
          resource_name: vm1                 # by default asked from IMDS; never the hostname
          receipts: /var/lib/approvals       # by default in the minion's cachedir

Selection words, which many functions take. An event has to meet all that are given; letter case makes no difference:

event_ids, types, statuses, sources
    A list, or one text. An empty list selects nothing. The beacon refuses one.

affects
    ``self`` (the default), ``any``, or names of VMs of which the event hits at least one. An empty list is refused.
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import contextlib
import logging
import os

from salt.exceptions import CommandExecutionError, SaltInvocationError

try:
    from azure_events_watch import approval, memory, registry, settings
    from azure_scheduled_events import approving
    from azure_scheduled_events.conversation import Conversation, Where
    from azure_scheduled_events.errors import ImdsError
    from azure_scheduled_events.predicates import one_of
    from azure_scheduled_events.selection import ANY
    from azure_scheduled_events.transport import REQUESTS_IMPORT_ERROR
    from azure_scheduled_events.waiting import STATES, Watch

    MISSING = "the Python library requests is not installed for this minion" if REQUESTS_IMPORT_ERROR is not None else None
except ImportError as error:
    MISSING = "%s: run saltutil.sync_all on this minion, or install the package into its Python" % error

log = logging.getLogger(__name__)

__virtualname__ = "azure_events"
__func_alias__ = {"list_": "list"}


def __virtual__():
    return __virtualname__ if MISSING is None else (False, "azure_events: " + MISSING)


def list_(event_ids=None, types=None, statuses=None, sources=None, affects=None,
          endpoint=None, api_version=None, resource_name=None, timeout=130):
    """
    The selected events.

    Returns a dictionary: ``events``, a list of events with the keys event_id, event_type, status, resources, resource_type,
    not_before, description, source and duration_seconds; ``complete``, False if an entry of the document could not be read, or if an
    event says nothing of its VMs and so might be selected; ``incarnation``; ``resource_name``, this VM's; and ``warnings``.

    timeout
        Seconds in all. The default leaves room for a VM's very first answer, which may take two minutes.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.list
        salt '*' azure_events.list affects=any types='[Reboot, Redeploy]'
    """
    chosen = _selection(event_ids, types, statuses, sources, affects)
    where = _where(endpoint, api_version, resource_name, timeout)
    try:
        conversation = Conversation(where)
        document = conversation.read(name_required=chosen.needs_own_name)
        events = chosen.pick(document, conversation.known_name)
        # whom an event hits that names no VM is unknown, which is not "somebody else"
        nameless = [event for event in chosen._replace(affects=ANY).pick(document, None) if not event.resources and event not in events]
    except ImdsError as error:
        raise CommandExecutionError(str(error)) from error
    return {
        "events": [event.as_dict() for event in events],
        "complete": document.complete and not nameless,
        "incarnation": document.incarnation,
        "resource_name": conversation.known_name,
        "warnings": list(document.warnings),
    }


def get(event_id, endpoint=None, api_version=None, timeout=130):
    """
    The event of that id, whichever VM it hits, or None when Azure does not list it.

    CLI Example:

    .. code-block:: bash

        salt vm1 azure_events.get C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    found = list_(event_ids=[event_id], affects="any", endpoint=endpoint, api_version=api_version, timeout=timeout)
    if not found["events"] and not found["complete"]:
        raise CommandExecutionError("an entry of the document could not be read, so nobody knows whether event %s is over" % event_id)
    return found["events"][0] if found["events"] else None


def instance(endpoint=None, timeout=10):
    """
    The instance metadata of this VM as IMDS gives them: a dictionary with ``compute`` and ``network``.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.instance
    """
    try:
        conversation = Conversation(_where(endpoint, None, None, timeout))
        return conversation.ask(conversation.imds.instance)
    except ImdsError as error:
        raise CommandExecutionError(str(error)) from error


def pending(event_ids=None, types=None, statuses=None, sources=None, affects=None,
            endpoint=None, api_version=None, resource_name=None, timeout=5):
    """
    Whether something is coming, for use in front of other things: it does not fail because of IMDS.

    Returns a dictionary: ``pending``, whether a selected event is known; ``available``, False where nothing can be known, and
    ``reason`` then says why; ``events``, ``incarnation`` and ``resource_name`` as :py:func:`list_` has them.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.pending
    """
    result = {"available": False, "reason": "", "resource_name": None, "incarnation": None, "events": [], "pending": False}
    try:
        found = list_(event_ids, types, statuses, sources, affects, endpoint, api_version, resource_name, timeout)
    except SaltInvocationError:
        raise
    except CommandExecutionError as error:
        return dict(result, reason=str(error))
    if not found["complete"]:
        result["reason"] = "not all of the document could be read, so there may be more events than these"
    result.update({key: found[key] for key in ("resource_name", "incarnation", "events")})
    return dict(result, available=found["complete"], pending=bool(found["events"]))


def wait(state="present", event_ids=None, types=None, statuses=None, sources=None, affects=None,
         endpoint=None, api_version=None, resource_name=None, timeout=900, poll_interval=1):
    """
    Wait until a selected event is there (``present``), has that status (``scheduled``, ``started``), or none is there (``absent``:
    two good documents in a row list none).

    Returns a dictionary: ``outcome``, which is "reached"; ``events``, ``elapsed`` in seconds, ``incarnation``, ``resource_name``,
    ``imds_errors``, the number of polls without a good answer, and ``imds_error``, the last of them. Trouble of IMDS does not end
    the wait. Fails after timeout seconds, and when every event of event_ids is over and the state can no more be reached.

    CLI Example:

    .. code-block:: bash

        salt -t 1000 vm1 azure_events.wait absent timeout=900
    """
    chosen = _selection(event_ids, types, statuses, sources, affects)
    where = _where(endpoint, api_version, resource_name, timeout)
    try:
        wanted = one_of(state, STATES, "state")
        interval = settings.read_seconds("poll_interval", poll_interval, 0.25)
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error
    try:
        watch = Watch(wanted, chosen, Conversation(where, interval))
        waited = watch.wait(where.timeout)
    except ImdsError as error:
        raise CommandExecutionError(str(error)) from error
    outcome = watch.outcome(waited)
    if outcome != "reached":
        raise CommandExecutionError(watch.failure(waited))
    return dict(watch.result(waited), outcome=outcome)


def approve(event_ids=None, types=None, statuses=None, sources=None, affects=None,
            policy=None, policy_file=None, prepared="none", gates=None, release_others=False, receipts=None, test=False,
            endpoint=None, api_version=None, resource_name=None, timeout=130):
    """
    Approve events, so that they start early. That cannot be taken back, and releases every VM that the event names.

    Returns a dictionary: ``changed``; ``approvals``, a list with event_id, outcome, reason and event for every event that is meant;
    ``approved``, the ids of those approved now; ``incarnation``, ``resource_name`` and ``warnings``. An outcome is one of approved,
    already_approved, started, not_found, not_selected, not_due, others_affected and failed. Fails when IMDS does not take an approval,
    and when an event that was asked for by its id hits other VMs too.

    policy, policy_file
        Rules that decide which of the selected events are approved: ``documented``, ``observe``, a dictionary with rules, or a YAML file on
        the minion. One of these, or one of event_ids, types, statuses and sources, has to be given.

    prepared, gates
        For the policy: ``none``, ``running``, ``ok`` or ``failed``; and results of checks of your own by name.

    release_others
        Whether to approve events that also hit other VMs than this one.

    receipts
        Folder for notes of approvals, by which a second approval is recognised. A note counts for the id at its NotBefore.

    test
        Nothing is sent; the result tells what would be.

    CLI Example:

    .. code-block:: bash

        salt vm1 azure_events.approve policy=documented
        salt vm1 azure_events.approve event_ids=C7061BAC-AFDC-4513-B24B-AA5F13A16123 test=True
    """
    chosen = _selection(event_ids, types, statuses, sources, affects)
    where = _where(endpoint, api_version, resource_name, timeout)
    try:
        grounds = approval.read_grounds(chosen, policy, policy_file, prepared, gates, release_others)
    except (ValueError, TypeError) as error:
        raise SaltInvocationError(str(error)) from error
    folder = receipts or _configured().get("receipts") or os.path.join(memory.folder(__opts__["cachedir"]), "approvals")
    if not test:
        # what of it cannot be made is told as a note that could not be kept
        with contextlib.suppress(OSError):
            memory.made_folder(__opts__["cachedir"])
    try:
        done = approving.approve(Conversation(where), grounds, folder, send=not test)
    except ImdsError as error:
        raise CommandExecutionError(str(error)) from error
    result = dict(done.as_dict(), warnings=[*done.document.warnings, *done.warnings])
    failure = done.failure(chosen.event_ids or ())
    if failure:
        raise CommandExecutionError(failure, info=result)
    return result


def watch_status(name=None):
    """
    What the beacons of this minion last saw. Read from disk: IMDS is not asked, and this works on hosts of any kind.

    Returns a dictionary by name of beacon: ``resource_name``; ``checked``, when IMDS last gave a good answer (written once a minute);
    ``error``, what is wrong with it now, or None; ``endpoint``; ``events``, those that last or were over lately, as the beacon tells them;
    and ``path`` of the file.

    name
        Of one beacon; by default all.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_status
    """
    found = {}
    for beacon, data in memory.read_all(__opts__["cachedir"]).items():
        if name in (None, beacon):
            kept = {key: data.get(key) for key in ("resource_name", "checked", "error", "endpoint", "path")}
            found[beacon] = dict(kept, events=registry.told_events(data))
    return found


def watch_check(config):
    """
    Whether a configuration of the beacon is right: a list of that and a sentence. The beacon's ``validate`` calls it.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_check '[{interval: 5}, {affects: any}]'
    """
    try:
        settings.read_settings(config, _configured())
    except ValueError as error:
        return [False, "azure_events beacon: %s" % error]
    return [True, "azure_events beacon: the configuration is valid"]


def watch_news(config):
    """
    What the beacon has to tell: a list of changes. It starts the thread that asks IMDS, and waits for it 50 milliseconds at the most.

    For the beacon alone, in the minion's own process: a configuration that Salt's beacons did not hand over is refused. A job that
    started a thread would write over what the minion has seen. For people there is :py:func:`watch_status`:

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_status
    """
    if not settings.is_from_salt(config):
        raise SaltInvocationError("watch_news is for the beacon alone; see azure_events.watch_status for what it has seen")
    asked = settings.read_settings(config, _configured())
    return registry.news(asked, memory.path_for(__opts__["cachedir"], asked.name), str(__opts__.get("master_uri", "")))


def watch_close(config):
    """
    Stop what :py:func:`watch_news` started in this process. For the beacon alone; a job has nothing to stop. Returns True.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_close '[{affects: any}]'
    """
    registry.close(memory.path_for(__opts__["cachedir"], settings.beacon_name(config)))
    return True


def _configured():
    """What the configuration of the minion, or else its pillar, says for all calls."""
    known = ("endpoint", "api_version", "resource_name", "receipts")
    found = {}
    for source in (__pillar__, __opts__):
        section = source.get("azure_events")
        if isinstance(section, dict):
            found.update({key: section[key] for key in known if section.get(key) is not None})
    return found


def _selection(event_ids, types, statuses, sources, affects):
    try:
        chosen, doubts = settings.read_selection(
            {"event_ids": event_ids, "types": types, "statuses": statuses, "sources": sources, "affects": affects}
        )
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error
    for text in doubts:
        log.warning("azure_events: %s", text)
    return chosen


def _where(endpoint, api_version, resource_name, timeout):
    given = {"endpoint": endpoint, "api_version": api_version, "resource_name": resource_name}
    try:
        return Where(*settings.read_connection(given, _configured()), settings.read_seconds("timeout", timeout, 0.001))
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error
