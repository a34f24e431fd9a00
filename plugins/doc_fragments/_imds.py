# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options for reaching IMDS and for selecting events."""

from __future__ import annotations


class ModuleDocFragment:
    """Fragments for the options of the event modules."""

    DOCUMENTATION = r"""
options:
  endpoint:
    description:
      - Base URL of the Instance Metadata Service, V(http://HOST) or V(http://HOST:PORT).
      - The module never uses a proxy and never follows a redirect.
    type: str
    default: http://169.254.169.254
  api_version:
    description:
      - Version of the Scheduled Events API.
      - In a list, the module tries one version after the other while IMDS answers 400 or 404.
    type: list
    elements: str
    default: ['2020-07-01']
  resource_name:
    description:
      - Name of this VM as Azure knows it.
      - The default is C(compute.name) from IMDS. The module never derives the name from the host name, which differs,
        for example, for the VMs of a scale set.
    type: str
requirements:
  - python >= 3.9
  - requests
notes:
  - The Python that Ansible uses on the host needs the library C(requests). Its package is C(python3-requests) on
    Debian, Ubuntu, Fedora, RHEL 9 and later, and openSUSE Tumbleweed.
  - On RHEL 8, SLES 15 and openSUSE Leap 15 the Python 3.6 of the system is too old. Install C(python3.11-requests) on
    RHEL 8 and C(python311-requests) on SLES 15 and Leap 15, and set C(ansible_python_interpreter) to
    C(/usr/bin/python3.11) for the tasks of these modules.
  - The first request of a VM switches Scheduled Events on for its deployment. Afterwards a restart or redeploy that a
    user requests waits up to 15 minutes for an approval. After 24 hours without a request Azure switches them off
    again.
"""

    SELECTION = r"""
options:
  event_ids:
    description:
      - Only events with one of these IDs. Letter case does not count, here and in the other lists.
      - An empty list, here and in the other lists except O(affects), selects no event. A blank text is an error.
    type: list
    elements: str
  types:
    description:
      - Only events of one of these types, such as V(Freeze) and V(Reboot).
      - By default all types, except that V(SpotRebalanceRecommendation), which only advises, is selected only to be
        shown. Name it to wait for it or to act on it.
      - A name that is similar to a known type is an error. Another unknown name is used, with a warning.
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
      - Only events that affect one of these VMs. V(self) is the VM on which the module runs, V(any) selects the events
        of all VMs.
      - IMDS lists the events of all VMs of an availability set or scale set.
      - A name has to match completely, in any letter case.
    type: list
    elements: str
    default: [self]
"""
