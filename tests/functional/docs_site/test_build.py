# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The build of the site: it is complete, and a mistake in a page fails it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import REPOSITORY
from tools.docs_site.__main__ import SETTINGS, SITE, STRICT

from .conftest import Build, environment

# one worker builds the site once
pytestmark = [pytest.mark.all, pytest.mark.xdist_group("docs-site")]
FIRST = "# First\n\n[second](second.md#8)\n\n```{toctree}\nsecond\n```\n"
SECOND = '# Second\n\n<a id="8"></a>\n\nAn anchor of HTML.\n\n```haproxy\nbackend web\n```\n'
UNLINKED = "# Third\n\nIn no navigation.\n"


def test_build_of_the_checkout_reports_no_warning(build: Build) -> None:
    assert build.status == 0, build.output
    assert build.output.splitlines() == [str(SITE / "index.html")]


def test_each_page_plugin_and_role_is_a_page_of_the_site(build: Build) -> None:
    assert build.status == 0, build.output
    pages = {file.relative_to(SITE).with_suffix("").as_posix() for file in SITE.rglob("*.html")}
    documents = (REPOSITORY / "docs").rglob("*.md")
    wanted = {path.relative_to(REPOSITORY / "docs").with_suffix("").as_posix() for path in documents}
    wanted |= {f"roles/{path.name}" for path in (REPOSITORY / "roles").iterdir()}
    wanted |= {
        f"collections/azure_imds/scheduled_events/{path.stem}_{kind}"
        for folder, kind in (("modules", "module"), ("filter", "filter"), ("test", "test"))
        for path in (REPOSITORY / "plugins" / folder).glob("*.py")
        if "DOCUMENTATION = " in path.read_text(encoding="utf-8")
    }
    assert {name.replace("README", "index") for name in wanted} - pages == set()


@pytest.mark.parametrize(
    ("pages", "problem"),
    [
        ({"index.md": FIRST, "second.md": SECOND}, ""),
        ({"index.md": FIRST, "second.md": SECOND, "third.md": UNLINKED}, "isn't included in any toctree"),
        ({"index.md": FIRST, "second.md": SECOND.replace('"8"', '"9"')}, "local id not found in doc 'second': '8'"),
        ({"index.md": FIRST, "second.md": SECOND + "\n[gone](gone.md)\n"}, "cross-reference target not found"),
        ({"index.md": FIRST, "second.md": SECOND + "\n```{eval-rst}\n:ref:`gone`\n```\n"}, "undefined label: 'gone'"),
        ({"index.md": FIRST, "second.md": SECOND + "\n![text](gone.svg)\n"}, "image file not readable"),
    ],
    ids=["none", "unlinked-page", "anchor", "link", "reference", "image"],
)
def test_build_with_a_mistake_fails_and_names_it(tmp_path: Path, pages: dict[str, str], problem: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name, text in pages.items():
        (source / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", *STRICT, "--conf-dir", str(SETTINGS), str(source), str(tmp_path / "out")]
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600, check=False)
    assert (ended.returncode == 0) == (not problem), ended.stderr
    assert problem in ended.stderr
