# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Which packages and modules Python files import."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def absolute_imports(file: Path) -> Iterator[str]:
    """The top-level packages that a file imports by an absolute name, wherever in the file it does so."""
    for node in _imports(file):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif not node.level and node.module:
            yield node.module.partition(".")[0]


def foreign(file: Path) -> set[str]:
    """Those that do not belong to Python."""
    return set(absolute_imports(file)) - sys.stdlib_module_names


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def internal_imports(package: Path) -> dict[str, set[str]]:
    """What each module of a package imports of the same package, by dotted names below the package; "" is its ``__init__``."""
    modules = {_dotted(file.relative_to(package)): file for file in sources(package)}
    return {name: set(_inside(name, file, package.name, modules)) for name, file in modules.items()}


def _inside(name: str, file: Path, package: str, modules: dict[str, Path]) -> Iterator[str]:
    parents = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in _imports(file):
        if not isinstance(node, ast.ImportFrom):
            continue
        words = (node.module or "").split(".")
        if node.level:
            base = [*parents[: len(parents) - node.level + 1], *words]
        elif words[0] == package:
            base = words[1:]
        else:
            continue
        for alias in node.names:
            whole = ".".join(filter(None, [*base, alias.name]))
            yield whole if whole in modules else ".".join(filter(None, base))


def _dotted(path: Path) -> str:
    words = path.with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


def _imports(file: Path) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
