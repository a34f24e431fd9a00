# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Starts the daemon up to its main loop: takes the lock, reads records, opens sockets, connects the parts."""

from __future__ import annotations

import grp
import logging
import os
from typing import NamedTuple

from azure_scheduled_events.imds import Imds
from hook_runner.clock import ServerClock, boot_id
from hook_runner.config.directories import check_directory_permissions
from hook_runner.config.settings import Settings
from hook_runner.hooks.runs import HookRuns
from hook_runner.hooks.systemd import Systemd
from hook_runner.log import set_level
from hook_runner.permissions import make_folder
from hook_runner.record_store import RecordStore
from hook_runner.reporting.imds_health import ImdsHealth
from hook_runner.runner import Runner
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
    store: RecordStore
    runs: HookRuns
    poller: Poller
    runner: Runner
    requests: ControlRequests
    controls: list[ControlSocket]


def assemble(configuration: Configuration, owners: frozenset[int]) -> Parts:
    """Return the parts of a daemon that is ready to poll.

    Raises:
        ConfigError: the configuration is not usable.
        AlreadyRunning: another daemon works in the same directory.
        OSError: a folder or a socket cannot be created.
    """
    notifier = SystemdNotifier()
    os.environ.pop("NOTIFY_SOCKET", None)  # systemctl would send its errors there
    settings = configuration.load()
    set_level(settings.log_level)
    clock, health = ServerClock(), ImdsHealth()
    check_directory_permissions(settings, owners)
    make_folder(settings.run_directory, 0o755, owners)
    instance_lock = lock_instance(settings.run_directory)
    clock.restore(clock_file(settings))
    metrics = open_metrics(settings, clock, owners)
    boot = boot_id().decode("ascii")
    store = RecordStore(settings.state_directory, boot, log.warning, clock.now)
    store.load()
    systemd = Systemd()
    # a process that systemd did not start as a service is a test, or in a container
    has_units = "INVOCATION_ID" in os.environ and systemd.has_units()
    runs = HookRuns(
        settings.run_directory, settings.environment, settings.kill_after, systemd=systemd if has_units else None
    )
    inbox = Inbox()
    poller = _make_poller(settings, inbox, clock)
    hooks = configuration.hooks(settings)
    runner = Runner(settings, hooks, store, runs, clock, poller.approve, metrics.hook_ended, boot)
    requests = ControlRequests(runner, health, clock, configuration, poller)
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
        store,
        runs,
        poller,
        runner,
        requests,
        controls,
    )


def clock_file(settings: Settings) -> str:
    """Return the path of the file that carries the server's clock to the next process."""
    return os.path.join(settings.run_directory, "clock")


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
