# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import runpy
import typing as t

DOCUMENTATION = r"""
---
module: scheduled_events
short_description: Report the scheduled events of an Azure virtual machine
version_added: 0.1.0
author:
  - Contributors to the azure_imds.scheduled_events collection
description:
  - An event source of ansible-rulebook that polls the Instance Metadata Service of the VM on which the
    rulebook runs. The document of this VM lists the events of its whole availability set, scale set placement
    group or cloud service.
  - Each change of an event is one event of the rulebook, in the member C(scheduled_event).
  - An event is gone when good documents in a row, at least two seconds apart, lack it, and after a minute if it had
    come back. A failed poll means that the events are unknown, never that they are gone. The source then polls
    again with increasing pauses, and logs one line when the polls begin to fail and one when they succeed again.
  - The source keeps nothing on disk. After a restart of the rulebook it reports each pending event again as
    C(appeared), and it does not report events that ended in between. The role maintenance is idempotent and
    continues from the notes on the hosts.
  - Use the filter of the same name behind this source. It adds the hosts of the inventory and marks repeated
    changes, with C(is_news).
options:
  endpoint:
    description:
      - Base URL of the Instance Metadata Service, V(http://HOST) or V(http://HOST:PORT).
    type: str
    default: "http://169.254.169.254"
  api_version:
    description:
      - Version of Scheduled Events, or a list of versions in the order of fall-back.
    type: list
    elements: str
    default: ["2020-07-01"]
  interval:
    description:
      - Seconds between polls, from 1 to 3600. A Preempt gives 30 seconds of notice.
    type: float
    default: 1
  timeout:
    description:
      - Seconds for one answer, from 1 to 120. The first answer may take two minutes.
    type: float
    default: 10
  resource_name:
    description:
      - Name of this VM in the reports. By default the source requests it from the Instance Metadata
        Service.
    type: str
  due_within:
    description:
      - Seconds, at least 1. An event that starts later is reported when less than this time remains, or when it
        has started.
      - By default the source reports an event at once.
    type: float
"""

EXAMPLES = r"""
- name: Run the maintenance of a group of virtual machines
  hosts: all
  sources:
    - azure_imds.scheduled_events.scheduled_events:
        interval: 1
      filters:
        - azure_imds.scheduled_events.scheduled_events:
  rules:
    - name: Show each change
      condition: event.scheduled_event.is_news
      action:
        debug:
          msg: "{{ event.scheduled_event.change }} {{ event.scheduled_event.event.event_type }}"
"""

runpy.run_path(os.path.join(os.path.dirname(__file__), os.pardir, "collection_path.py"))

from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_source import (
    run,
)


async def main(queue: t.Any, args: dict[str, t.Any]) -> None:
    """Deliver one event per change of a scheduled event, until the task is cancelled."""
    await run(queue, args)
