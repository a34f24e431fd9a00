# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which packages Python files import."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def absolute_imports(file: Path) -> Iterator[str]:
    """The top-level packages that a file imports by an absolute name, wherever in the file it does so."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def foreign(file: Path) -> set[str]:
    return set(absolute_imports(file)) - sys.stdlib_module_names


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))
