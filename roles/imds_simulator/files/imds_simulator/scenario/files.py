# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Locates, reads and checks scenario files. Reports all problems at once, each with its line."""

from __future__ import annotations

import time
from pathlib import Path as File
from typing import Any

from ..suggestions import suggestion
from .build import scenario_from
from .cross_checks import crosscheck
from .plans import Scenario
from .schema_check import check
from .warnings import scenario_warnings
from .yaml_lines import Path, Problem, YamlSource, read_yaml

# sections whose items are checked one by one: a problem in one event does not hide problems in others
_REQUIRED_KEYS = {"events": {"resources"}, "faults": {"kind"}, "incarnations": {"group"}, "answers": {"path"}}
_LISTS = tuple((section,) for section in _REQUIRED_KEYS)

LIBRARY = File(__file__).parent / "library"


class ScenarioError(Exception):
    """A scenario is invalid; the text has one line for each problem, ``FILE:LINE: KEY.PATH: PROBLEM``."""


def load(name_or_file: str, now: float | None = None) -> Scenario:
    """Load a shipped scenario by name, or a file by path.

    ``now`` is the Unix time, after which absolute times have to be; None: the present time.

    Raises:
        ScenarioError: the file cannot be read, or is not a valid scenario.
    """
    return load_with_warnings(name_or_file, now)[0]


def load_with_warnings(name_or_file: str, now: float | None = None) -> tuple[Scenario, list[str]]:
    """Load a scenario as ``load`` does, and return it with its warnings, which are lines of the form of a problem."""
    file = locate(name_or_file)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{file}: cannot be read: {error}") from None
    return _parse(text, str(file), now)


def parse(text: str, file_name: str, now: float | None = None) -> Scenario:
    """Return the scenario in ``text``; ``file_name`` is for messages, ``now`` as for load.

    Raises:
        ScenarioError: ``text`` is not a valid scenario.
    """
    return _parse(text, file_name, now)[0]


def _parse(text: str, file_name: str, now: float | None) -> tuple[Scenario, list[str]]:
    source = read_yaml(text)
    problems = source.problems + (_problems(source, time.time() if now is None else now) if source.parsed else [])
    if problems:
        raise ScenarioError("\n".join(_lines(problems, file_name)))
    scenario = scenario_from(source.data)
    found = scenario_warnings(source.data, scenario.knobs)
    warnings = [Problem(source.line(path), path, f"warning: {text}") for path, text in found]
    return scenario, _lines(warnings, file_name)


def _lines(problems: list[Problem], file_name: str) -> list[str]:
    return [f"{file_name}:{problem}" for problem in sorted(problems, key=lambda each: each.line)]


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
        if file.exists():
            raise ScenarioError(f"{name_or_file}: is not a regular file; write the scenario to a file")
        hint = suggestion(name_or_file, shipped_names()) or "; --list-scenarios lists those"
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


def _problems(source: YamlSource, now: float) -> list[Problem]:
    data = {} if source.data is None else source.data
    found: list[tuple[Path, str]] = check(data)
    if isinstance(data, dict) and not any(path[:1] not in _LISTS or len(path) == 1 for path, _text in found):
        found = found + _crosscheck_valid_parts(data, now, [path for path, _text in found])
    return [Problem(source.line(path), path, text) for path, text in found]


def _crosscheck_valid_parts(data: dict[str, Any], now: float, bad: list[Path]) -> list[tuple[Path, str]]:
    """Cross-check the parts that fit the schema; list items are checked without their invalid keys.

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
    return [(path, text) for path, text in crosscheck(rest, now, frozenset(skipped)) if path not in pruned]


def default_scenario(vm: str | None = None) -> Scenario:
    """Return a scenario with one standalone VM, ``vm`` or "vm1", and no events."""
    return scenario_from({"title": "one VM", "groups": {"default": {"kind": "standalone", "vms": {vm or "vm1": {}}}}})
