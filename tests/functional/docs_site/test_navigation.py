# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The navigation of the site follows the first page and the first pages of folders."""

from __future__ import annotations

from tools.docs_site.navigation import Section, first_page_navigation, folder_documents, sections

FIRST = """# Documentation

[About](about.md) is first.

## Start

| situation | first result | then |
| --- | --- | --- |
| one VM | [Prepare](start/one-vm.md) | [Guide](guide.md), [style](style.md) |

## How-to

| page | task |
| --- | --- |
| [The guide](guide.md) | read [the options](options.md#all) |
| [Hooks](hooks/index.md): [one](hooks/one.md), [two](two.md) | prepare |

## Reference

- [Options](options.md), [elsewhere](https://example.com/a.md)

## Contribute

[First change](start/one-vm.md), [style](style.md)
"""


def test_document_is_in_the_section_in_which_it_leads() -> None:
    assert sections(FIRST, frozenset({"hooks/one"})) == [
        Section("", ("about",)),
        Section("Start", ("start/one-vm",)),
        Section("How-to", ("The guide <guide>", "Hooks <hooks/index>", "two")),
        Section("Reference", ("options",)),
        Section("Contribute", ("style",)),
    ]


def test_pages_that_the_build_makes_have_a_section() -> None:
    added = first_page_navigation(FIRST, frozenset())
    assert "| [Salt modules](api/salt/index.rst) |" in added
    assert ":caption: Modules and interfaces\n\nAnsible collection <collections/" in added
    assert "release-notes" in added


def test_made_page_that_the_first_page_links_is_not_listed_twice() -> None:
    added = first_page_navigation(FIRST + "\n- [Changes](release-notes.rst)\n", frozenset())
    assert added.count("release-notes") == 1


def test_first_page_of_a_folder_lists_the_documents_that_it_links() -> None:
    page = "# Hooks\n\n[two](two.md), [one](one.md#x), [one](one.md), [out](../guide.md), [self](index.md)\n"
    found = folder_documents(page, "hooks", ["hooks/one", "hooks/two", "hooks/three", "hooks/index", "guide"])
    assert found == ["hooks/two", "hooks/one"]
