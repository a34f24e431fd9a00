# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A new type of event is one line of one file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from azure_scheduled_events.event_types import EVENT_TYPES
from support.repository import REPOSITORY
from tools.repository.collection_tree import tracked_or_new

TABLE = Path("plugins/module_utils/azure_scheduled_events/event_types.py")
PARTS = ("extensions", "plugins", "roles", "salt")
# it shares no code with the product that it tests
SIMULATOR = Path("roles/imds_simulator")
# a default that users can change: after these events a job cannot go on
DEFAULTS = {(Path("roles/ready_hooks/files/ready_hooks/hooks/slurm/hook.py"), ("Preempt", "Redeploy"))}


def lists_of_types(source: str) -> Iterator[tuple[str, ...]]:
    """Yield the types that each list, tuple, set or dictionary of a program names, if there are several."""
    known = {kind.casefold() for kind in EVENT_TYPES}
    for node in ast.walk(ast.parse(source)):
        members = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
        named = tuple(
            str(member.value)
            for member in members
            if isinstance(member, ast.Constant) and str(member.value).casefold() in known
        )
        if len(named) > 1:
            yield named


def test_types_are_listed_in_one_file() -> None:
    found = {
        (name, named)
        for name in tracked_or_new(REPOSITORY)
        if name.suffix == ".py" and name.parts[0] in PARTS and SIMULATOR not in name.parents
        for named in lists_of_types((REPOSITORY / name).read_text(encoding="utf-8"))
    }
    assert {each for each in found if not (REPOSITORY / each[0]).is_symlink()} - DEFAULTS == {(TABLE, EVENT_TYPES)}
