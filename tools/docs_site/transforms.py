# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Changes of the pages that Sphinx has read: anchors, links, languages of code, and titles."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.transforms import Transform
from pygments.lexers import find_lexer_class_by_name
from pygments.util import ClassNotFound
from sphinx import addnodes

from tools.docs_site.collection_pages import COLLECTION
from tools.docs_site.site_map import path_on_github, site_of

REPOSITORY = Path(__file__).resolve().parents[2]
ANCHOR = re.compile(r'<a id="([\w-]+)">')


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
            place = site_of(REPOSITORY).place(path) if path else None
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


class LinkedPictures(Transform):
    """Let each picture lead to its file, in which small text can be enlarged."""

    default_priority = 877

    def apply(self, **kwargs: Any) -> None:
        """Give the pictures a width, because Sphinx links only those; site.css shows them in their own width."""
        for node in self.document.findall(nodes.image):
            node.setdefault("width", "100%")


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
        """Remove the topics, and the links to them."""
        for node in list(self.document.findall(nodes.topic)):
            if "contents" in node["classes"]:
                node.parent.remove(node)
        for title in self.document.findall(nodes.title):
            # a link to the entry in the removed table
            title.attributes.pop("refid", None)


class ShortTitles(Transform):
    """Write the collection's name as it is, and leave it out of the titles of plugins, whose pages name it below."""

    default_priority = 878

    def apply(self, **kwargs: Any) -> None:
        """Replace the text of the titles."""
        for node in self.document.findall(nodes.title):
            first = node.next_node(nodes.Text)
            if first is not None and first.lower().startswith(COLLECTION):
                first.parent.replace(first, nodes.Text(first[len(COLLECTION) :].lstrip(".") or COLLECTION))
