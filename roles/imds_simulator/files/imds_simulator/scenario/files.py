# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Locates, reads and checks scenario files.

Reports all problems at once, each with its line.
"""

from __future__ import annotations

from pathlib import Path as File
from typing import Any

from ..suggestions import suggestion
from .build import scenario_from
from .cross_checks import crosscheck
from .plans import Scenario
from .schema_check import check
from .yaml_lines import Path, Problem, YamlSource, read_yaml

# sections whose items are checked one by one: a problem in one event does not hide problems in others
_REQUIRED_KEYS = {"events": {"resources"}, "faults": {"kind"}, "incarnations": {"group"}, "answers": {"path"}}
_LISTS = tuple((section,) for section in _REQUIRED_KEYS)

LIBRARY = File(__file__).parent / "library"


class ScenarioError(Exception):
    """A scenario is invalid.

    The text has one line for each problem, ``FILE:LINE: KEY.PATH: PROBLEM``.
    """


def load(name_or_file: str) -> Scenario:
    """Load a shipped scenario by name, or a file by path.

    Raises:
        ScenarioError: the file cannot be read, or is not a valid scenario.
    """
    file = locate(name_or_file)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{file}: cannot be read: {error}") from None
    return parse(text, str(file))


def parse(text: str, file_name: str) -> Scenario:
    """Return the scenario in ``text``; ``file_name`` is for messages.

    Raises:
        ScenarioError: ``text`` is not a valid scenario.
    """
    source = read_yaml(text)
    problems = source.problems + (_problems(source) if source.parsed else [])
    if problems:
        ordered = sorted(problems, key=lambda each: each.line)
        raise ScenarioError("\n".join(f"{file_name}:{problem}" for problem in ordered))
    return scenario_from(source.data)


def locate(name_or_file: str) -> File:
    """Return the file of a scenario.

    A name without a slash is a shipped scenario if there is one, else a path.

    Raises:
        ScenarioError: there is no such file.
    """
    shipped = LIBRARY / (name_or_file + ".yaml")
    if "/" not in name_or_file and shipped.is_file():
        return shipped
    file = File(name_or_file)
    if file.is_dir():
        raise ScenarioError(f"{name_or_file}: is a directory, not a scenario file")
    if not file.is_file():
        hint = suggestion(name_or_file, shipped_names())
        raise ScenarioError(f"{name_or_file}: no such file, and no shipped scenario of that name{hint}")
    return file


def shipped_names() -> list[str]:
    """Return the names of the shipped scenarios, sorted."""
    return sorted(file.stem for file in LIBRARY.glob("*.yaml"))


def summary(name: str) -> str:
    """Return the comment at the top of a shipped scenario, without the licence lines."""
    lines = []
    for line in (LIBRARY / (name + ".yaml")).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        text = line.lstrip("# ").rstrip()
        if text and not text.startswith(("SPDX", "Copyright")):
            lines.append(text)
    return " ".join(lines)


def _problems(source: YamlSource) -> list[Problem]:
    data = {} if source.data is None else source.data
    found: list[tuple[Path, str]] = check(data)
    if isinstance(data, dict) and not any(path[:1] not in _LISTS or len(path) == 1 for path, _text in found):
        found = found + _crosscheck_valid_parts(data, [path for path, _text in found])
    return [Problem(source.line(path), path, text) for path, text in found]


def _crosscheck_valid_parts(data: dict[str, Any], bad: list[Path]) -> list[tuple[Path, str]]:
    """Cross-check the parts that fit the schema.

    List items are checked without their invalid keys.

    ``bad`` are the paths of the problems that the schema check found.
    """
    skipped = {path for path in bad if len(path) == 2}
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
        skipped |= {
            (section, index) for index, item in enumerate(rest[section]) if not _REQUIRED_KEYS[section] <= set(item)
        }
    # a pruned item may seem incomplete: only problems of its other keys count
    return [(path, text) for path, text in crosscheck(rest, frozenset(skipped)) if path not in pruned]


def default_scenario(vm: str | None = None) -> Scenario:
    """Return a scenario with one standalone VM, ``vm`` or "vm1", and no events."""
    return scenario_from({"title": "one VM", "groups": {"default": {"kind": "standalone", "vms": {vm or "vm1": {}}}}})
