# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The navigation of the site, from the sections of docs/README.md and of the first page of each folder."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

# pages that the build makes: document -> title, summary
MADE = {
    "collections/azure_imds/scheduled_events/index": (
        "Ansible collection",
        "options and return values of modules, filters, tests and roles",
    ),
    "api/salt/index": ("Salt modules", "functions, states, beacon, engine, runner and grain"),
    "api/helper/index": ("Python helper", "classes and functions"),
    "release-notes": ("Release notes", "changes of each release, and those that are not released"),
}
MADE_CAPTION = "Modules and interfaces"


class Section(NamedTuple):
    """A caption of the navigation, and the documents below it in the notation of a toctree."""

    caption: str
    documents: tuple[str, ...]


class Link(NamedTuple):
    """A link of the first page to a document.

    Attributes:
        leads: the document is the first one of a row of a table or of an item of a list.
        title: the text, if the link is the first one of a row and in the first column, or else an empty text.
    """

    caption: str
    document: str
    leads: bool
    title: str


def parse(text: str) -> list[Token]:
    """Return the blocks of a Markdown text."""
    return MarkdownIt("commonmark").enable("table").parse(text)


def sections(first_page: str, inside_folders: frozenset[str] = frozenset()) -> list[Section]:
    """Return the sections of the first page with the documents to which their links lead.

    A document is in the section in which it first leads a row or an item, or else in the last section that links it.
    A link with a fragment does not count. The links of the page are relative to the source tree; `inside_folders` are
    the documents that belong to the first page of their folder.
    """
    found = [link for link in links(first_page) if link.document not in inside_folders]
    chosen: dict[str, Link] = {}
    for link in found:
        present = chosen.get(link.document)
        if present is None or not present.leads:
            chosen[link.document] = link
    by_caption: dict[str, list[str]] = {}
    for link in found:
        if chosen[link.document] is link:
            entry = f"{link.title} <{link.document}>" if link.title else link.document
            by_caption.setdefault(link.caption, []).append(entry)
    return [Section(caption, tuple(entries)) for caption, entries in by_caption.items()]


def links(first_page: str) -> Iterator[Link]:
    """Yield the links to documents, in order."""
    tokens = parse(first_page)
    caption, column, leading = "", 0, False
    for block, following in zip(tokens, [*tokens[1:], None]):
        if block.type == "heading_open" and block.tag == "h2" and following:
            caption = following.content
        elif block.type in ("tr_open", "list_item_open"):
            column, leading = 0, True
        elif block.type in ("td_open", "th_open"):
            column += 1
        elif block.type in ("tr_close", "list_item_close"):
            column, leading = 0, False
        for document, text in documents_in(block):
            yield Link(caption, document, leading, text if leading and column == 1 else "")
            leading = False


def documents_in(block: Token) -> Iterator[tuple[str, str]]:
    """Yield the documents, without suffixes, to which the links of a block lead, with the text of each link."""
    inside = ""
    for token, following in zip(block.children or [], [*(block.children or [])[1:], None]):
        inside = str(token.attrs["href"]) if token.type == "link_open" else inside
        name, suffix = posixpath.splitext(inside)
        if token.type == "link_open" and suffix in (".md", ".rst") and "://" not in inside:
            yield posixpath.normpath(name), following.content if following else ""


def first_page_navigation(first_page: str, inside_folders: frozenset[str]) -> str:
    """Return what the site adds to the first page, as Markdown: the made pages, and the toctrees."""
    own = sections(first_page, inside_folders)
    listed = {documents_of(entry) for section in own for entry in section.documents}
    made = {name: about for name, about in MADE.items() if name not in listed}
    rows = "".join(f"| [{title}]({name}.rst) | {summary} |\n" for name, (title, summary) in made.items())
    table = f"\n## {MADE_CAPTION}\n\n| page | content |\n| --- | --- |\n{rows}"
    entries = tuple(f"{title} <{name}>" for name, (title, _pages) in made.items())
    trees = "".join(toctree(section.documents, section.caption) for section in own)
    return table + trees + toctree(entries, MADE_CAPTION)


def documents_of(entry: str) -> str:
    """Return the document of an entry of a toctree."""
    return entry.rpartition("<")[2].rstrip(">")


def folder_documents(page: str, folder: str, documents: Iterable[str]) -> list[str]:
    """Return the documents of a folder that its first page links, in the order of the links.

    `page` is the Markdown text, with links that are relative to `folder`, the folder in the source tree.
    """
    here = {posixpath.join(folder, posixpath.basename(name)) for name in documents if posixpath.dirname(name) == folder}
    linked = dict.fromkeys(
        posixpath.join(folder, name) for block in parse(page) for name, _title in documents_in(block)
    )
    return [name for name in linked if name in here and name != f"{folder}/index"]


def toctree(documents: Iterable[str], caption: str = "") -> str:
    """Return a hidden toctree as Markdown."""
    options = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + options + "\n" + "\n".join(documents) + "\n```\n"
