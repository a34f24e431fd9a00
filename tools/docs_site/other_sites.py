# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Links to the sites of Ansible and Python, made without an inventory of these sites, which needs a network."""

from __future__ import annotations

import re
import sys
from importlib import import_module

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

BUILTIN = re.compile(
    r"ansible_collections\.ansible\.builtin\.(\w+?)_(module|filter|test|lookup|inventory|strategy)(__.*)?"
)
ANSIBLE = "https://docs.ansible.com/projects/ansible/latest"
PYTHON = "https://docs.python.org/3/library"
# labels of Ansible's own site that the pages of antsibull-docs refer to -> page
ANSIBLE_PAGES = {
    "action_plugins": "plugins/action.html",
    "ansible_configuration_settings": "reference_appendices/config.html",
    "common_return_values": "reference_appendices/common_return_values.html",
    "list_of_collections": "collections/index.html",
}


def link_elsewhere(
    app: Sphinx, environment: BuildEnvironment, node: addnodes.pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """Return a link to a page of the sites of Ansible or Python, without an inventory of that site."""
    target = node.get("reftarget", "")
    address = address_in_python(target) if node.get("refdomain") == "py" else address_in_ansible(target)
    return nodes.reference("", "", content, refuri=address, internal=False) if address else None


def address_in_ansible(label: str) -> str | None:
    """Return the address of a label of Ansible's site, if it is a plugin of ansible.builtin or in `ANSIBLE_PAGES`."""
    plugin = BUILTIN.fullmatch(label)
    page = f"collections/ansible/builtin/{plugin[1]}_{plugin[2]}.html" if plugin else ANSIBLE_PAGES.get(label)
    return f"{ANSIBLE}/{page}" if page else None


def address_in_python(name: str) -> str | None:
    """Return the address of a class of the standard library, such as datetime.datetime."""
    module, _separator, member = name.rpartition(".")
    if module.partition(".")[0] not in sys.stdlib_module_names or not hasattr(import_module(module), member):
        return None
    return f"{PYTHON}/{module}.html#{name}"
