# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The built pages: they are complete, their links lead somewhere, and they need no other host."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath

import pytest

from support.repository import REPOSITORY
from tools.docs_site.built_site import BuiltSite, Page, is_elsewhere
from tools.docs_site.salt_modules import KINDS
from tools.docs_site.site_map import place_of_page

PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "roles/*/README.md", "tests/*/README.md")
    for path in REPOSITORY.glob(pattern)
)
PLUGINS = [
    f"{path.stem}_{kind}"
    for folder, kind in (("modules", "module"), ("filter", "filter"), ("test", "test"))
    for path in sorted((REPOSITORY / "plugins" / folder).glob("*.py"))
    if "DOCUMENTATION = " in path.read_text(encoding="utf-8")
]
ROLES = [f"{path.name}_role" for path in sorted((REPOSITORY / "roles").iterdir())]


def test_each_link_and_anchor_leads_to_a_part_of_the_site(site: BuiltSite) -> None:
    assert list(site.broken_links()) == []


def test_each_anchor_is_unique_in_its_page(site: BuiltSite) -> None:
    assert list(site.repeated_anchors()) == []


def test_no_page_or_style_sheet_loads_a_file_of_another_host(site: BuiltSite) -> None:
    assert list(site.loaded_from_elsewhere()) == []


def test_each_image_has_an_alternative_text(site: BuiltSite) -> None:
    assert any(page.images for page in site.pages.values())
    assert list(site.images_without_text()) == []


def test_each_picture_leads_to_its_file(site: BuiltSite) -> None:
    pictures = {name: {address for address, _text in page.images} for name, page in site.pages.items()}
    assert any(pictures.values())
    assert {name: alone for name, found in pictures.items() if (alone := found - set(site.pages[name].links))} == {}


def test_each_page_names_its_language(site: BuiltSite) -> None:
    assert {page.language for page in site.pages.values()} == {"en"}


@pytest.mark.parametrize("path", PAGES)
def test_markdown_page_is_a_page_of_the_site(site: BuiltSite, path: str) -> None:
    place = place_of_page(path)
    assert place is not None
    assert PurePosixPath(place).with_suffix(".html").as_posix() in site.pages


@pytest.mark.parametrize("name", [*PLUGINS, *ROLES])
def test_plugin_and_role_has_a_page(site: BuiltSite, name: str) -> None:
    assert f"collections/azure_imds/scheduled_events/{name}.html" in site.pages


@pytest.mark.parametrize("module", KINDS, ids=lambda module: module.kind)
def test_functions_of_salt_have_entries_by_the_names_of_users(site: BuiltSite, module: object) -> None:
    (found,) = (each for each in KINDS if each == module)
    names = {f"{found.import_name}.{name}" for name in found.functions(REPOSITORY)}
    assert names <= set(site.pages[f"api/salt/{found.kind}.html"].ids)
    assert "salt.modules.azure_events.list" in site.pages["api/salt/modules.html"].ids


def test_public_names_of_the_helper_lead_to_their_definitions(site: BuiltSite) -> None:
    links = site.pages["api/helper/index.html"].links
    assert "document.html#azure_scheduled_events.document.ScheduledEvent" in links
    assert "imds.html#azure_scheduled_events.imds.Imds" in links


def test_release_notes_begin_with_the_fragments(site: BuiltSite) -> None:
    page = site.pages["release-notes.html"]
    fragments = list((REPOSITORY / "changelogs" / "fragments").glob("*.yml"))
    assert ("unreleased" in page.ids) == bool(fragments)
    assert "v0-1-0" in page.ids


def test_links_of_the_readme_to_github_lead_to_pages_of_the_site(site: BuiltSite) -> None:
    page = site.pages["readme.html"]
    assert "simulator.html" in page.links
    assert "ansible.html#maintenance-of-a-fleet" in page.links
    assert "https://github.com/azure-imds/scheduled_events/tree/main/LICENSES" in page.links
    assert not any(is_elsewhere(source) for source, _text in page.images)


def test_links_of_modules_to_github_lead_to_pages_of_the_site(site: BuiltSite) -> None:
    page = site.pages["collections/azure_imds/scheduled_events/event_approve_module.html"]
    assert "../../../policies.html" in page.links


def test_search_index_has_words_of_guides_and_references(site: BuiltSite) -> None:
    text = (site.folder / "searchindex.js").read_text(encoding="utf-8")
    found = re.fullmatch(r"Search\.setIndex\((.*)\)", text, re.DOTALL)
    assert found is not None
    index = json.loads(found[1])
    titles = [index["docnames"][number] for number in index["terms"]["notbefor"]]
    assert "policies" in titles
    assert "collections/azure_imds/scheduled_events/event_approve_module" in titles


BAD = """<html><body id="top"><a href="gone.html">1</a><a href="#gone">2</a><a href="page.html#top">3</a>
<a href="https://example.com/">4</a><a href="../page.html">5</a><img src="https://example.com/a.png">
<img src="page.html" alt=" "><script src="//example.com/a.js"></script><p id="top" style="background: url(//a/b.png)">
<style>@import "https://example.com/a.css"; p { background: url(data:image/png;base64,AA==) }</style></body></html>"""


def test_checker_finds_each_kind_of_mistake(site: BuiltSite, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "page.html").write_text(BAD, encoding="utf-8")
    (folder / "page.svg").write_text('<svg><image xlink:href="https://example.com/b.png"/></svg>', encoding="utf-8")
    (folder / "page.css").write_text("a { background: url('http://example.com/c.png') }", encoding="utf-8")
    bad = BuiltSite(folder)
    assert list(bad.broken_links()) == [
        "page.html: gone.html: no such file",
        "page.html: #gone: no such anchor",
        "page.html: ../page.html: leads out of the site",
    ]
    assert list(bad.loaded_from_elsewhere()) == [
        "page.html: https://example.com/a.png",
        "page.html: //example.com/a.js",
        "page.html: //a/b.png",
        "page.html: https://example.com/a.css",
        "page.css: http://example.com/c.png",
        "page.svg: https://example.com/b.png",
    ]
    assert list(bad.images_without_text()) == ["page.html: https://example.com/a.png", "page.html: page.html"]
    assert list(bad.repeated_anchors()) == ["page.html: top"]
    assert Page("<html lang='en'>").language == "en"
