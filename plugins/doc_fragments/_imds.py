# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for reaching IMDS, and for choosing events, which all event modules have."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  endpoint:
    description:
      - Base URL of the Instance Metadata Service, V(http://HOST) or V(http://HOST:PORT).
      - V(auto) takes the usual address if it accepts a connection, else one that DHCP option 245 names in the lease
        files of dhclient, NetworkManager or systemd-networkd, for VMs outside a virtual network.
      - Proxies are never used and redirects never followed.
    type: str
    default: http://169.254.169.254
  api_version:
    description:
      - Version of the Scheduled Events API.
      - With several, the next one is tried when IMDS refuses a version. That is the only case in which another version
        than the first is used.
    type: list
    elements: str
    default: ['2020-07-01']
  resource_name:
    description:
      - Name of this VM as Azure knows it.
      - By default it is what IMDS tells as C(compute.name). It is never guessed from the hostname, which differs for
        the VMs of a scale set, for instance.
    type: str
requirements:
  - python >= 3.9
  - requests
notes:
  - The library C(requests) has to be there for the Python that Ansible uses on the host. Its package is
    C(python3-requests) on Debian, Ubuntu, Fedora, RHEL 9 and later, and openSUSE Tumbleweed.
  - On RHEL 8, and on SLES 15 and openSUSE Leap 15, the system's own Python 3.6 is too old. Install C(python3.11-requests) on
    RHEL 8, C(python311-requests) on SLES 15 and Leap 15, and set C(ansible_python_interpreter) to C(/usr/bin/python3.11) for the
    tasks of these modules.
  - The first request of a VM switches Scheduled Events on for its deployment. From then on a restart or redeploy that a
    user asks for waits up to 15 minutes for an approval. After 24 hours without a request Azure switches it off again.
"""

    SELECTION = r"""
options:
  event_ids:
    description:
      - Only events with one of these ids. Letter case makes no difference, here and in the other lists.
      - An empty list, here and in the other lists but O(affects), selects nothing at all.
    type: list
    elements: str
  types:
    description: Only events of one of these types, such as V(Freeze), V(Reboot), V(Redeploy), V(Preempt), V(Terminate).
    type: list
    elements: str
  statuses:
    description: Only events with one of these statuses, V(Scheduled) or V(Started).
    type: list
    elements: str
  sources:
    description: Only events from one of these sources, V(Platform) or V(User).
    type: list
    elements: str
  affects:
    description:
      - Only events that hit one of these VMs. V(self) is the VM on which the module runs, V(any) asks for nothing.
      - The VMs of an availability set or scale set see each other's events.
      - Names are compared whole, without regard to letter case.
    type: list
    elements: str
    default: [self]
"""
