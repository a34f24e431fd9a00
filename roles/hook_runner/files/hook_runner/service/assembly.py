# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Starts the daemon up to its main loop: takes the lock, opens journal and sockets, connects the parts."""

from __future__ import annotations

import grp
import logging
import os
import time
from typing import NamedTuple

from azure_scheduled_events.document import ScheduledEvent
from azure_scheduled_events.imds import Imds
from hook_runner.clock import ServerClock, boot_id
from hook_runner.config.directories import check_directory_permissions
from hook_runner.config.settings import Settings
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.spawning import has_units
from hook_runner.journal.journal import Journal
from hook_runner.lifecycle.engine import Engine
from hook_runner.log import set_level
from hook_runner.permissions import make_folder
from hook_runner.records import EventRecord
from hook_runner.reporting.imds_health import ImdsHealth
from hook_runner.service.configuration_source import Configuration
from hook_runner.service.control_requests import ControlRequests
from hook_runner.service.control_socket import STATUS_NAME, ControlSocket, remove_stale
from hook_runner.service.inbox import Inbox
from hook_runner.service.instance import lock_instance
from hook_runner.service.metrics_output import MetricsOutput, open_metrics
from hook_runner.service.poller import Poller
from hook_runner.service.systemd import SystemdNotifier

log = logging.getLogger(__name__)

# seconds for a TCP connection to IMDS
CONNECT_TIMEOUT = 3.0
# startup waits this long for an unreadable journal, because starting without it would run hooks again
JOURNAL_TIMEOUT = 30.0
JOURNAL_RETRY_INTERVAL = 1.0
# seconds that systemd is asked to add to the start while it waits
_EXTEND_TIMEOUT = 30.0


class Parts(NamedTuple):
    """The connected parts of a daemon.

    Attributes:
        settings: the settings in force.
        owners: uids that may own hooks and folders.
        instance_lock: descriptor that holds the run directory.
        runs: readable, for poll(2), when a hook run may have ended.
    """

    settings: Settings
    owners: frozenset[int]
    configuration: Configuration
    notifier: SystemdNotifier
    clock: ServerClock
    health: ImdsHealth
    metrics: MetricsOutput
    inbox: Inbox
    instance_lock: int
    journal: Journal
    runs: HookRuns
    poller: Poller
    engine: Engine
    requests: ControlRequests
    controls: list[ControlSocket]


def assemble(configuration: Configuration, owners: frozenset[int]) -> Parts:
    """Return the parts of a daemon that is ready to poll.

    Waits up to JOURNAL_TIMEOUT seconds for a journal that cannot be read. A signal may end the
    process during this wait: no hook has been started, and no request been sent.

    Raises:
        ConfigError: the configuration is not usable.
        AlreadyRunning: another daemon works in the same directory.
        OSError: a folder, a socket or the journal cannot be created.
    """
    notifier = SystemdNotifier()
    settings = configuration.load()
    set_level(settings.log_level)
    clock, health = ServerClock(), ImdsHealth()
    check_directory_permissions(settings, owners)
    make_folder(settings.run_directory, 0o755, owners)
    instance_lock = lock_instance(settings.run_directory)
    clock.restore(clock_file(settings))
    metrics = open_metrics(settings, clock, owners)
    journal = Journal.open(settings.journal, log.warning)
    _await_journal(journal, settings.journal, notifier)
    runs = HookRuns(
        settings.run_directory,
        settings.environment,
        settings.kill_after,
        # a process that systemd did not start as a service is a test, or in a container
        in_units="INVOCATION_ID" in os.environ and has_units(),
    )
    inbox = Inbox()
    poller = _make_poller(settings, inbox, clock)

    def send_approval(record: EventRecord, event: ScheduledEvent) -> None:
        poller.approve(record.id, event)

    engine = Engine(
        settings,
        configuration.hooks(settings),
        journal,
        runs,
        clock,
        send_approval,
        metrics.step_ended,
        boot_id().decode("ascii"),
    )
    requests = ControlRequests(engine, journal, health, clock, configuration.in_force, poller)
    controls = _open_controls(settings, requests)
    return Parts(
        settings,
        owners,
        configuration,
        notifier,
        clock,
        health,
        metrics,
        inbox,
        instance_lock,
        journal,
        runs,
        poller,
        engine,
        requests,
        controls,
    )


def clock_file(settings: Settings) -> str:
    """Return the path of the file that carries the server's clock to the next process."""
    return os.path.join(settings.run_directory, "clock")


def _await_journal(journal: Journal, path: str, notifier: SystemdNotifier) -> None:
    """Wait for a journal that cannot be read, with a limit."""
    until = time.monotonic() + JOURNAL_TIMEOUT
    while not journal.is_known and time.monotonic() < until:
        notifier.notify(
            f"EXTEND_TIMEOUT_USEC={int(_EXTEND_TIMEOUT * 1000000.0)}",
            "STATUS=waiting for the journal, which is not readable",
        )
        time.sleep(JOURNAL_RETRY_INTERVAL)
        journal.reload()
    if not journal.is_known:
        log.error(
            "the journal %s is not readable: hooks may run again for events that it has",
            path,
        )


def _make_poller(settings: Settings, inbox: Inbox, clock: ServerClock) -> Poller:
    imds = Imds(settings.endpoint, settings.api_version, settings.timeout, settings.first_timeout)
    # a call may be repeated once, on a connection that the server had closed, for each version that a poll tries
    longest = 2 * imds.versions_of_a_poll * (CONNECT_TIMEOUT + settings.timeout)
    longest_first = longest + 2 * imds.versions_of_a_poll * settings.first_timeout
    return Poller(
        imds,
        settings.interval,
        longest_first,
        longest,
        inbox.put,
        not settings.resource_name,
        clock.doubts,
    )


def _open_controls(settings: Settings, requests: ControlRequests) -> list[ControlSocket]:
    """Return the socket for all requests and, if status_group is set, the read-only socket."""
    directory = settings.run_directory
    control_gid = _group_id("control_group", settings.control_group)
    made = [ControlSocket(directory, control_gid, requests.answer)]
    status_gid = _group_id("status_group", settings.status_group)
    if status_gid is not None:
        made.append(ControlSocket(directory, status_gid, requests.answer, STATUS_NAME))
    else:
        remove_stale(directory, STATUS_NAME)
    for control in made:
        control.listen()
    return made


def _group_id(key: str, name: str) -> int | None:
    if not name:
        return None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        log.error("%s: there is no group %r; only root has its rights", key, name)
        return None
