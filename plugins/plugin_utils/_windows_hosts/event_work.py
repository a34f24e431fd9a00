# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work of an event module on the controller, with the IMDS of a host."""

from __future__ import annotations

import typing as t

from ...module_utils._event_tasks.approve import EVENT_APPROVE
from ...module_utils._event_tasks.event_task import EventCall, EventTask, InvalidOptions, Result, failure
from ...module_utils._event_tasks.facts import EVENT_FACTS
from ...module_utils._event_tasks.info import EVENT_INFO
from ...module_utils._event_tasks.wait import EVENT_WAIT
from ...module_utils.azure_scheduled_events.errors import ImdsError
from ...module_utils.azure_scheduled_events.session import ConnectionOptions, ImdsSession
from ...module_utils.azure_scheduled_events.transport import TransportInterface
from .host_module import HostModule
from .host_transport import LONGEST_HOLD, HostTransport

# by the name of the module, without the collection
EVENT_TASKS = {
    "event_approve": EVENT_APPROVE,
    "event_facts": EVENT_FACTS,
    "event_info": EVENT_INFO,
    "event_wait": EVENT_WAIT,
}
# seconds between polls from which each poll is a run of the module: at most 2 in a minute
_LONG_INTERVAL = 30.0


def work_on_controller(
    task: EventTask, params: t.Mapping[str, t.Any], check_mode: bool, exchange: HostModule
) -> Result:
    """Return the result of a module.

    ``params`` has the values of all its options; ``exchange`` is module imds_exchange on the host.
    """

    def transport(endpoint: str, max_bytes: int, connect_timeout: float, clock: object) -> TransportInterface:
        return HostTransport(exchange, endpoint, max_bytes, connect_timeout)

    def connect(options: ConnectionOptions, interval: float) -> ImdsSession:
        hold = LONGEST_HOLD if interval < _LONG_INTERVAL else 0.0
        return ImdsSession(options, interval, transport=transport, hold=hold)

    warnings: list[str] = []
    try:
        result = task.work(EventCall(params, check_mode, warnings.append, connect))
    except (ImdsError, InvalidOptions) as error:
        result = failure(error)
    if warnings:
        result["warnings"] = warnings
    return result
