# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Build the site of the documentation into .cache/docs, and print the path of its first page."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from tools.docs_site.source_error import SourceError
from tools.docs_site.source_tree import write_source_tree

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache"
SITE = CACHE / "docs"
SETTINGS = Path(__file__).with_name("sphinx")
# each warning is a failure, and all of them are shown
STRICT = ("--fail-on-warning", "--keep-going", "--nitpicky", "--quiet")
SUFFIXES = (".md", ".rst")
WITHOUT_SOURCE = {Path("genindex"), Path("search")}


def main() -> int:
    """Build the site and return the exit status."""
    source = CACHE / "docs-source"
    try:
        write_source_tree(REPOSITORY, source, CACHE / "trees" / "docs-site")
    except SourceError as error:
        print(error, file=sys.stderr)
        return 1
    arguments = ["--jobs", "auto", "--doctree-dir", CACHE / "docs-doctrees", "--conf-dir", SETTINGS, source, SITE]
    status = build_main([*STRICT, *map(str, arguments)])
    remove_former_pages(source, SITE)
    if status == 0:
        print(SITE / "index.html")
    return status


def remove_former_pages(source: Path, output: Path) -> None:
    """Remove the pages of documents that the source tree no longer has; Sphinx leaves them."""
    documents = {file.relative_to(source).with_suffix("") for file in source.rglob("*") if file.suffix in SUFFIXES}
    for page in output.rglob("*.html"):
        if page.relative_to(output).with_suffix("") not in documents | WITHOUT_SOURCE:
            page.unlink()


if __name__ == "__main__":
    sys.exit(main())
