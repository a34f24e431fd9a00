# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Read, prepare for and approve Azure Scheduled Events of this VM.

.. versionadded:: 0.1.0

Every function reads the Instance Metadata Service (IMDS) of the VM on which the minion runs. An
error page, an empty body or a timeout never counts as "no events": all functions but
:py:func:`pending`, :py:func:`status` and those of the beacon raise ``CommandExecutionError``, or
return the outcome ``unavailable``.

The first request for events enables Scheduled Events for the deployment. From then on, restarts
that a user requests wait up to 15 minutes for an approval.

:depends: requests

:configuration: The defaults of the arguments come from this key of the minion's configuration, or
    else of its pillar:

.. code-block:: yaml

    azure_events:
      endpoint: http://169.254.169.254   # the default
      api_version: 2020-07-01            # the default; the versions of a list are tried in its order
      resource_name: vm1                 # by default read from IMDS; never the hostname
      receipts: /var/lib/approvals       # by default in the minion's cachedir
      allow_paths: false                 # whether jobs may name files of the minion; not in the pillar
      types: [Freeze, Reboot, Redeploy]  # events that this minion prepares for; by default all but advice
      sources: [Platform]
      statuses: [Scheduled]
      minimum_notice: 30s                # time until NotBefore that a preparation needs; by default 0
      ready_hooks:                       # prepare in this order, and recover in the reverse order
        - {use: haproxy, server: web/web1, settings: {timeout: 90}}
      prepare:                           # steps in their order; an empty list has nothing to do
        - /usr/local/bin/leave-load-balancer
        - {function: service.stop, args: [app], timeout: 60}
      recover:
        - {sls: app.running, pillar: {app: {state: up}}, timeout: 5m}
        - {name: join, command: [/usr/local/bin/join-load-balancer, --wait], timeout: 30}

:py:func:`prepare` and :py:func:`recover` run these steps. A step is a command (a text for the
shell, or a list), a function, an SLS file or, on Linux, a ready hook (``use``). After its ``timeout`` (by
default 300 s) all its processes are ended. Commands get the event in the environment variables
EVENT_ID, EVENT_TYPE, EVENT_STATUS, EVENT_SOURCE, EVENT_RESOURCES, EVENT_RESOURCE_TYPE, EVENT_RESOURCE,
EVENT_NOT_BEFORE, EVENT_SECONDS_LEFT, EVENT_DURATION, EVENT_DESCRIPTION, EVENT_STAGE and EVENT_OUTCOME,
and their time limit in HOOK_SECONDS: in a preparation at most until the event may start, less 5 s. SLS
files get its ID in the pillar ``azure_events_event``. Steps may run more than once: after a reboot, and
after a preparation that was interrupted. The steps of
the recovery must succeed when there is nothing to undo.

The ready hooks of ``ready_hooks`` prepare before the steps of ``prepare``, and recover after those of
``recover``. All keys of a ready hook but ``use``, ``name`` and ``settings`` are its options.
:py:func:`check` checks them.

Many functions take a selection. An event must meet all given arguments; letter case is ignored:

event_ids, types, statuses, sources
    A list, or one text. An empty list selects no event. The beacon refuses an empty list.

affects
    ``self`` (the default), ``any``, or names of VMs of which the event affects at least one. An
    empty list is refused.
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import contextlib
import logging
import os

import salt.crypt
import salt.loader
import salt.utils.platform
from salt.exceptions import CommandExecutionError, SaltInvocationError

try:
    from azure_events_functions.function_step import FunctionStep
    from azure_events_steps import answers, hook_check, preparation, recovery
    from azure_events_steps import approval as prepared_approval
    from azure_events_steps import status as minion_status
    from azure_events_steps.configuration import parse_configuration, refuse_ready_hooks
    from azure_events_steps.hook_files import HookFiles
    from azure_events_steps.minion import Minion
    from azure_events_watch import approval_options, settings, state_file, watchers
    from azure_scheduled_events.approval import approve as approve_events
    from azure_scheduled_events.errors import ImdsError
    from azure_scheduled_events.options import parse_boolean, parse_choice, parse_option
    from azure_scheduled_events.selection import ANY
    from azure_scheduled_events.session import ConnectionOptions, ImdsSession
    from azure_scheduled_events.transport import REQUESTS_IMPORT_ERROR
    from azure_scheduled_events.waiting import STATES, EventWait

    MISSING = (
        "the Python library requests is not installed for this minion" if REQUESTS_IMPORT_ERROR is not None else None
    )
except ImportError as error:
    MISSING = f"{error}: run saltutil.sync_all on this minion, or install the package into its Python"

log = logging.getLogger(__name__)

__virtualname__ = "azure_events"
__func_alias__ = {"list_": "list"}

# folder in the master's file roots
_HOOKS = "azure_events/hooks/ready_hooks"


def __virtual__():
    if salt.utils.platform.is_proxy() or __opts__.get("proxy"):
        return False, "azure_events: a proxy minion would act on the events of the host that it runs on"
    return __virtualname__ if MISSING is None else (False, "azure_events: " + MISSING)


def list_(
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
    """Return the selected events.

    Args:
        event_ids: IDs of the selected events.
        types: event types of the selected events.
        statuses: statuses of the selected events.
        sources: sources of the selected events.
        affects: ``self``, ``any`` or names of VMs that the selected events affect.
        endpoint: of IMDS.
        api_version: of IMDS.
        resource_name: this VM's name.
        timeout: seconds in all. The default allows for the first answer of a VM, which may take two
            minutes.

    Returns:
        A dictionary: ``events``, a list of events with event_id, event_type, status, resources,
        resource_type, not_before, description, source and duration_seconds; ``api_version`` with which
        they were read; ``complete``, False if an
        entry of the document could not be read, or if an event has no resources and may affect this
        VM; ``incarnation``; ``resource_name`` of this VM; and ``warnings``.

    Raises:
        CommandExecutionError: IMDS gave no good answer.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.list
        salt '*' azure_events.list affects=any types='[Reboot, Redeploy]'
    """
    selection = _selection(event_ids, types, statuses, sources, affects)._replace(advice=True)
    connection = _connection_options(endpoint, api_version, resource_name, timeout)
    try:
        session = ImdsSession(connection)
        document = session.read_events(name_required=selection.needs_own_name)
        events = selection.pick(document, session.resource_name)
        # an event without resources may affect this VM
        nameless = [
            event
            for event in selection._replace(affects=ANY).pick(document, None)
            if not event.resources and event not in events
        ]
    except ImdsError as error:
        raise CommandExecutionError(str(error)) from error
    return {
        "events": [event.as_dict() for event in events],
        "api_version": document.api_version,
        "complete": document.complete and not nameless,
        "incarnation": document.incarnation,
        "resource_name": session.resource_name,
        "warnings": list(document.warnings),
    }


def get(event_id, endpoint=None, api_version=None, timeout=130):
    """Return the event of that ID, whichever VM it affects.

    Args:
        event_id: of the event.
        endpoint: of IMDS.
        api_version: of IMDS.
        timeout: seconds in all.

    Returns:
        The event as :py:func:`list` returns it, or None if Azure does not list it.

    Raises:
        CommandExecutionError: IMDS gave no good answer, or an entry of it could not be read.

    CLI Example:

    .. code-block:: bash

        salt vm1 azure_events.get C7061BAC-AFDC-4513-B24B-AA5F13A16123
    """
    found = list_(event_ids=[event_id], affects="any", endpoint=endpoint, api_version=api_version, timeout=timeout)
    if not found["events"] and not found["complete"]:
        raise CommandExecutionError(
            f"an entry of the document could not be read; it is unknown whether event {event_id} is over"
        )
    return found["events"][0] if found["events"] else None


def instance(endpoint=None, timeout=10):
    """Return the instance metadata of this VM.

    Args:
        endpoint: of IMDS.
        timeout: seconds in all.

    Returns:
        A dictionary with ``compute`` and ``network``, as IMDS has them.

    Raises:
        CommandExecutionError: IMDS gave no good answer.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.instance
    """
    try:
        session = ImdsSession(_connection_options(endpoint, None, None, timeout))
        return session.call_with_retries(session.imds.instance)
    except ImdsError as error:
        raise CommandExecutionError(str(error)) from error


def pending(
    event_ids=None,
    types=None,
    statuses=None,
    sources=None,
    affects=None,
    endpoint=None,
    api_version=None,
    resource_name=None,
    timeout=5,
):
    """Return whether a selected event is listed; a failure of IMDS is part of the result.

    Args:
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
        A dictionary: ``pending``, whether a selected event is listed; ``available``, False if that is
        not certain, with the ``reason``; ``events``, ``incarnation`` and ``resource_name`` as
        :py:func:`list` returns them.

    Raises:
        SaltInvocationError: an argument is invalid.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.pending
    """
    result = {
        "available": False,
        "reason": "",
        "resource_name": None,
        "incarnation": None,
        "events": [],
        "pending": False,
    }
    try:
        found = list_(event_ids, types, statuses, sources, affects, endpoint, api_version, resource_name, timeout)
    except SaltInvocationError:
        raise
    except CommandExecutionError as error:
        return dict(result, reason=str(error))
    if not found["complete"]:
        result["reason"] = "not all of the document could be read; there may be more events than these"
    result.update({key: found[key] for key in ("resource_name", "incarnation", "events")})
    selection = _selection(event_ids, types, statuses, sources, affects)
    is_pending = any(selection.heeds(event["event_type"]) for event in found["events"])
    return dict(result, available=found["complete"], pending=is_pending)


def wait(
    state="present",
    event_ids=None,
    types=None,
    statuses=None,
    sources=None,
    affects=None,
    endpoint=None,
    api_version=None,
    resource_name=None,
    timeout=900,
    poll_interval=1,
):
    """Wait for selected events to reach a state.

    Failures of IMDS do not end the wait.

    Args:
        state: ``present``, ``scheduled`` or ``started`` of a selected event, or ``absent``: at least two
            good documents in a row, requested two seconds apart, list no selected event.
        event_ids: IDs of the selected events.
        types: event types of the selected events.
        statuses: statuses of the selected events.
        sources: sources of the selected events.
        affects: ``self``, ``any`` or names of VMs that the selected events affect.
        endpoint: of IMDS.
        api_version: of IMDS.
        resource_name: this VM's name.
        timeout: seconds in all.
        poll_interval: seconds between two documents.

    Returns:
        A dictionary: ``outcome``, which is "reached"; ``events``; ``elapsed`` in seconds;
        ``incarnation``; ``resource_name``; ``imds_errors``, the number of polls without a good answer;
        and ``imds_error``, the last of them.

    Raises:
        CommandExecutionError: the timeout has passed, or all events of event_ids are over and cannot
            reach the state.
        SaltInvocationError: an argument is invalid.

    CLI Example:

    .. code-block:: bash

        salt -t 1000 vm1 azure_events.wait absent timeout=900
    """
    selection = _selection(event_ids, types, statuses, sources, affects)
    connection = _connection_options(endpoint, api_version, resource_name, timeout)
    try:
        wanted = parse_choice(state, STATES, "state")
        interval = settings.parse_duration("poll_interval", poll_interval, 0.25)
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error
    try:
        watch = EventWait(wanted, selection, ImdsSession(connection, interval))
        waited = watch.wait(connection.timeout)
    except ImdsError as error:
        raise CommandExecutionError(str(error)) from error
    outcome = watch.outcome(waited)
    if outcome != "reached":
        raise CommandExecutionError(watch.failure(waited))
    return dict(watch.result(waited), outcome=outcome)


def status(event_id=None):
    """Return the events that Azure lists for this VM, and the record of this minion.

    A failure of IMDS is part of the result.

    Args:
        event_id: show this event only, whichever VM it affects; by default all that affect this VM, or
            may affect it because their resources are not readable.

    Returns:
        A dictionary: ``version`` of this answer; ``resource_name``; ``available``, whether IMDS gave a
        good answer, and else the ``reason``; ``complete`` and ``incarnation`` of the document;
        ``events``, each also with ``readable``, whether its resources are, ``selected``, whether this
        minion prepares for it, and ``not_selected_because``, the key of the configuration that excludes
        it; ``records``, one for each event that the minion has prepared for; and ``working``, the ID of
        the event that a job of this minion works on, or None.

    Raises:
        CommandExecutionError: the record of this minion cannot be read now.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.status
    """
    try:
        minion, problem = _minion(), ""
    except ValueError as error:
        minion, problem = Minion(__opts__["cachedir"], parse_configuration(None), FunctionStep(__opts__)), str(error)
    try:
        return minion_status.status(minion, _event_id(event_id), problem)
    except OSError as error:
        raise CommandExecutionError(f"the record of this minion cannot be read: {error}") from error


def prepare(event_id=None, test=False):
    """Prepare this minion for an event, with the steps of ``azure_events:prepare``.

    The event must affect this VM, meet the minion's selection, and be listed as Scheduled by its own
    IMDS. The steps run once in a boot, and again only for a more severe event. The function does not
    wait for state runs.

    Args:
        event_id: of the event. Without one the minion is prepared by hand, whatever Azure lists; only
            :py:func:`recover` without an ID undoes that.
        test: run nothing, and return what would run.

    Returns:
        A dictionary: ``outcome``, one of prepared, already_prepared, would_prepare, not_listed,
        not_affected, not_selected, started, no_steps, failed, unavailable and busy, of which the first
        three are successes; ``reason``; ``changed``; ``event``; ``steps``, the result of each;
        ``event_id``, ``resource_name`` and ``version``.

    CLI Example:

    .. code-block:: bash

        salt vm1 azure_events.prepare C7061BAC-AFDC-4513-B24B-AA5F13A16123
        salt vm1 azure_events.prepare test=True
    """
    job = answers.Job(answers.PREPARE, _event_id(event_id))
    dry = _boolean("test", test)
    return _run_job(job, lambda minion: preparation.prepare(minion, job, dry))


def recover(event_id=None, test=False):
    """Recover this minion, with the steps of ``azure_events:recover``.

    The steps run when all events are over for which the minion has prepared. An event is over when good
    documents do not list it whose requests were sent two seconds apart.

    Args:
        event_id: of the event. Without one: recover from a preparation by hand, and from every event
            that is over.
        test: run nothing, and return what would run.

    Returns:
        A dictionary as :py:func:`prepare` returns it. ``outcome`` is one of recovered, not_prepared,
        would_recover, still_listed, no_steps, failed, unavailable and busy, of which the first three
        are successes.

    CLI Example:

    .. code-block:: bash

        salt vm1 azure_events.recover C7061BAC-AFDC-4513-B24B-AA5F13A16123
        salt vm1 azure_events.recover
    """
    job = answers.Job(answers.RECOVER, _event_id(event_id))
    dry = _boolean("test", test)
    return _run_job(job, lambda minion: recovery.recover(minion, job, dry))


def sweep(test=False):
    """Recover from every event that this minion has prepared for and that is over.

    It is meant for Salt's scheduler on minions without an engine on their master. If an event that
    came back after its end is missing, it reads documents for up to a minute.

    Args:
        test: run nothing, and return what would run.

    Returns:
        A dictionary: ``results``, one for each event in the record as :py:func:`recover` returns it,
        and ``version``.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.sweep
    """
    dry = _boolean("test", test)
    try:
        results = recovery.sweep(_minion(), dry)
    except (ValueError, OSError) as error:
        results = [answers.Job(answers.RECOVER, None).answer(answers.FAILED, str(error))]
    if not all(
        result["outcome"] == answers.STILL_LISTED or answers.is_success(answers.RECOVER, result["outcome"])
        for result in results
    ):
        __context__["retcode"] = 1
    return {"version": answers.VERSION, "results": results}


def check():
    """Check the ready hooks among the steps of this minion, and change nothing.

    The function also transfers the files of the ready hooks to the minion, so that later a preparation
    can run without the master.

    Returns:
        A dictionary: ``outcome``, ready or failed; ``reason``; ``steps``, one for each ready hook with
        ``name``, ``use``, ``lists`` (prepare, recover), ``outcome`` (ok, warning, error or timeout),
        ``problems`` and ``information``, lists of lines; ``records``, a line for each preparation of a
        ready hook that no step undoes; and ``version``.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.check
    """
    try:
        minion = _minion()
        for text in (text for selection in minion.configuration.selections for text in selection.warnings()):
            log.warning("azure_events: %s", text)
        answer = hook_check.check(minion)
    except (ValueError, OSError) as error:
        answer = hook_check.answer(answers.FAILED, str(error))
    if answer["outcome"] != hook_check.READY:
        __context__["retcode"] = 1
    return answer


def approve_prepared(event_id, resources, forced=False, event_type=None):
    """Approve an event for which this minion has prepared in this boot.

    It is meant for the engine on the master, which knows that the other VMs are ready. The event must
    be listed as Scheduled by the minion's own IMDS, and must affect this VM and no VM that is missing
    from ``resources``. Before it approves, a second document is read after a second.

    Args:
        event_id: of the event.
        resources: names of all VMs that are ready.
        forced: whether a person ordered the approval, although the event has a value that this version
            does not know.
        event_type: the type of the event for which all VMs are ready; by default any.

    Returns:
        A dictionary: ``outcome``, one of approved, already_approved, started, not_listed,
        not_prepared, not_affected, not_selected, others_affected, unknown_type, unknown_status,
        unknown_source, unknown_resource_type, failed and unavailable, of which the
        first two are successes; ``reason``, ``event_id``, ``resource_name`` and ``version``.

    Raises:
        SaltInvocationError: an argument is invalid.

    CLI Example:

    .. code-block:: bash

        salt vm1 azure_events.approve_prepared C7061BAC-AFDC-4513-B24B-AA5F13A16123 resources='[vm1, vm2]'
    """
    names = [resources] if isinstance(resources, str) else resources
    if event_id is None or not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise SaltInvocationError(
            "approve_prepared: expected the id of an event, and a list of names of VMs as resources"
        )
    job = answers.Job(answers.APPROVE, _event_id(event_id))
    forced = _boolean("forced", forced)
    return _run_job(
        job,
        lambda minion: prepared_approval.approve_prepared(minion, job, names, _receipts(None), forced, event_type),
    )


def approve(
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
    test=False,
    endpoint=None,
    api_version=None,
    resource_name=None,
    timeout=130,
):
    """Approve events, which then start before their NotBefore.

    An approval cannot be revoked, and releases every VM that the event names. Before it is sent, a
    second document is read after a second: the VMs of both count.

    Args:
        event_ids: IDs of the selected events.
        types: event types of the selected events.
        statuses: statuses of the selected events.
        sources: sources of the selected events.
        affects: ``self``, ``any`` or names of VMs that the selected events affect.
        endpoint: of IMDS.
        api_version: of IMDS.
        resource_name: this VM's name.
        policy: rules that decide which of the selected events are approved: ``documented``,
            ``observe``, or a dictionary. One of policy, policy_file, event_ids, types, statuses and
            sources is required.
        policy_file: a YAML file with rules on the minion, of at most 64 KiB; it excludes policy.
        prepared: for the policy: ``none``, ``running``, ``ok`` or ``failed``.
        gates: for the policy: results of own checks by name.
        release_others: whether to approve events that affect other VMs too.
        receipts: folder with receipts, by which a repeated approval is recognised. A receipt is valid
            for the event's ID and its NotBefore until the next reboot. A job may name a policy_file or
            receipts only if the minion's own configuration has ``azure_events: {allow_paths: true}``;
            ``salt-call`` on the minion always may.
        test: send nothing, and return what would be sent.
        timeout: seconds in all.

    Returns:
        A dictionary: ``changed``; ``approvals``, a list with event_id, outcome, reason and event for
        each selected event; ``approved``, the IDs of those approved now; ``incarnation``,
        ``resource_name`` and ``warnings``. An outcome is one of approved, already_approved, started,
        not_found, not_selected, not_due, others_affected and failed.

    Raises:
        CommandExecutionError: IMDS refused an approval or gave no good answer, or an event of
            event_ids affects other VMs too.
        SaltInvocationError: an argument is invalid.

    CLI Example:

    .. code-block:: bash

        salt vm1 azure_events.approve policy=documented
        salt vm1 azure_events.approve event_ids=C7061BAC-AFDC-4513-B24B-AA5F13A16123 test=True
    """
    selection = _selection(event_ids, types, statuses, sources, affects)
    connection = _connection_options(endpoint, api_version, resource_name, timeout)
    dry = _boolean("test", test)
    _check_paths(policy_file=policy_file, receipts=receipts)
    try:
        criteria = approval_options.parse_criteria(
            selection, policy, policy_file, prepared, gates, release_others, _is_local_call()
        )
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error
    folder = _receipts(receipts)
    if not dry:
        # approve_events warns about a folder that it cannot use
        with contextlib.suppress(OSError):
            state_file.ensure_directory(__opts__["cachedir"])
    try:
        done = approve_events(ImdsSession(connection), criteria, folder, send=not dry)
    except ImdsError as error:
        raise CommandExecutionError(str(error)) from error
    result = dict(done.as_dict(), warnings=[*done.document.warnings, *done.warnings])
    failure = done.failure(selection.event_ids or ())
    if failure:
        raise CommandExecutionError(failure, info=result)
    return result


def watch_status(name=None):
    """Return the events that the beacons of this minion have seen.

    The function reads the state files and not IMDS; it works on hosts outside Azure too.

    Args:
        name: of one beacon; by default all.

    Returns:
        A dictionary by name of the beacon: ``resource_name``; ``checked``, the time of the last good
        answer (written once a minute); ``error``, the present failure of IMDS, or None; ``endpoint``;
        ``events``, listed or ended lately, as the beacon sends them; and ``path`` of the file.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_status
    """
    found = {}
    for beacon, data in state_file.read_all(__opts__["cachedir"]).items():
        if name in (None, beacon):
            kept = {key: data.get(key) for key in ("resource_name", "checked", "error", "endpoint", "path")}
            found[beacon] = dict(kept, events=watchers.events_of_file(data))
    return found


def watch_check(config):
    """Return whether a configuration of the beacon is valid; its ``validate`` calls this.

    Args:
        config: the configuration, a list.

    Returns:
        A list: whether it is valid, and a message.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_check '[{interval: 5}, {affects: any}]'
    """
    try:
        selection = settings.cached_settings(config, _section()).selection
    except ValueError as error:
        return [False, f"azure_events beacon: {error}"]
    for text in selection.warnings():
        log.warning("azure_events beacon: %s", text)
    return [True, "azure_events beacon: the configuration is valid"]


def watch_news(config):
    """Return the changes that the beacon must send, for the beacon alone.

    It starts the thread that polls IMDS, and waits for it for at most 50 milliseconds. It must run in
    the minion's own process, because the thread of a job would overwrite the minion's state file.
    Use :py:func:`watch_status` to see the events:

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_status

    Args:
        config: the configuration, as Salt's beacons pass it.

    Returns:
        A list of changes.

    Raises:
        SaltInvocationError: Salt's beacons did not pass the configuration.
    """
    if not settings.is_from_salt(config):
        raise SaltInvocationError(
            "watch_news is for the beacon alone; azure_events.watch_status shows the events that it has seen"
        )
    asked = settings.cached_settings(config, _section())
    return watchers.pending_notifications(
        asked, state_file.state_path(__opts__["cachedir"], asked.name), str(__opts__.get("master_uri", "")), _session()
    )


def watch_close(config):
    """Stop the thread of :py:func:`watch_news` in this process, for the beacon alone.

    Args:
        config: the configuration.

    Returns:
        True.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_close '[{affects: any}]'
    """
    watchers.close(state_file.state_path(__opts__["cachedir"], settings.beacon_name(config)))
    return True


def _defaults():
    """Return the defaults of arguments from the configuration of the minion, or else its pillar."""
    known = ("endpoint", "api_version", "resource_name", "receipts")
    section = _section()
    return {key: section[key] for key in known if section.get(key) is not None}


def _section():
    """Return the section azure_events: the pillar, overridden by the configuration of the minion."""
    found = {}
    for source in (__pillar__, __opts__):
        section = source.get("azure_events")
        if isinstance(section, dict):
            found.update(section)
    return found


def _session():
    """Return the key that the master has given this process, or None. A restarted master gives another."""
    return tuple(creds.get("aes") for creds in salt.crypt.AsyncAuth.creds_map.values()) or None


def _minion():
    """Return this minion; raise ValueError for an invalid configuration."""
    beacons = {}
    for source in (__opts__, __pillar__):
        if isinstance(source.get("beacons"), dict):
            beacons.update(source["beacons"])
        if source.get("azure_events") is not None and not isinstance(source["azure_events"], dict):
            raise ValueError(f"azure_events: expected a mapping, not {source['azure_events']!r}")
    if "allow_paths" in (__pillar__.get("azure_events") or {}):
        raise ValueError(
            "azure_events: allow_paths counts in the minion's own configuration only; take it out of the pillar"
        )
    configuration = parse_configuration(_section(), beacons.get("azure_events"))
    if salt.utils.platform.is_windows():
        refuse_ready_hooks(configuration)
    # the package has the files beside the folder of this module
    installed = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "hooks")
    hook_files = HookFiles(__opts__["cachedir"], installed, _fetch_hooks)
    return Minion(__opts__["cachedir"], configuration, FunctionStep(__opts__), hook_files)


def _fetch_hooks():
    """Return the path of each file of the ready hooks by its name, transferred from the master's file roots.

    It runs in a process of its own. Therefore the functions are loaded again, as for a step.

    Raises:
        ValueError: a file was not transferred.
    """
    functions = salt.loader.minion_mods(dict(__opts__), utils=salt.loader.utils(__opts__), context={})
    wanted = [name for name in functions["cp.list_master"](prefix=_HOOKS) if name.startswith(_HOOKS + "/")]
    paths = functions["cp.cache_dir"]("salt://" + _HOOKS) if wanted else []
    found = {name: path for path in paths for name in wanted if path.endswith("/" + name)}
    missing = [name for name in wanted if name not in found]
    if missing:
        raise ValueError(f"the master did not send {', '.join(missing)}")
    return {name[len(_HOOKS) + 1 :]: path for name, path in found.items()}


def _run_job(job, work):
    """Return the answer of ``work``, and set the retcode 1 unless it is a success."""
    try:
        answer = work(_minion())
    except ValueError as error:
        answer = job.answer(answers.FAILED, str(error))
    if not answers.is_success(job.stage, answer["outcome"]):
        __context__["retcode"] = 1
    return answer


def _event_id(event_id):
    """Return the ID as a text, because Salt parses an ID that looks like a number."""
    if event_id is None or (isinstance(event_id, str) and event_id):
        return event_id
    if isinstance(event_id, (int, float)) and not isinstance(event_id, bool):
        return str(event_id)
    raise SaltInvocationError(
        f"event_id: expected the id of an event, not {event_id!r}; leave it out for a preparation by hand"
    )


def _boolean(name, value):
    try:
        return parse_option(name, value, parse_boolean)
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error


def _receipts(given):
    return given or _defaults().get("receipts") or os.path.join(state_file.folder(__opts__["cachedir"]), "approvals")


def _is_local_call():
    """Return True for salt-call, which only users of this host can run, and not for a job of a master."""
    return str(__opts__.get("__cli", "")).startswith("salt-call")


def _check_paths(**given):
    """Refuse paths of this minion in a job, unless the minion's own configuration allows them."""
    section = __opts__.get("azure_events")
    allowed = isinstance(section, dict) and section.get("allow_paths") is True
    for name, path in given.items():
        if path is not None and not allowed and not _is_local_call():
            raise SaltInvocationError(
                f"{name}: this minion takes paths from jobs only with azure_events: {{allow_paths: true}} "
                "in its own configuration"
            )


def _selection(event_ids, types, statuses, sources, affects):
    try:
        selection = settings.parse_selection(
            {"event_ids": event_ids, "types": types, "statuses": statuses, "sources": sources, "affects": affects}
        )
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error
    for text in selection.warnings():
        log.warning("azure_events: %s", text)
    return selection


def _connection_options(endpoint, api_version, resource_name, timeout):
    given = {"endpoint": endpoint, "api_version": api_version, "resource_name": resource_name}
    try:
        return ConnectionOptions(
            *settings.parse_connection(given, _defaults()), settings.parse_duration("timeout", timeout, 0.001)
        )
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error
