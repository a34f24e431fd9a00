# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Read which packages and modules Python files import."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def absolute_imports(file: Path) -> Iterator[str]:
    """Yield the top-level packages that a file imports by absolute names."""
    for node in _imports(file):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif not node.level and node.module:
            yield node.module.partition(".")[0]


def imported_modules(file: Path) -> Iterator[str]:
    """Yield the dotted names of the modules that a file imports by absolute names, with those of their members."""
    for node in _imports(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif not node.level and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def foreign(file: Path) -> set[str]:
    """Return the top-level packages that a file imports from outside of the standard library."""
    return set(absolute_imports(file)) - sys.stdlib_module_names


def sources(folder: Path) -> list[Path]:
    """Return all Python files of a folder."""
    return sorted(folder.rglob("*.py"))


def internal_imports(package: Path) -> dict[str, set[str]]:
    """Return what each module of a package imports of the same package.

    Names are dotted and relative to the package; "" is its ``__init__``.
    """
    modules = {_dotted(file.relative_to(package)): file for file in sources(package)}
    return {name: set(_inside(name, file, package.name, modules)) for name, file in modules.items()}


def _inside(name: str, file: Path, package: str, modules: dict[str, Path]) -> Iterator[str]:
    parents = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in _imports(file):
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".")
        if node.level:
            base = [*parents[: len(parents) - node.level + 1], *parts]
        elif parts[0] == package:
            base = parts[1:]
        else:
            continue
        for alias in node.names:
            whole = ".".join(filter(None, [*base, alias.name]))
            yield whole if whole in modules else ".".join(filter(None, base))


def _dotted(path: Path) -> str:
    names = path.with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def _imports(file: Path) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
