# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The pages about the plugins and roles of the collection, made by antsibull-docs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from tools.docs_site.programs import run_program

COLLECTION = "azure_imds.scheduled_events"
OPTIONS = ("--use-current", "--fail-on-error", "--no-add-antsibull-docs-version", "--no-breadcrumbs")
INDEX = "collections/azure_imds/scheduled_events/index.rst"
KINDS = ("module", "role", "filter", "test")


def pages(collection: Path, trees: Path) -> dict[str, bytes]:
    """Return place -> content of all pages.

    ``collection`` is a copy at .../ansible_collections/azure_imds/scheduled_events; ``trees`` takes the output.
    """
    output = trees / "collection-pages"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    arguments = ("collection", *OPTIONS, "--dest-dir", output, COLLECTION)
    run_program("antsibull-docs", *arguments, collection=collection, folder=output)
    found = {file.relative_to(output).as_posix(): file for file in sorted(output.rglob("*")) if file.is_file()}
    # without the indexes over all collections, of which there is one
    result = {name: file.read_bytes() for name, file in found.items() if Path(INDEX).parent in Path(name).parents}
    result[INDEX] += navigation(result).encode()
    return result


def navigation(names: Iterable[str]) -> str:
    """Return a toctree of the pages about plugins and roles, with short titles."""
    entries = []
    for name in names:
        plugin, _separator, kind = Path(name).stem.rpartition("_")
        if Path(name).parent == Path(INDEX).parent and plugin:
            entries.append(f"    {plugin} {kind} <{Path(name).stem}>\n")
    return "\n.. toctree::\n    :hidden:\n\n" + "".join(sorted(entries, key=by_kind))


def by_kind(entry: str) -> tuple[int, str]:
    """Return the order of an entry: modules, roles, filters, tests."""
    kind = entry.split()[1]
    return (KINDS.index(kind) if kind in KINDS else len(KINDS), entry)
