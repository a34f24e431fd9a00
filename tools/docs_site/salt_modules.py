# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The Salt modules under the names that Salt's own documentation gives to modules, imported without Salt."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from sphinx.ext.autodoc import mock


class SaltModule(NamedTuple):
    """One module of Salt.

    Attributes:
        kind: of the module, as Salt names its folder.
        title: of its page.
        has_functions: the functions of the others are for Salt's loader and not for users.
    """

    kind: str
    title: str
    has_functions: bool = True

    @property
    def import_name(self) -> str:
        """The name that Salt would give to the module."""
        return f"salt.{self.kind}.azure_events"

    @property
    def path(self) -> Path:
        """The file, relative to the repository."""
        return Path("salt", f"_{self.kind}", "azure_events.py")

    def functions(self, repository: Path) -> list[str]:
        """Return the public functions under the names that Salt gives them, in the order of the file."""
        if not self.has_functions:
            return []
        tree = ast.parse((repository / self.path).read_text(encoding="utf-8"))
        names = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
        return [self.name_in_salt(name) for name in names if not name.startswith("_")]

    def name_in_salt(self, name: str) -> str:
        """Return the name without the underscore that distinguishes it from a name of Python."""
        return name.rstrip("_")


KINDS = (
    SaltModule("modules", "Execution module"),
    SaltModule("states", "State module"),
    SaltModule("beacons", "Beacon", has_functions=False),
    SaltModule("engines", "Engine", has_functions=False),
    SaltModule("runners", "Runner module"),
    SaltModule("grains", "Grain", has_functions=False),
)


def import_salt_modules(repository: Path) -> None:
    """Import all modules of `KINDS`; autodoc then finds them under their names."""
    with mock(["salt"]):
        for each in KINDS:
            module = load(each.import_name, repository / each.path)
            for name, alias in getattr(module, "__func_alias__", {}).items():
                setattr(module, alias, getattr(module, name))


def load(name: str, path: Path) -> ModuleType:
    """Import a file under a name; raise ImportError if it cannot be imported."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path}: not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
