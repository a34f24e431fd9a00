# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The release notes, with the fragments of changes that no release contains yet."""

from __future__ import annotations

import shutil
from pathlib import Path

from tools.docs_site.programs import run_program

# of a release that sorts behind all others; the page shows the heading instead
VERSION = "9999.0.0"
HEADING = "Unreleased"
PARTS = ("galaxy.yml", "CHANGELOG.rst", "changelogs", "meta", "plugins", "roles")


def page(collection: Path, folder: Path) -> bytes:
    """Return the page: the committed release notes, and before them the fragments.

    `folder` takes a copy of the parts of the collection, because antsibull-changelog changes them.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for part in PARTS:
        copy_part(collection / part, folder / part)
    if any((folder / "changelogs" / "fragments").glob("*.y*ml")):
        run_program("antsibull-changelog", "release", "--version", VERSION, collection=collection, folder=folder)
    text = (folder / "CHANGELOG.rst").read_text(encoding="utf-8")
    title = f"v{VERSION}"
    return text.replace(f"{title}\n{'=' * len(title)}\n", f"{HEADING}\n{'=' * len(HEADING)}\n").encode()


def copy_part(source: Path, target: Path) -> None:
    """Copy a file or a folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)
