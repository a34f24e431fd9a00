# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the site needs beside the extensions of others: anchors, links, languages of code, and Salt's modules."""

from __future__ import annotations

import functools
import posixpath
import re
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from docutils.transforms import Transform
from pygments.lexers import find_lexer_class_by_name
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from tools.docs_site.api_pages import HELPER_FOLDER
from tools.docs_site.collection_pages import COLLECTION
from tools.docs_site.salt_modules import KINDS, import_salt_modules
from tools.docs_site.site_map import BRANCH, GITHUB, SiteMap, path_on_github
from tools.repository.collection_tree import tracked_or_new

REPOSITORY = Path(__file__).resolve().parents[2]
ANCHOR = re.compile(r'<a id="([\w-]+)">')
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


class Anchors(Transform):
    """Let links lead to the anchors that a page writes as HTML."""

    default_priority = 875  # before myst_parser resolves the links of a page

    def apply(self, **kwargs: Any) -> None:
        """Add the anchors to those of the headings."""
        slugs = getattr(self.document, "myst_slugs", None)
        if slugs is None:
            return
        for node in self.document.findall(nodes.raw):
            for name in ANCHOR.findall(node.astext()):
                slugs[name] = (node.line, name, name)
        environment = self.document.settings.env
        environment.metadata[environment.docname]["myst_slugs"] = dict(slugs)


class LinksToPages(Transform):
    """Turn links to pages on GitHub into links to the pages of the site."""

    default_priority = 876

    def apply(self, **kwargs: Any) -> None:
        """Replace the references."""
        environment = self.document.settings.env
        for node in list(self.document.findall(nodes.reference)):
            path = path_on_github(node.get("refuri", ""))
            place = site_map().place(path) if path else None
            if place is None:
                continue
            fragment = node["refuri"].partition("#")[2]
            new = addnodes.pending_xref(
                "",
                nodes.inline("", "", *node.children),
                refdomain="doc",
                reftype="myst",
                reftarget=posixpath.splitext(place)[0],
                reftargetid=fragment or None,
                refdoc=environment.docname,
                refexplicit=True,
            )
            node.replace_self(new)


class Languages(Transform):
    """Name the languages of code as Pygments does; code of a language that Pygments does not know is plain text."""

    default_priority = 877

    def apply(self, **kwargs: Any) -> None:
        """Replace the languages."""
        for node in self.document.findall(nodes.literal_block):
            language = node.get("language", "text")
            if language == "yaml" and "{%" in node.astext():
                node["language"] = "yaml+jinja"
            try:
                find_lexer_class_by_name(language)
            except ClassNotFound:
                node["language"] = "text"


class NoContents(Transform):
    """Remove tables of contents; the theme shows one beside each page."""

    default_priority = 878

    def apply(self, **kwargs: Any) -> None:
        """Remove the topics."""
        for node in list(self.document.findall(nodes.topic)):
            if "contents" in node["classes"]:
                node.parent.remove(node)


class ShortTitles(Transform):
    """Remove the name of the collection from the titles of the pages about its plugins; each page names it below."""

    default_priority = 878

    def apply(self, **kwargs: Any) -> None:
        """Replace the text of the titles."""
        for node in self.document.findall(nodes.title):
            first = node.next_node(nodes.Text)
            if first is not None and first.startswith(f"{COLLECTION}."):
                first.parent.replace(first, nodes.Text(first.removeprefix(f"{COLLECTION}.")))


def add_source_link(
    app: Sphinx, document: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let the button of a page lead to its source on GitHub."""
    context["theme_source_view_link"] = source_links().get(document, "")


@functools.cache
def site_map() -> SiteMap:
    """Return the places of the files of the checkout."""
    return SiteMap([PurePosixPath(path.as_posix()) for path in tracked_or_new(REPOSITORY)])


@functools.cache
def source_links() -> dict[str, str]:
    """Return document -> address of its source, for all pages of the repository and all interfaces."""
    site = site_map()
    found = {posixpath.splitext(place)[0]: path for path, place in site.pages.items()}
    found |= {f"api/salt/{module.kind}": module.path.as_posix() for module in KINDS}
    helper = (path for path in site.files if PurePosixPath(path).parent == PurePosixPath(HELPER_FOLDER))
    found |= {f"api/helper/{PurePosixPath(path).stem}": path for path in helper}
    return {document: f"{GITHUB}/blob/{BRANCH}/{path}" for document, path in found.items()}


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
    module = name.rpartition(".")[0]
    return f"{PYTHON}/{module}.html#{name}" if module.partition(".")[0] in sys.stdlib_module_names else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the parts of the extension."""
    import_salt_modules(REPOSITORY)
    for transform in (Anchors, LinksToPages, Languages, NoContents, ShortTitles):
        app.add_transform(transform)
    app.connect("missing-reference", link_elsewhere)
    app.connect("html-page-context", add_source_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
