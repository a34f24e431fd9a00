# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The source tree of the site: only files that differ are written, and no other file stays."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from tools.docs_site.programs import run_program
from tools.docs_site.site_map import SiteMap
from tools.docs_site.source_error import SourceError
from tools.docs_site.source_tree import markdown_page, update


@pytest.mark.parametrize("link", ["gone.md", "<a page.md>"])
def test_page_with_an_unusable_link_is_named_in_the_error(tmp_path: Path, link: str) -> None:
    (tmp_path / "README.md").write_text(f"# Title\n\n[text]({link})\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"^README\.md: "):
        markdown_page(tmp_path, SiteMap([PurePosixPath("README.md"), PurePosixPath("a page.md")]), "README.md")


def test_program_that_fails_is_an_error_with_its_output(tmp_path: Path) -> None:
    collection = tmp_path / "ansible_collections" / "azure_imds" / "scheduled_events"
    collection.mkdir(parents=True)
    with pytest.raises(SourceError, match=r"^antsibull-changelog: failed with exit status \d+; .*\n."):
        run_program("antsibull-changelog", "release", collection=collection, folder=collection)


def test_update_keeps_the_times_of_equal_files_and_removes_others(tmp_path: Path) -> None:
    update(tmp_path, {"index.md": b"one", "start/gone.md": b"two", "images/a.svg": b"three"})
    for name in ("index.md", "images/a.svg"):
        os.utime(tmp_path / name, (1, 1))
    update(tmp_path, {"index.md": b"one", "images/a.svg": b"changed"})
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")} == {
        "index.md",
        "images",
        "images/a.svg",
    }
    assert (tmp_path / "index.md").stat().st_mtime == 1
    assert (tmp_path / "images" / "a.svg").stat().st_mtime > 1
    assert (tmp_path / "images" / "a.svg").read_bytes() == b"changed"
