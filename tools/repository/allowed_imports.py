# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A contract for import-linter: each component imports only the standard library and what its row names.

import-linter's own contracts forbid names that they list; none permits a list and forbids the rest.
"""

from __future__ import annotations

import sys
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class AllowedImports(Contract):
    """Rows of the form "component -> others": the packages that a component may import, beside itself.

    A module belongs to the component with the longest name that contains it.
    """

    type_name = "allowed_imports"
    components: Any = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Return the imports that no row permits, and the modules without a row."""
        rows = [row.partition("->") for row in self.components]
        allowed = {name.strip(): {name.strip(), *others.split()} for name, _arrow, others in rows}
        wrong = []
        for module in graph.modules:
            if graph.is_module_squashed(module):  # is not ours
                continue
            component = _owner(module, allowed)
            imported = graph.find_modules_directly_imported_by(module)
            if component:
                permitted = sys.stdlib_module_names | allowed[component]
                wrong += [(module, other) for other in imported if not _owner(other, permitted)]
            elif imported:
                wrong.append((module, "anything: no component contains it"))
        missing = [(name, "anything: it does not exist") for name in allowed if name not in graph.modules]
        return ContractCheck(kept=not wrong and not missing, metadata={"wrong": sorted(wrong + missing)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print each wrong import."""
        for importer, imported in check.metadata["wrong"]:
            output.print_error(f"{importer} must not import {imported}", bold=False)


def _owner(module: str, packages: set[str] | frozenset[str] | dict[str, set[str]]) -> str:
    """Return the longest of these names that contains a module, or ""."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in names if name in packages), "")
