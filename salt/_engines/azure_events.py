# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Prepare the VMs of an Azure Scheduled Event, approve it once, and recover the VMs.

.. versionadded:: 0.1.0

The engine takes the events of beacons as hints, and polls the minions themselves. It has every
minion that an event affects prepare, approves the event once when all its VMs are ready, and has
the minions recover when it is over. ``salt-run azure_events.status`` shows the progress.

:configuration: In the master's configuration. All keys of ``azure_events`` are optional; these are
    their defaults:

.. code-block:: yaml

    engines:
      - azure_events: {}

    azure_events:
      minions: '*'                # minions that take part
      minions_type: glob
      mapping: {}                 # minion id: name of its VM in Azure
      mapping_pillar: ''          # pillar key with the name of the VM
      unknown_resources: hold     # or approve, although an event affects VMs without a minion
      at_once: 20                 # maintenances whose preparation is started at a time
      answer: 15s                 # time for the return of a preparation, before its minion is polled
      poll: 30s                   # time between polls of the minions of a maintenance without a hint
      sweep: 5m                   # time between polls of all minions without a hint
      keep: 24h                   # time for which a maintenance that is over stays in the status

The engine and its helper are synchronized to the master by ``salt-run saltutil.sync_engines`` and
``salt-run saltutil.sync_utils``, or installed as a Python package. The engine starts with the next
start of the master.
"""

# Salt's loader puts __opts__ and the like into the module
# pylint: disable=undefined-variable

from __future__ import annotations

import logging
import os

import salt.client
import salt.loader
import salt.payload
import salt.utils.event
import salt.utils.jid
import salt.utils.master
import salt.utils.minions
from salt.exceptions import SaltException

try:
    from azure_events_engine import signature
    from azure_events_engine.engine import REPLY, REQUEST, JobCacheError, MaintenanceEngine, PublishError
    from azure_events_engine.messages import Known
    from azure_events_engine.settings import parse_settings
    from azure_events_engine.store import Store

    MISSING = None
except ImportError as error:
    MISSING = f"{error}: run salt-run saltutil.sync_utils, or install the package into the master's Python"

log = logging.getLogger(__name__)

__virtualname__ = "azure_events"

# seconds to wait for the bus while the engine is busy, and while it is not
_WAIT = 0.1
_IDLE_WAIT = 0.5
# events that are taken before the engine decides
_MAX_EVENTS = 25
_LOCAL_CACHE = "local_cache"


def __virtual__():
    return __virtualname__ if MISSING is None else (False, "azure_events: " + MISSING)


def start():
    """Run until the master ends. The master calls it.

    CLI Example:

    .. code-block:: bash

        salt-run azure_events.status
    """
    # before all else: from here on the bus queues events for the engine
    with salt.utils.event.get_master_event(__opts__, __opts__["sock_dir"], listen=True) as bus:
        try:
            settings = parse_settings(__opts__.get("azure_events"))
        except ValueError as error:
            _refuse(bus, str(error))
            return
        if not __opts__.get("job_cache", True):
            _refuse(
                bus,
                "azure_events: job_cache is off; the engine reads the returns of minions from the master's job cache",
            )
            return
        folder = os.path.join(__opts__["cachedir"], "azure_events")
        engine = MaintenanceEngine(
            settings,
            _Master(bus, settings),
            Store(os.path.join(folder, "engine.sqlite")),
            signature.read_secret(_secret_path()),
        )
        engine.open()
        while True:
            _take_all(bus, engine)
            engine.tick()


def _take_all(bus, engine):
    event = bus.get_event(wait=_WAIT if engine.is_busy else _IDLE_WAIT, full=True, auto_reconnect=True)
    for _number in range(_MAX_EVENTS):
        if event is None:
            return
        try:
            engine.take(event["tag"], event["data"])
        except Exception:  # pylint: disable=broad-exception-caught  # one event must not end the engine
            log.exception("azure_events: the event %.200r could not be taken", event.get("tag"))
        event = bus.get_event(full=True, no_block=True, auto_reconnect=True)


def _refuse(bus, problem):
    """Log a problem of the configuration, and answer every request with it."""
    log.error("%s", problem)
    while True:
        event = bus.get_event(wait=60, tag=REQUEST, full=True, auto_reconnect=True)
        if event is not None:
            bus.fire_event({"error": problem}, REPLY + event["tag"][len(REQUEST) :])


def _secret_path():
    return os.path.join(__opts__["cachedir"], "azure_events", "secret")


class _Master:
    """The ports of the engine to this master."""

    def __init__(self, bus, settings):
        self._bus = bus
        self._settings = settings
        self._client = None
        self._returners = None

    def publish(self, function, minions, kwargs):
        try:
            if self._client is None:
                self._client = salt.client.LocalClient(mopts=dict(__opts__))
            published = self._client.run_job(
                list(minions), "azure_events." + function, kwarg=dict(kwargs), tgt_type="list", timeout=5, listen=False
            )
        except (SaltException, OSError) as error:
            self._client = None
            raise PublishError(str(error)) from error
        if not published or "jid" not in published:
            raise PublishError("the master did not take the job")
        return published["jid"]

    def send(self, tag, data):
        self._bus.fire_event(dict(data), tag)

    def known(self):
        settings = self._settings
        accepted = salt.utils.minions.CkMinions(__opts__).check_minions(settings.minions, settings.minions_type)[
            "minions"
        ]
        return Known(
            frozenset(accepted), self._pillar_names(list(accepted)) if accepted and settings.mapping_pillar else {}
        )

    def stored_return(self, job_id, minion):
        try:
            return self._read_job_cache(job_id, minion)
        except Exception as error:  # pylint: disable=broad-exception-caught  # of any module for job caches
            raise JobCacheError(f"{type(error).__name__}: {error}") from error

    def _read_job_cache(self, job_id, minion):
        if __opts__["master_job_cache"] == _LOCAL_CACHE:
            folder = salt.utils.jid.jid_dir(job_id, os.path.join(__opts__["cachedir"], "jobs"), __opts__["hash_type"])
            try:
                with open(os.path.join(folder, minion, "return.p"), "rb") as file:
                    return salt.payload.load(file)
            except FileNotFoundError:
                return None
        if self._returners is None:
            self._returners = salt.loader.returners(__opts__, {})
        return self._returners[__opts__["master_job_cache"] + ".get_jid"](job_id).get(minion)

    def _pillar_names(self, minions):
        """Return the VM names in the pillars that the master last rendered for the minions."""
        try:
            cached = salt.utils.master.MasterPillarUtil(
                minions,
                "list",
                use_cached_grains=True,
                grains_fallback=False,
                use_cached_pillar=True,
                pillar_fallback=False,
                opts=__opts__,
            ).get_minion_pillar()
        except Exception as error:  # pylint: disable=broad-exception-caught  # a damaged file concerns its minion alone
            if len(minions) == 1:
                log.warning("azure_events: the cached pillar of %s cannot be read: %s", minions[0], error)
                return {}
            half = len(minions) // 2
            return {**self._pillar_names(minions[:half]), **self._pillar_names(minions[half:])}
        found = {}
        for minion, pillar in cached.items():
            for key in self._settings.mapping_pillar.split(":"):
                pillar = pillar.get(key) if isinstance(pillar, dict) else None
            if isinstance(pillar, str) and pillar:
                found[minion] = pillar
        return found
