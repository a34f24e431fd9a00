# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The extension of Sphinx that joins the parts of this package."""

from __future__ import annotations

import functools
import hashlib
import posixpath
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from tools.docs_site.api_pages import HELPER_FOLDER
from tools.docs_site.other_sites import link_elsewhere
from tools.docs_site.salt_modules import KINDS, import_salt_modules
from tools.docs_site.site_map import BRANCH, GITHUB, site_of
from tools.docs_site.transforms import Anchors, Languages, LinkedPictures, LinksToPages, NoContents, ShortTitles

REPOSITORY = Path(__file__).resolve().parents[2]


def add_source_link(
    app: Sphinx, document: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let the button of a page lead to its source on GitHub."""
    context["theme_source_view_link"] = source_links().get(document, "")


@functools.cache
def source_links() -> dict[str, str]:
    """Return document -> address of its source, for all pages of the repository and all interfaces."""
    site = site_of(REPOSITORY)
    found = {posixpath.splitext(place)[0]: path for path, place in site.pages.items()}
    found |= {f"api/salt/{module.kind}": module.path.as_posix() for module in KINDS}
    helper = (path for path in site.files if PurePosixPath(path).parent == PurePosixPath(HELPER_FOLDER))
    found |= {f"api/helper/{PurePosixPath(path).stem}": path for path in helper}
    return {document: f"{GITHUB}/blob/{BRANCH}/{path}" for document, path in found.items()}


def state_of_build() -> str:
    """Return a digest of this code and of the places of all pages; when it changes, Sphinx reads all pages again."""
    digest = hashlib.sha256(repr(site_of(REPOSITORY).pages).encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the parts of the extension."""
    app.add_config_value("state_of_build", state_of_build(), "env", types=frozenset({str}))
    import_salt_modules(REPOSITORY)
    for transform in (Anchors, LinksToPages, LinkedPictures, Languages, NoContents, ShortTitles):
        app.add_transform(transform)
    app.connect("missing-reference", link_elsewhere)
    app.connect("html-page-context", add_source_link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
