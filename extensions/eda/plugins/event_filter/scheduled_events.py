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
short_description: Turn reports of Azure scheduled events into one shape, with the hosts of the inventory
version_added: 0.1.0
author:
  - Contributors to the azure_imds.scheduled_events collection
description:
  - An event filter of ansible-rulebook. It reads the changes that the event source of the same name, the ready hook
    notify and Salt report, and notifications of Azure Event Grid in its own schema and as CloudEvents 1.0. It finds
    them in C(payload) (webhook, event stream), in C(body) (Service Bus, Kafka) and in the event itself, as an object,
    a list, or JSON as text.
  - It adds C(scheduled_event), the change, and C(meta.hosts), by which ansible-rulebook limits a playbook. The change
    also has C(hosts), C(limit) (the hosts as one text), C(unknown_resources), C(event_key) (the ID of the event in
    lower case), C(occurrence) (1, and one more each time the event is listed again after its end), C(nature)
    (C(interrupts), C(removes) or C(advises), by the type of the event) and C(is_news).
  - C(is_news) is false for a repeated delivery, for a state that another VM has reported before, and for a
    delivery that is late. The end that one VM observed is news when all VMs that have reported the event
    have reported its end, except those that a Preempt or Terminate has removed. The end that Event Grid reports is
    news at once.
  - If no resource has a host, C(meta.hosts) and C(limit) are C(!all), which selects no host. With an empty list
    ansible-rulebook would run a playbook on all hosts.
  - It removes the delivery itself (C(payload), C(body)) and separates the braces of templates and a header C(#jinja2:)
    in texts, because a playbook gets the event as variables, which Ansible renders.
  - An unreadable delivery is logged and gets C(scheduled_event_problem). Any other event passes through.
  - It removes C(scheduled_event), C(scheduled_event_problem) and C(meta.hosts) of the sender from every event, so that
    a sender cannot select hosts.
  - The memory is bounded and lost when the rulebook ends.
  - An environment variable sets an option because ansible-rulebook does not substitute variables in options of
    filters.
options:
  host_table:
    description:
      - Names of VMs as in C(Resources), with their hosts in the inventory. Letter case of the VMs does not count.
      - By default a host has the name of the VM.
    type: dict
  host_table_file:
    description:
      - File with the table as a JSON object. The filter reads it for each event. It excludes O(host_table).
      - The environment variable C(AZURE_SCHEDULED_EVENTS_HOST_TABLE_FILE) sets it, too.
    type: path
  host_pattern:
    description:
      - Regular expression for the whole name of a VM that is not in the table.
      - The environment variable C(AZURE_SCHEDULED_EVENTS_HOST_PATTERN) sets it, too.
    type: str
  host_template:
    description:
      - Host of a name that matches O(host_pattern), with C(\1) or C(\g<name>) for its groups. By default the name
        itself.
      - The environment variable C(AZURE_SCHEDULED_EVENTS_HOST_TEMPLATE) sets it, too.
    type: str
  memory:
    description:
      - Name of a memory. Sources of one rulebook that set the same name share the memory, so that a change that
        several sources report is news once. By default each source has its own.
    type: str
"""

EXAMPLES = r"""
- eda.builtin.webhook:
    host: 127.0.0.1
    port: 5000
    token: "{{ webhook_token }}"
  filters:
    - azure_imds.scheduled_events.scheduled_events:
        host_pattern: "(web|db)([0-9]+)"
        host_template: '\1-\2.example.com'
"""

runpy.run_path(os.path.join(os.path.dirname(__file__), os.pardir, "collection_path.py"))

from ansible_collections.azure_imds.scheduled_events.plugins.plugin_utils._event_driven.event_filter import (
    EventFilter,
)

_FILTER = EventFilter()


def main(event: dict[str, t.Any], **options: t.Any) -> dict[str, t.Any] | list[dict[str, t.Any]]:
    """Return the event with `scheduled_event` and `meta.hosts` if it reports a scheduled event."""
    return _FILTER.apply(event, options)
