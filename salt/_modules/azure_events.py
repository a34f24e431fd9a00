# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""
Azure Scheduled Events: what Azure is about to do to this VM, and the approval of it
====================================================================================

.. versionadded:: 0.1.0

Every function asks the Instance Metadata Service (IMDS) of the VM on which the minion runs. An
error page, an empty body or a time-out is never taken for "no events": except for
:py:func:`pending` they raise ``CommandExecutionError``.

The first request for events switches Scheduled Events on for the deployment: from then on restarts
that a user asks for wait up to 15 minutes for an approval.

:depends: requests :configuration: Where the arguments of a call say nothing, these keys of the
minion's configuration count, or else of its pillar:

    .. code-block:: yaml

        azure_events: endpoint: http://169.254.169.254   # the default; or auto api_version:
          2020-07-01            # the default; a list is tried in its order resource_name: vm1
          # by default asked from IMDS; never the hostname receipts: /var/lib/approvals       # by
          default in the minion's cachedir allow_paths: false                 # in the minion's own
          configuration only: whether jobs may name files of the minion types: [Freeze, Reboot,
          Redeploy]  # what this minion prepares for; the default is all sources: [Platform]
          statuses: [Scheduled] minimum_notice: 30s                # no preparation begins with less
          time until NotBefore; the default is 0 prepare:                           # steps, one
          after the other; an empty list stands for nothing to do -
          /usr/local/bin/leave-load-balancer - {function: service.stop, args: [app], timeout: 60}
          recover: - {sls: app.running, pillar: {app: {state: up}}, timeout: 5m} - {name: join,
          command: [/usr/local/bin/join-load-balancer, --wait], timeout: 30}

:py:func:`prepare` and :py:func:`recover` run these steps. A step is a command (a text for the
shell, or a list), a function or an SLS file; when its ``timeout`` (default 300 s) is over,
everything that it has started is ended. Commands find the event in the environment variables
EVENT_ID, EVENT_TYPE, EVENT_STATUS, EVENT_SOURCE, EVENT_RESOURCES, EVENT_RESOURCE, EVENT_NOT_BEFORE,
EVENT_DURATION, EVENT_DESCRIPTION and EVENT_STAGE, SLS files its id in the pillar
``azure_events_event``. Steps may run more than once: after a reboot, and after a preparation that
was interrupted. Those of the recovery must succeed where there is nothing to undo.

Selection words, which many functions take. An event has to meet all that are given; letter case
makes no difference:

event_ids, types, statuses, sources
    A list, or one text. An empty list selects nothing. The beacon refuses one.

affects ``self`` (the default), ``any``, or names of VMs of which the event hits at least one. An
    empty list is refused.
"""

# Salt's loader puts __salt__, __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import contextlib
import json
import logging
import os

import salt.crypt
import salt.loader
import salt.utils.platform
import salt.utils.state
from salt.exceptions import CommandExecutionError, SaltInvocationError

try:
    from azure_events_steps import answers, preparation, recovery
    from azure_events_steps import approval as prepared_approval
    from azure_events_steps import status as minion_status
    from azure_events_steps.configuration import SLS, parse_configuration
    from azure_events_steps.minion import Minion
    from azure_events_watch import approval_options, settings, state_file, watchers
    from azure_scheduled_events.approval import approve as approve_events
    from azure_scheduled_events.errors import ImdsError
    from azure_scheduled_events.selection import ANY
    from azure_scheduled_events.session import ConnectionOptions, ImdsSession
    from azure_scheduled_events.transport import REQUESTS_IMPORT_ERROR
    from azure_scheduled_events.values import parse_choice
    from azure_scheduled_events.waiting import STATES, EventWait

    MISSING = (
        "the Python library requests is not installed for this minion" if REQUESTS_IMPORT_ERROR is not None else None
    )
except ImportError as error:
    MISSING = f"{error}: run saltutil.sync_all on this minion, or install the package into its Python"

log = logging.getLogger(__name__)

__virtualname__ = "azure_events"
__func_alias__ = {"list_": "list"}


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
    """
    The selected events.

    Returns a dictionary: ``events``, a list of events with the keys event_id, event_type, status,
    resources, resource_type, not_before, description, source and duration_seconds; ``complete``,
    False if an entry of the document could not be read, or if an event says nothing of its VMs and
    so might be selected; ``incarnation``; ``resource_name``, this VM's; and ``warnings``.

    timeout Seconds in all. The default leaves room for a VM's very first answer, which may take two
        minutes.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.list
        salt '*' azure_events.list affects=any types='[Reboot, Redeploy]'
    """
    chosen = _selection(event_ids, types, statuses, sources, affects)
    where = _connection_options(endpoint, api_version, resource_name, timeout)
    try:
        session = ImdsSession(where)
        document = session.read_events(name_required=chosen.needs_own_name)
        events = chosen.pick(document, session.resource_name)
        # whom an event hits that names no VM is unknown, which is not "somebody else"
        nameless = [
            event
            for event in chosen._replace(affects=ANY).pick(document, None)
            if not event.resources and event not in events
        ]
    except ImdsError as error:
        raise CommandExecutionError(str(error)) from error
    return {
        "events": [event.as_dict() for event in events],
        "complete": document.complete and not nameless,
        "incarnation": document.incarnation,
        "resource_name": session.resource_name,
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
        raise CommandExecutionError(
            f"an entry of the document could not be read, so nobody knows whether event {event_id} is over"
        )
    return found["events"][0] if found["events"] else None


def instance(endpoint=None, timeout=10):
    """
    The instance metadata of this VM as IMDS gives them: a dictionary with ``compute`` and ``network``.

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
    """
    Whether something is coming, for use in front of other things: it does not fail because of IMDS.

    Returns a dictionary: ``pending``, whether a selected event is known; ``available``, False where
    nothing can be known, and ``reason`` then says why; ``events``, ``incarnation`` and
    ``resource_name`` as :py:func:`list_` has them.

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
        result["reason"] = "not all of the document could be read, so there may be more events than these"
    result.update({key: found[key] for key in ("resource_name", "incarnation", "events")})
    return dict(result, available=found["complete"], pending=bool(found["events"]))


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
    """
    Wait until a selected event is there (``present``), has that status (``scheduled``, ``started``), or none is there (``absent``:
    two good documents in a row list none).

    Returns a dictionary: ``outcome``, which is "reached"; ``events``, ``elapsed`` in seconds,
    ``incarnation``, ``resource_name``, ``imds_errors``, the number of polls without a good answer,
    and ``imds_error``, the last of them. Trouble of IMDS does not end the wait. Fails after timeout
    seconds, and when every event of event_ids is over and the state can no more be reached.

    CLI Example:

    .. code-block:: bash

        salt -t 1000 vm1 azure_events.wait absent timeout=900
    """
    chosen = _selection(event_ids, types, statuses, sources, affects)
    where = _connection_options(endpoint, api_version, resource_name, timeout)
    try:
        wanted = parse_choice(state, STATES, "state")
        interval = settings.parse_duration("poll_interval", poll_interval, 0.25)
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error
    try:
        watch = EventWait(wanted, chosen, ImdsSession(where, interval))
        waited = watch.wait(where.timeout)
    except ImdsError as error:
        raise CommandExecutionError(str(error)) from error
    outcome = watch.outcome(waited)
    if outcome != "reached":
        raise CommandExecutionError(watch.failure(waited))
    return dict(watch.result(waited), outcome=outcome)


def status(event_id=None):
    """
    What Azure lists for this VM now, what this minion has prepared for, and what it works on. It does not fail because of IMDS.

    Returns a dictionary: ``version`` of this answer; ``resource_name``; ``available``, whether IMDS
    gave a good answer, and ``reason`` why not; ``complete`` and ``incarnation`` of the document;
    ``events``, each also with ``selected``, whether this minion would prepare for it, and
    ``not_selected_because``, the key of the configuration that leaves it out; ``records``, one for
    each event that the minion has prepared for; and ``working``, the id of the event that a job of
    this minion works on now, or None.

    event_id
        Show this event, whichever VM it hits; by default all that hit this VM.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.status
    """
    try:
        return minion_status.status(_minion(), _event_id(event_id))
    except ValueError as error:
        return minion_status.status(
            Minion(__opts__["cachedir"], parse_configuration(None), _call_step), problem=str(error)
        )


def prepare(event_id=None, test=False):
    """
    Prepare this minion for an event, with the steps of ``azure_events:prepare``, once in a boot.

    It prepares only for an event that its own IMDS lists now as Scheduled, that hits this VM, and
    that its own selection admits. For a second event in the same boot nothing runs again. It never
    waits for a state run.

    Returns a dictionary: ``outcome``, one of prepared, already_prepared, would_prepare, not_listed,
    not_affected, not_selected, started, no_steps, failed, unavailable and busy, of which the first
    three are successes; ``reason``; ``changed``; ``event``; ``steps``, the result of each;
    ``event_id``, ``resource_name`` and ``version``.

    event_id Without one the minion is prepared by hand, whatever Azure lists. Only
        :py:func:`recover` without an id undoes that.

    test
        Nothing runs; the result tells what would.

    CLI Example:

    .. code-block:: bash

        salt vm1 azure_events.prepare C7061BAC-AFDC-4513-B24B-AA5F13A16123
        salt vm1 azure_events.prepare test=True
    """
    job = answers.Job(answers.PREPARE, _event_id(event_id))
    dry = _truth("test", test)
    return _run_job(job, lambda minion: preparation.prepare(minion, job, dry))


def recover(event_id=None, test=False):
    """
    Recover this minion, with the steps of ``azure_events:recover``, when every event is over that it has prepared for.

    An event is over when two good documents in a row do not list it. A minion that has prepared for
    two events recovers once, after both.

    Returns a dictionary like :py:func:`prepare`. ``outcome`` is one of recovered, not_prepared,
    would_recover, still_listed, no_steps, failed, unavailable and busy, of which the first three
    are successes.

    event_id
        Without one: recover from a preparation by hand, and from every event that is over.

    test
        Nothing runs; the result tells what would.

    CLI Example:

    .. code-block:: bash

        salt vm1 azure_events.recover C7061BAC-AFDC-4513-B24B-AA5F13A16123
        salt vm1 azure_events.recover
    """
    job = answers.Job(answers.RECOVER, _event_id(event_id))
    dry = _truth("test", test)
    return _run_job(job, lambda minion: recovery.recover(minion, job, dry))


def sweep(test=False):
    """
    Recover from every event that this minion has prepared for and that is over. For Salt's scheduler, where no master does it.

    Returns a dictionary: ``results``, one for each event of the record as :py:func:`recover`
    returns it, and ``version``.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.sweep
    """
    dry = _truth("test", test)
    try:
        results = recovery.sweep(_minion(), dry)
    except (ValueError, OSError) as error:
        results = [answers.Job(answers.RECOVER, None).refused(str(error))]
    if not all(
        result["outcome"] == answers.STILL_LISTED or answers.is_success(answers.RECOVER, result["outcome"])
        for result in results
    ):
        __context__["retcode"] = 1
    return {"version": answers.VERSION, "results": results}


def approve_prepared(event_id, resources):
    """
    Approve an event for which this minion has prepared in this boot. For the engine on the master, which knows that the others are ready.

    It approves only what its own IMDS lists as Scheduled, what hits this VM, and what hits no VM
    that is missing from ``resources``.

    Returns a dictionary: ``outcome``, one of approved, already_approved, started, not_listed,
    not_prepared, not_affected, not_selected, others_affected, failed and unavailable, of which the
    first two are successes; ``reason``, ``event_id``, ``resource_name`` and ``version``.

    resources
        Names of all VMs that are ready. The event must not hit another one.

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
    return _run_job(job, lambda minion: prepared_approval.approve_prepared(minion, job, names, _receipts(None)))


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
    """
    Approve events, so that they start early. That cannot be taken back, and releases every VM that the event names.

    Returns a dictionary: ``changed``; ``approvals``, a list with event_id, outcome, reason and
    event for every event that is meant; ``approved``, the ids of those approved now;
    ``incarnation``, ``resource_name`` and ``warnings``. An outcome is one of approved,
    already_approved, started, not_found, not_selected, not_due, others_affected and failed. Fails
    when IMDS does not take an approval, and when an event that was asked for by its id hits other
    VMs too.

    policy, policy_file Rules that decide which of the selected events are approved: ``documented``,
        ``observe``, a dictionary with rules, or a YAML file on the minion, of at most 1 MB. One of
        these, or one of event_ids, types, statuses and sources, has to be given.

    prepared, gates For the policy: ``none``, ``running``, ``ok`` or ``failed``; and results of
        checks of your own by name.

    release_others
        Whether to approve events that also hit other VMs than this one.

    receipts Folder for notes of approvals, by which a second approval is recognised. A note counts
        for the id at its NotBefore.

        A job may name a policy_file or receipts only if the minion's own configuration has
        ``azure_events: {allow_paths: true}``; ``salt-call`` on the minion may always.

    test
        Nothing is sent; the result tells what would be.

    CLI Example:

    .. code-block:: bash

        salt vm1 azure_events.approve policy=documented
        salt vm1 azure_events.approve event_ids=C7061BAC-AFDC-4513-B24B-AA5F13A16123 test=True
    """
    chosen = _selection(event_ids, types, statuses, sources, affects)
    where = _connection_options(endpoint, api_version, resource_name, timeout)
    _check_paths(policy_file=policy_file, receipts=receipts)
    try:
        criteria = approval_options.parse_criteria(
            chosen, policy, policy_file, prepared, gates, release_others, _is_local_call()
        )
    except (ValueError, TypeError) as error:
        raise SaltInvocationError(str(error)) from error
    folder = _receipts(receipts)
    if not test:
        # what of it cannot be made is told as a note that could not be kept
        with contextlib.suppress(OSError):
            state_file.ensure_directory(__opts__["cachedir"])
    try:
        done = approve_events(ImdsSession(where), criteria, folder, send=not test)
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

    Returns a dictionary by name of beacon: ``resource_name``; ``checked``, when IMDS last gave a
    good answer (written once a minute); ``error``, what is wrong with it now, or None;
    ``endpoint``; ``events``, those that last or were over lately, as the beacon tells them; and
    ``path`` of the file.

    name
        Of one beacon; by default all.

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
    """
    Whether a configuration of the beacon is right: a list of that and a sentence. The beacon's ``validate`` calls it.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_check '[{interval: 5}, {affects: any}]'
    """
    try:
        settings.cached_settings(config, _section())
    except ValueError as error:
        return [False, f"azure_events beacon: {error}"]
    return [True, "azure_events beacon: the configuration is valid"]


def watch_news(config):
    """
    What the beacon has to tell: a list of changes. It starts the thread that asks IMDS, and waits for it 50 milliseconds at the most.

    For the beacon alone, in the minion's own process: a configuration that Salt's beacons did not
    hand over is refused. A job that started a thread would write over what the minion has seen. For
    people there is :py:func:`watch_status`:

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_status
    """
    if not settings.is_from_salt(config):
        raise SaltInvocationError(
            "watch_news is for the beacon alone; see azure_events.watch_status for what it has seen"
        )
    asked = settings.cached_settings(config, _section())
    return watchers.pending_notifications(
        asked, state_file.state_path(__opts__["cachedir"], asked.name), str(__opts__.get("master_uri", "")), _session()
    )


def watch_close(config):
    """
    Stop what :py:func:`watch_news` started in this process. For the beacon alone; a job has nothing to stop. Returns True.

    CLI Example:

    .. code-block:: bash

        salt '*' azure_events.watch_close '[{affects: any}]'
    """
    watchers.close(state_file.state_path(__opts__["cachedir"], settings.beacon_name(config)))
    return True


def _defaults():
    """What the configuration of the minion, or else its pillar, says for all calls."""
    known = ("endpoint", "api_version", "resource_name", "receipts")
    section = _section()
    return {key: section[key] for key in known if section.get(key) is not None}


def _section():
    """The section azure_events: the configuration of the minion, and below it its pillar."""
    found = {}
    for source in (__pillar__, __opts__):
        section = source.get("azure_events")
        if isinstance(section, dict):
            found.update(section)
    return found


def _session():
    """The key that the master has given this process, or None; a master that starts anew gives another."""
    return tuple(creds.get("aes") for creds in salt.crypt.AsyncAuth.creds_map.values()) or None


def _minion():
    """What this minion prepares and recovers with. Raises ValueError for a configuration that is wrong."""
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
    return Minion(__opts__["cachedir"], parse_configuration(_section(), beacons.get("azure_events")), _call_step)


def _call_step(step, variables):
    """Run a step that is a function or an SLS file: whether it succeeded, and what came of it. Called in a process of its own.

    The functions are loaded anew: the connections that those of this job may have belong to its
    process.
    """
    # a dry run would count as prepared
    opts = dict(__opts__, test=False)
    context = {}
    functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts), context=context)
    if step.kind == SLS:
        pillar = dict(step.pillar, azure_events_event=variables["EVENT_ID"])
        result = functions["state.sls"](step.what, pillar=pillar, test=False, concurrent=True)
        return salt.utils.state.check_result(result), _summary(result)
    if step.what not in functions:
        return False, f"the function {step.what} is not available: {functions.missing_fun_string(step.what)}"
    result = functions[step.what](*step.args, **step.kwargs)
    failed = result is False or context.get("retcode", 0) != 0
    if isinstance(result, dict):
        failed = failed or not all(result.get(key, True) for key in ("result", "success"))
    return not failed, result if isinstance(result, str) else json.dumps(result, default=str)


def _summary(result):
    """What came of a run of states: those that failed, or their number."""
    if not isinstance(result, dict):
        return "; ".join(map(str, result)) if isinstance(result, list) else str(result)
    failed = [
        f"{key}: {one.get('comment')}"
        for key, one in result.items()
        if isinstance(one, dict) and one.get("result") is False
    ]
    return "; ".join(failed) or f"{len(result)} states"


def _run_job(job, work):
    """What the work answers; where that is not a success the job gets the retcode 1."""
    try:
        answer = work(_minion())
    except ValueError as error:
        answer = job.refused(str(error))
    if not answers.is_success(job.stage, answer["outcome"]):
        __context__["retcode"] = 1
    return answer


def _event_id(event_id):
    """The id as a text, since Salt makes a number of one that looks like it."""
    if event_id is None or (isinstance(event_id, str) and event_id):
        return event_id
    if isinstance(event_id, (int, float)) and not isinstance(event_id, bool):
        return str(event_id)
    raise SaltInvocationError(
        f"event_id: expected the id of an event, not {event_id!r}; leave it out for a preparation by hand"
    )


def _truth(name, value):
    if not isinstance(value, bool):
        raise SaltInvocationError(f"{name}: expected true or false, not {value!r}")
    return value


def _receipts(given):
    return given or _defaults().get("receipts") or os.path.join(state_file.folder(__opts__["cachedir"]), "approvals")


def _is_local_call():
    """Return True if this is salt-call, which only users of this host can run, and not a job of a master."""
    return str(__opts__.get("__cli", "")).startswith("salt-call")


def _check_paths(**given):
    """Refuse files and folders of this minion as arguments of a job, unless its own configuration allows them."""
    section = __opts__.get("azure_events")
    allowed = isinstance(section, dict) and section.get("allow_paths") is True
    for name, path in given.items():
        if path is not None and not allowed and not _is_local_call():
            raise SaltInvocationError(
                f"{name}: this minion takes paths from jobs only with azure_events: {{allow_paths: true}} in its own configuration"
            )


def _selection(event_ids, types, statuses, sources, affects):
    try:
        chosen, unknown = settings.parse_selection(
            {"event_ids": event_ids, "types": types, "statuses": statuses, "sources": sources, "affects": affects}
        )
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error
    for text in (one.text for one in unknown):
        log.warning("azure_events: %s", text)
    return chosen


def _connection_options(endpoint, api_version, resource_name, timeout):
    given = {"endpoint": endpoint, "api_version": api_version, "resource_name": resource_name}
    try:
        return ConnectionOptions(
            *settings.parse_connection(given, _defaults()), settings.parse_duration("timeout", timeout, 0.001)
        )
    except ValueError as error:
        raise SaltInvocationError(str(error)) from error
