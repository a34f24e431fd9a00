# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The links of Markdown pages in the site, and the places of files."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tools.docs_site.markdown_links import replace_targets
from tools.docs_site.site_map import SiteMap, place_of_page
from tools.docs_site.source_error import SourceError

FILES = (
    "README.md",
    "CHANGELOG.rst",
    "docs/README.md",
    "docs/salt.md",
    "docs/images/page.png",
    "docs/decisions/README.md",
    "docs/simulator/report.md",
    "docs/monitoring/rules.yml",
    "roles/maintenance/README.md",
    "roles/maintenance/tasks/main.yml",
    "tests/README.md",
    "tests/labs/soak/README.md",
)
SITE = SiteMap([PurePosixPath(name) for name in FILES])
GITHUB = "https://github.com/azure-imds/scheduled_events"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("docs/README.md", "index.md"),
        ("docs/start/one-vm.md", "start/one-vm.md"),
        ("docs/ready-hooks/README.md", "ready-hooks/index.md"),
        ("roles/hook_runner/README.md", "roles/hook_runner.md"),
        ("tests/README.md", "tests/index.md"),
        ("tests/labs/chaos/README.md", "tests/labs/chaos.md"),
        ("CHANGELOG.rst", "release-notes.rst"),
        ("roles/imds_simulator/files/README.md", None),
        ("docs/docsite/rst/guides.rst", None),
    ],
)
def test_page_has_its_place(path: str, place: str | None) -> None:
    assert place_of_page(path) == place


@pytest.mark.parametrize(
    ("page", "link", "target"),
    [
        ("docs/README.md", "salt.md#minions", "salt.md#minions"),
        ("docs/README.md", "../README.md", "readme.md"),
        ("docs/README.md", "decisions", "decisions/index.md"),
        ("docs/README.md", "../CHANGELOG.rst", "release-notes.rst"),
        ("docs/simulator/report.md", "../README.md#how-to", "../index.md#how-to"),
        ("docs/simulator/report.md", "../images/page.png", "../images/page.png"),
        ("docs/simulator/report.md", "../../tests/labs/soak", "../tests/labs/soak.md"),
        ("roles/maintenance/README.md", "../../docs/salt.md", "../salt.md"),
        ("roles/maintenance/README.md", "tasks/main.yml", f"{GITHUB}/blob/main/roles/maintenance/tasks/main.yml"),
        ("docs/salt.md", "monitoring", f"{GITHUB}/tree/main/docs/monitoring"),
        ("README.md", f"{GITHUB}/blob/main/docs/salt.md#minions", "salt.md#minions"),
        ("README.md", f"{GITHUB}/issues", f"{GITHUB}/issues"),
        (
            "README.md",
            "https://raw.githubusercontent.com/azure-imds/scheduled_events/main/docs/images/page.png",
            "images/page.png",
        ),
        ("docs/salt.md", "#minions", "#minions"),
        ("docs/salt.md", "https://example.com/salt.md", "https://example.com/salt.md"),
    ],
)
def test_link_of_a_page_leads_to_its_target_in_the_site(page: str, link: str, target: str) -> None:
    assert SITE.target(page, link) == target


@pytest.mark.parametrize("link", ["gone.md", "../gone", f"{GITHUB}/blob/main/gone.md"])
def test_link_to_a_missing_file_is_an_error_with_its_name(link: str) -> None:
    with pytest.raises(SourceError, match="^docs/salt.md: the repository has no .*gone"):
        SITE.target("docs/salt.md", link)


def test_targets_are_replaced_and_all_other_text_stays() -> None:
    text = """# Links

[one](a.md) and [`code`](a.md "title"), `[no](a.md)` and ![an image](b.png), [two][ref], <https://example.com/a.md>

| [cell](a.md#x) | [![nested](b.png)](c.md) |
| --- | --- |
| [cell](d.md) | `](d.md` [cell](d.md) |

```md
[no](a.md)
```

[ref]: a.md
"""
    expected = (
        text.replace("[one](a.md)", "[one](A.MD)")
        .replace('[`code`](a.md "title")', '[`code`](A.MD "title")')
        .replace("![an image](b.png)", "![an image](B.PNG)")
        .replace("(a.md#x)", "(A.MD#X)")
        .replace("[![nested](b.png)](c.md)", "[![nested](B.PNG)](C.MD)")
        .replace("[cell](d.md)", "[cell](D.MD)")
        .replace("[ref]: a.md", "[ref]: A.MD")
    )
    assert replace_targets(text, str.upper) == expected


def test_target_that_cannot_be_replaced_is_an_error() -> None:
    with pytest.raises(ValueError, match="a link with spaces, brackets or escapes"):
        replace_targets("[text]( <a b.md> )", str.upper)
