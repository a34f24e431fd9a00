# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Where each page of the repository is in the site, and where every other file is on GitHub."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from tools.docs_site.source_error import SourceError
from tools.repository.collection_tree import tracked_or_new

GITHUB = "https://github.com/azure-imds/scheduled_events"
RAW = "https://raw.githubusercontent.com/azure-imds/scheduled_events/main/"
BRANCH = "main"

INDEX = "docs/README.md"
# pages outside of docs/, and the release notes, which the build makes
NAMED = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.rst": "release-notes.rst",
}
IMAGES = (".png", ".svg")


class SiteMap:
    """The place of each file of the repository in the source tree of the site.

    `files` are the paths of all files, relative to the repository.
    """

    def __init__(self, files: Iterable[PurePosixPath]) -> None:
        self.files = {path.as_posix() for path in files}
        self._folders = {parent.as_posix() for path in files for parent in path.parents}
        self.pages = {path: place for path in sorted(self.files) if (place := place_of_page(path))}
        self.images = {
            path: path.removeprefix("docs/")
            for path in sorted(self.files)
            if path.startswith("docs/") and path.endswith(IMAGES)
        }

    def target(self, page: str, link: str) -> str:
        """Return the target that a link of a page has in the site.

        `page` is the path of the page in the repository, `link` the target as the page prints it: relative, on GitHub,
        or elsewhere. The function raises SourceError if the target is not in the repository.
        """
        parts = urlsplit(link)
        inside = path_on_github(link)
        if inside is None:
            if parts.scheme or parts.netloc or not parts.path:
                return link
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(page), parts.path))
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        place = self.place(inside)
        if place is not None:
            return posixpath.relpath(place, posixpath.dirname(self.pages[page]) or ".") + fragment
        return self.on_github(page, inside) + fragment

    def place(self, path: str) -> str | None:
        """Return the place of a page, an image or a folder with a page in the source tree, or None."""
        for candidate in (path, posixpath.join(path, "README.md")):
            place = self.pages.get(candidate) or self.images.get(candidate)
            if place is not None:
                return place
        return None

    def on_github(self, page: str, path: str) -> str:
        """Return the address of a file or folder on GitHub; raise SourceError if it is not in the repository."""
        if path in self.files:
            return f"{GITHUB}/blob/{BRANCH}/{path}"
        if path in self._folders:
            return f"{GITHUB}/tree/{BRANCH}/{path}".removesuffix("/.")
        raise SourceError(f"{page}: the repository has no {path}; correct the link")


@functools.cache
def site_of(repository: Path) -> SiteMap:
    """Return the places of the files of a checkout."""
    return SiteMap([PurePosixPath(path.as_posix()) for path in tracked_or_new(repository)])


def place_of_page(path: str) -> str | None:
    """Return the place of a page in the source tree, or None for a file that is not a page of the site."""
    folder, name = posixpath.split(path)
    if path in NAMED:
        return NAMED[path]
    if folder == "docs" or folder.startswith("docs/"):
        if not name.endswith(".md"):
            return None
        below = path.removeprefix("docs/")
        return posixpath.join(posixpath.dirname(below), "index.md") if name == "README.md" else below
    if name == "README.md" and folder == "tests":
        return "tests/index.md"
    parts = folder.split("/")
    if name == "README.md" and len(parts) == 2 and parts[0] in ("roles", "tests"):
        return f"{folder}.md"
    return None


def path_on_github(link: str) -> str | None:
    """Return the path of the file of this repository to which an address on GitHub leads, or None."""
    address = link.partition("#")[0]
    for start in (f"{GITHUB}/blob/{BRANCH}/", f"{GITHUB}/tree/{BRANCH}/", RAW):
        if address.startswith(start):
            return address.removeprefix(start).rstrip("/")
    return None
