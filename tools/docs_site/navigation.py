# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The navigation of the site, from the sections of docs/README.md and of the first page of each folder."""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.docs_site.markdown_links import targets_of

# pages that the build makes: caption -> documents
MADE = {
    "Modules and interfaces": (
        "Ansible: modules, roles, filters <collections/azure_imds/scheduled_events/index>",
        "Salt: modules, states, runner <api/salt/index>",
        "Python helper: classes, functions <api/helper/index>",
    ),
    "Changes": ("release-notes",),
}


class Section(NamedTuple):
    """A caption of the navigation, and the documents below it in the notation of a toctree."""

    caption: str
    documents: tuple[str, ...]


def sections(first_page: str) -> list[Section]:
    """Return the sections of the first page with the documents to which their links lead.

    A link with a fragment does not count. A document that several sections link is in the last one: tables of all
    pages follow the short lists for readers who begin.

    Args:
        first_page: the Markdown text, with links that are relative to the source tree.
    """
    caption, order, owner = "", {}, {}
    for block, following in pairs(MarkdownIt("commonmark").enable("table").parse(first_page)):
        if block.type == "heading_open" and block.tag == "h2" and following:
            caption = following.content
            order[caption] = len(order)
        for document in documents_in(block) if caption else ():
            owner.pop(document, None)
            owner[document] = caption
    found = [Section(each, tuple(name for name, of in owner.items() if of == each)) for each in order]
    return [section for section in found if section.documents]


def pairs(tokens: list[Token]) -> list[tuple[Token, Token | None]]:
    """Return each token with the one behind it."""
    return list(zip(tokens, [*tokens[1:], None]))


def documents_in(block: Token) -> list[str]:
    """Return the documents to which the links of a block lead, without their suffixes."""
    found = []
    for target in targets_of(block):
        name, suffix = posixpath.splitext(target)
        if suffix in (".md", ".rst") and "://" not in target:
            found.append(posixpath.normpath(name))
    return found


def first_page_toctrees(first_page: str) -> str:
    """Return the toctrees of the first page, as Markdown: one for each section, and those of the made pages."""
    own = [toctree(section.documents, section.caption) for section in sections(first_page)]
    return "".join([*own, *(toctree(documents, caption) for caption, documents in MADE.items())])


def folder_toctree(page: str, folder: str, in_folder: set[str]) -> str:
    """Return the toctree of the first page of a folder: the documents of the folder, in the order of its links.

    Args:
        page: the Markdown text, with links that are relative to its folder.
        folder: the folder in the source tree.
        in_folder: the documents of this folder, which are not in the navigation of the first page.
    """
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    linked = dict.fromkeys(name for block in tokens for name in documents_in(block))
    chosen = tuple(name for name in linked if posixpath.normpath(posixpath.join(folder, name)) in in_folder)
    return toctree(chosen) if chosen else ""


def toctree(documents: tuple[str, ...], caption: str = "") -> str:
    """Return a hidden toctree as Markdown."""
    options = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + options + "\n" + "\n".join(documents) + "\n```\n"
