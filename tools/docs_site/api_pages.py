# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The pages about the interfaces of the Python helper and of the Salt modules, for autodoc."""

from __future__ import annotations

import importlib
from pathlib import Path

from tools.docs_site.salt_modules import KINDS, SaltModule

HELPER = "azure_scheduled_events"
HELPER_FOLDER = Path("plugins/module_utils", HELPER)


def pages(repository: Path) -> dict[str, bytes]:
    """Return place -> content of all pages."""
    found = helper_pages(repository) | salt_pages(repository)
    return {place: text.encode() for place, text in found.items()}


def helper_pages(repository: Path) -> dict[str, str]:
    """Return the pages about the helper: what the package exports, and one for each of its files."""
    names = sorted(file.stem for file in (repository / HELPER_FOLDER).glob("*.py") if file.stem != "__init__")
    package = importlib.import_module(HELPER)
    exported = "".join(f"- {reference(package, name)}\n" for name in package.__all__)
    found = {
        "api/helper/index.rst": heading("The Python helper: interface")
        + "The guide is :doc:`/helper`.\n\n"
        + f".. automodule:: {HELPER}\n   :no-members:\n\n"
        + f"These names can be imported from ``{HELPER}``:\n\n{exported}\n"
        + heading("Files", "-")
        + ".. toctree::\n   :maxdepth: 1\n\n"
        + "".join(f"   {name}\n" for name in names)
    }
    for name in names:
        options = "   :members:\n   :show-inheritance:\n   :member-order: bysource\n"
        found[f"api/helper/{name}.rst"] = heading(name) + f".. automodule:: {HELPER}.{name}\n{options}"
    return found


def reference(package: object, name: str) -> str:
    """Return a reference to the definition of a name that the package exports."""
    found = getattr(package, name)
    kind = "class" if isinstance(found, type) else "func"
    return f":py:{kind}:`{name} <{found.__module__}.{name}>`"


def salt_pages(repository: Path) -> dict[str, str]:
    """Return the pages about Salt's modules: one for each kind."""
    found = {
        "api/salt/index.rst": heading("Salt modules: interface")
        + "The guide is :doc:`/salt`; all options and events are in the :doc:`reference </salt-reference>`.\n\n"
        + ".. toctree::\n   :maxdepth: 1\n\n"
        + "".join(f"   {module.kind}\n" for module in KINDS)
    }
    for module in KINDS:
        functions = "".join(
            f".. autofunction:: {module.import_name}.{name}\n\n" for name in module.functions(repository)
        )
        found[f"api/salt/{module.kind}.rst"] = salt_page(module, functions)
    return found


def salt_page(module: SaltModule, functions: str) -> str:
    """Return the page about one module."""
    return (
        heading(f"{module.title} azure_events")
        + f".. automodule:: {module.import_name}\n   :no-members:\n\n"
        + (heading("Functions", "-") + functions if functions else "")
    )


def heading(text: str, line: str = "=") -> str:
    """Return a heading."""
    return f"{text}\n{line * len(text)}\n\n"
