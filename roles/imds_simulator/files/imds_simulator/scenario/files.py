# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Scenario files: finding, reading and checking them; all errors at once, each with its line."""

from __future__ import annotations

from pathlib import Path as File
from typing import Any

from ..suggestions import suggestion
from .build import scenario_from
from .cross_checks import crosscheck
from .plans import Scenario
from .schema_check import check
from .yaml_lines import Located, Path, Problem, read_yaml

# sections whose items can be judged one by one: a mistake in one event does not hide those in
# others
_LISTS = (("events",), ("faults",), ("incarnations",))
_NEEDED = {"events": {"resources"}, "faults": {"kind"}, "incarnations": {"group"}}

LIBRARY = File(__file__).parent / "library"


class ScenarioError(Exception):
    """A scenario that cannot be used; ``str`` is one line per problem, ``FILE:LINE: KEY.PATH: what is wrong``."""


def load(name_or_file: str) -> Scenario:
    """A shipped scenario by name, or a file by path; raises ScenarioError."""
    file = locate(name_or_file)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{file}: cannot be read: {error}") from None
    return parse(text, str(file))


def parse(text: str, file_name: str) -> Scenario:
    """The scenario in ``text``; ``file_name`` is for messages."""
    located = read_yaml(text)
    problems = located.problems + (_problems(located) if located.parsed else [])
    if problems:
        ordered = sorted(problems, key=lambda each: each.line)
        raise ScenarioError("\n".join(f"{file_name}:{problem}" for problem in ordered))
    return scenario_from(located.data)


def locate(name_or_file: str) -> File:
    """The file of a scenario; what looks like a path is one, everything else is looked up in the library first."""
    shipped = LIBRARY / (name_or_file + ".yaml")
    if "/" not in name_or_file and shipped.is_file():
        return shipped
    file = File(name_or_file)
    if file.is_dir():
        raise ScenarioError(f"{name_or_file}: is a directory, not a scenario file")
    if not file.is_file():
        raise ScenarioError(
            f"{name_or_file}: no such file, and no shipped scenario of that name{suggestion(name_or_file, shipped_names())}"
        )
    return file


def shipped_names() -> list[str]:
    """The shipped scenarios."""
    return sorted(file.stem for file in LIBRARY.glob("*.yaml"))


def summary(name: str) -> str:
    """What a shipped scenario teaches: the comment at its top, without the licence lines."""
    lines = []
    for line in (LIBRARY / (name + ".yaml")).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        text = line.lstrip("# ").rstrip()
        if text and not text.startswith(("SPDX", "Copyright")):
            lines.append(text)
    return " ".join(lines)


def _problems(located: Located) -> list[Problem]:
    data = {} if located.data is None else located.data
    found: list[tuple[Path, str]] = check(data)
    if isinstance(data, dict) and not any(path[:1] not in _LISTS or len(path) == 1 for path, _text in found):
        found = found + _crosscheck_the_rest(data, [path for path, _text in found])
    return [Problem(located.line(path), path, text) for path, text in found]


def _crosscheck_the_rest(data: dict[str, Any], bad: list[Path]) -> list[tuple[Path, str]]:
    """Cross-check what the schema found nothing wrong with: list items without their bad keys."""
    unsound = {path for path in bad if len(path) == 2}
    pruned = {
        path[:2]: {each[2] for each in bad if len(each) > 2 and each[:2] == path[:2]} for path in bad if len(path) > 2
    }
    rest = dict(data)
    for (section,) in _LISTS:
        rest[section] = [
            {key: value for key, value in item.items() if key not in pruned.get((section, index), ())}
            if isinstance(item, dict)
            else {}
            for index, item in enumerate(data.get(section) or ())
        ]
        unsound |= {(section, index) for index, item in enumerate(rest[section]) if not _NEEDED[section] <= set(item)}
    # a pruned item may look incomplete as a whole: only what is wrong with its other keys counts
    return [(path, text) for path, text in crosscheck(rest, frozenset(unsound)) if path not in pruned]


def default_scenario(vm: str | None = None) -> Scenario:
    """One standalone VM and no event: what runs without any configuration."""
    return scenario_from({"title": "one VM", "groups": {"default": {"kind": "standalone", "vms": {vm or "vm1": {}}}}})
