# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The pages of the ready hooks have all options, with their defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ready_hooks import hooks
from ready_hooks.cli import COMMON
from ready_hooks.core.arguments import Option, from_mapping
from ready_hooks.core.errors import HookError
from support.repository import REPOSITORY

PAGES = REPOSITORY / "docs" / "ready-hooks"
SALT = [REPOSITORY / "salt" / name for name in ("pillar.example", "_modules/azure_events.py")]
LIBRARY = REPOSITORY / "roles" / "ready_hooks" / "files" / "ready_hooks" / "hooks"
WRITTEN = [name for name in hooks.NAMES if list(LIBRARY.glob(name.replace("-", "_") + "*"))]
TABLE = re.compile(r"^\| option \| default \| meaning \|\n\| --- \| --- \| --- \|\n((?:\|.*\n)+)", re.MULTILINE)


def documented(page: Path) -> dict[str, str]:
    """Return the defaults of the page's tables of options, without backticks, by the name of the option."""
    found: dict[str, str] = {}
    for table in TABLE.findall(page.read_text(encoding="utf-8")):
        for row in table.splitlines():
            names, default, _meaning = (cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:4])
            found |= {name: default.replace("`", "").strip() for name in re.findall(r"`(\w+)`", names)}
    return found


def is_default(option: Option, text: str) -> bool:
    """Return True if the page prints this default. For an option without one, any words do."""
    if option.required or text == "required":
        return option.required and text == "required"
    if option.default in (None, (), ""):
        return True
    words = text.split(", ") if option.many else [text]
    try:
        read = tuple(option.parse(word) for word in words)
    except ValueError:
        return False
    return bool(read == (tuple(option.default) if option.many else (option.default,)))


@pytest.mark.parametrize("name", WRITTEN)
def test_page_has_the_options_of_its_hook(name: str) -> None:
    options = {option.name: option for option in hooks.load(name).options}
    found = documented(PAGES / f"{name}.md")
    assert set(found) == set(options)
    assert {each: found[each] for each in options if not is_default(options[each], found[each])} == {}


def test_ready_hooks_that_pages_and_examples_show_in_one_line_are_valid_everywhere() -> None:
    """An entry means the same in the roles and in Salt."""
    shown = [
        (file.relative_to(REPOSITORY), entry)
        for file in (*(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "roles").rglob("README.md"), *SALT)
        for entry in re.findall(r"^[ #]*- (\{use: .*\})$", file.read_text(encoding="utf-8"), re.MULTILINE)
        if "{{" not in entry
    ]
    refused = []
    for file, text in shown:
        entry = yaml.safe_load(text)
        known = (*hooks.load(entry["use"]).options, *COMMON)
        try:
            from_mapping(known, {key: value for key, value in entry.items() if key not in ("use", "settings")})
        except HookError as error:
            refused.append((str(file), text, str(error)))
    assert len(shown) > 20 and refused == []


def test_overview_has_the_common_options_and_names_each_hook() -> None:
    overview = PAGES / "README.md"
    found = documented(overview)
    assert set(found) == {option.name for option in COMMON}
    assert {option.name: found[option.name] for option in COMMON if not is_default(option, found[option.name])} == {}
    text = overview.read_text(encoding="utf-8")
    assert [name for name in hooks.NAMES if text.count(f"[{name}]({name}.md)") < 2] == []
