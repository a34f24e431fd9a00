# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The source tree of the site below .cache: the pages of the repository and the pages that the build makes."""

from __future__ import annotations

import os
import posixpath
from functools import partial
from pathlib import Path

from tools.docs_site import api_pages, collection_pages, release_notes
from tools.docs_site.markdown_links import replace_targets
from tools.docs_site.navigation import first_page_navigation, folder_documents, toctree
from tools.docs_site.site_map import INDEX, SiteMap, site_of
from tools.docs_site.source_error import SourceError
from tools.repository.collection_tree import copy_tree


def write_source_tree(repository: Path, destination: Path, trees: Path) -> None:
    """Write the source tree; files that do not change keep their times, so that Sphinx reads only the others.

    `trees` takes a copy of the collection, which the tools of Ansible need.
    """
    site = site_of(repository)
    collection = copy_tree(repository, trees)
    wanted: dict[str, bytes] = {}
    for name, text in markdown_pages(repository, site).items():
        wanted[name] = text.encode()
    for path, place in site.images.items():
        wanted[place] = (repository / path).read_bytes()
    wanted |= collection_pages.pages(collection, trees)
    wanted |= api_pages.pages(repository)
    wanted["release-notes.rst"] = release_notes.page(collection, trees / "release-notes")
    update(destination, wanted)


def markdown_page(repository: Path, site: SiteMap, path: str) -> str:
    """Return the text of a page, with the links of the site.

    The function raises SourceError for a link that leads to no file, or is written in an unknown way.
    """
    try:
        return replace_targets((repository / path).read_text(encoding="utf-8"), partial(site.target, path))
    except ValueError as error:
        raise SourceError(f"{path}: {error}") from error


def markdown_pages(repository: Path, site: SiteMap) -> dict[str, str]:
    """Return place -> text of all Markdown pages, with the links of the site and with the navigation."""
    found = {
        place: markdown_page(repository, site, path) for path, place in site.pages.items() if place.endswith(".md")
    }
    documents = [posixpath.splitext(place)[0] for place in found]
    inside_folders: set[str] = set()
    for place, text in found.items():
        folder, name = posixpath.split(place)
        if folder and name == "index.md":
            inside = folder_documents(text, folder, documents)
            inside_folders.update(inside)
            found[place] = text + toctree([posixpath.basename(each) for each in inside])
    first = site.pages[INDEX]
    found[first] += first_page_navigation(found[first], frozenset(inside_folders))
    return found


def update(destination: Path, wanted: dict[str, bytes]) -> None:
    """Write the files that differ, and remove all other files."""
    for name, content in wanted.items():
        file = destination / name
        if not (file.is_file() and file.read_bytes() == content):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    for folder, _folders, files in os.walk(destination, topdown=False):
        for each in files:
            file = Path(folder, each)
            if file.relative_to(destination).as_posix() not in wanted:
                file.unlink()
        if Path(folder) != destination and not os.listdir(folder):
            os.rmdir(folder)
