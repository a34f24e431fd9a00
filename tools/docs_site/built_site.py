# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The references of the HTML files of a site: links, anchors, and the files that a page loads."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# element -> attributes with an address that the browser loads without a click
LOADED = {
    "audio": ("src",),
    "embed": ("src",),
    "feimage": ("href", "xlink:href"),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
# relations of link elements that only name other pages
NAMING = {"author", "canonical", "index", "next", "prev", "search", "up"}
CSS_ADDRESS = re.compile(r"(?:url\(\s*|@import\s+)[\"']?([^\"')\s;]+)")


class Page(HTMLParser):
    """The addresses and anchors of one HTML file.

    Attributes:
        ids: the anchors.
        links: the addresses of links to click.
        loaded: the addresses of what the browser loads with the page.
        images: (address, alternative text or None) of each image.
        language: of the page.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.images: list[tuple[str, str | None]] = []
        self.language = ""
        self._in_style = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses and anchors of an element."""
        found = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        if "id" in found:
            self.ids.append(found["id"])
        if tag == "html":
            self.language = found.get("lang", "")
        if tag == "a":
            self.links += [found["href"]] if "href" in found else []
            self.ids += [found["name"]] if "name" in found else []
        if tag == "img":
            self.images.append((found.get("src", ""), found.get("alt")))
        self.loaded += CSS_ADDRESS.findall(found.get("style", ""))
        if tag == "link" and set(found.get("rel", "").split()) & NAMING:
            self.links.append(found.get("href", ""))
        else:
            self.loaded += [found[name] for name in LOADED.get(tag, ()) if name in found]

    def handle_data(self, data: str) -> None:
        """Note the addresses of a style sheet inside the page."""
        if self._in_style:
            self.loaded += CSS_ADDRESS.findall(data)

    def handle_endtag(self, tag: str) -> None:
        """Note the end of a style sheet inside the page."""
        self._in_style = False


class BuiltSite:
    """All HTML files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages = {
            file.relative_to(folder).as_posix(): Page(file.read_text(encoding="utf-8"))
            for file in sorted(folder.rglob("*.html"))
        }

    def broken_links(self) -> Iterator[str]:
        """Yield a line about each link to a page, file or anchor that the site does not have."""
        for name, page in self.pages.items():
            for link in [*page.links, *page.loaded]:
                problem = self._problem(name, link)
                if problem:
                    yield f"{name}: {link}: {problem}"

    def _problem(self, name: str, link: str) -> str | None:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return None
        here = posixpath.dirname(name)
        target = posixpath.normpath(posixpath.join(here, unquote(parts.path))) if parts.path else name
        if target.startswith(("..", "/")):
            return "leads out of the site"
        page = self.pages.get(target)
        if page is None:
            return None if (self.folder / target).is_file() else "no such file"
        if parts.fragment and unquote(parts.fragment) not in page.ids:
            return "no such anchor"
        return None

    def loaded_from_elsewhere(self) -> Iterator[str]:
        """Yield a line about each file of another host that a page or a style sheet loads."""
        for name, page in self.pages.items():
            yield from (f"{name}: {address}" for address in page.loaded if is_elsewhere(address))
        for file in sorted(self.folder.rglob("*.css")):
            found = CSS_ADDRESS.findall(file.read_text(encoding="utf-8"))
            yield from (f"{file.name}: {address}" for address in found if is_elsewhere(address))
        for file in sorted(self.folder.rglob("*.svg")):
            found = Page(file.read_text(encoding="utf-8")).loaded
            yield from (f"{file.name}: {address}" for address in found if is_elsewhere(address))

    def images_without_text(self) -> Iterator[str]:
        """Yield a line about each image without an alternative text."""
        for name, page in self.pages.items():
            yield from (f"{name}: {source}" for source, text in page.images if not (text or "").strip())

    def repeated_anchors(self) -> Iterator[str]:
        """Yield a line about each anchor that a page has twice: a link leads to the first one only."""
        for name, page in self.pages.items():
            yield from (f"{name}: {each}" for each in sorted(set(page.ids)) if page.ids.count(each) > 1)


def is_elsewhere(address: str) -> bool:
    """Return True if a browser fetches the address from another host."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")
