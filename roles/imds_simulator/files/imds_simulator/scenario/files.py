# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Locates, reads and checks scenario files. Reports all problems at once, each with its line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path as File
from typing import Any

from ..keys import Path, json_schema, problem_text, read
from ..printable_text import printable
from ..suggestions import suggestion
from .checks import scenario_problems
from .groups import Group, Vm, stem_of
from .plans import Scenario
from .warnings import scenario_warnings
from .yaml_lines import YamlSource, read_yaml

LIBRARY = File(__file__).parent / "library"


class ScenarioError(Exception):
    """A scenario is invalid; the text has one line for each problem, ``FILE:LINE: KEY.PATH: PROBLEM``."""


def load_with_warnings(name_or_file: str) -> tuple[Scenario, list[str]]:
    """Return a shipped scenario by name, or a file by path, and its warnings, which are lines of the form of a problem.

    Raises:
        ScenarioError: the file cannot be read, or is not a valid scenario.
    """
    file = locate(name_or_file)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{file}: cannot be read: {error}") from None
    return parse_with_warnings(text, str(file))


def parse_with_warnings(text: str, file_name: str) -> tuple[Scenario, list[str]]:
    """Return the scenario in ``text``, and its warnings; ``file_name`` is for messages.

    Raises:
        ScenarioError: ``text`` is not a valid scenario.
    """
    source = read_yaml(text)
    problems = source.problems
    scenario = read(Scenario, source.data, (), problems)
    # events of VMs that could not be read would seem wrong
    if scenario is not None and not problems.concern(("groups",)):
        problems.check(scenario_problems(scenario, time.time()))
    if scenario is None or problems.found:
        raise ScenarioError("\n".join(_lines(problems.found, source, file_name)))
    warnings = [(path, f"warning: {text}") for path, text in scenario_warnings(scenario)]
    return scenario, _lines(warnings, source, file_name)


def _lines(problems: list[tuple[Path, str]], source: YamlSource, file_name: str) -> list[str]:
    found = sorted(((source.line(path), problem_text(path, text)) for path, text in problems), key=lambda each: each[0])
    return [printable(f"{file_name}:{line}: {text}") for line, text in found]


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
    lines = (LIBRARY / (name + ".yaml")).read_text(encoding="utf-8").splitlines()
    comment = (line.lstrip("# ").rstrip() for line in takewhile(lambda line: line.startswith("#"), lines))
    return " ".join(line for line in comment if line and not line.startswith(("SPDX", "Copyright")))


def schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of imds_simulator",
        **json_schema(Scenario),
    }


def default_scenario(names: Sequence[str] = ("vm1",)) -> Scenario:
    """Return a scenario of these VMs without events; names STEM_NUMBER with one stem are those of a scale set STEM."""
    stems = {stem_of(name) for name in names}
    stem = stems.pop() if len(stems) == 1 else None
    group = stem or "default"
    vms = tuple(Vm(name=name, group=group, resource_name=name) for name in names)
    title = "one VM" if len(vms) == 1 else f"{len(vms)} VMs"
    return Scenario(title=title, groups=(Group(name=group, given_kind="scale_set" if stem else None, vms=vms),))
