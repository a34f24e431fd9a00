# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The pages about the plugins and roles of the collection, made by antsibull-docs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

COLLECTION = "azure_imds.scheduled_events"
OPTIONS = ("--use-current", "--fail-on-error", "--no-add-antsibull-docs-version", "--no-breadcrumbs")
# indexes over all collections, of which there is one
UNUSED = ("collections/index.rst", "collections/azure_imds/index.rst")


def pages(collection: Path, trees: Path) -> dict[str, bytes]:
    """Return place -> content of all pages.

    Args:
        collection: a copy of the collection at .../ansible_collections/azure_imds/scheduled_events.
        trees: a folder for the output.
    """
    output = trees / "collection-pages"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    subprocess.run(
        [programs() / "antsibull-docs", "collection", *OPTIONS, "--dest-dir", output, COLLECTION],
        env=environment(collection),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    found = {file.relative_to(output).as_posix(): file for file in sorted(output.rglob("*")) if file.is_file()}
    return {name: file.read_bytes() for name, file in found.items() if name not in UNUSED}


def programs() -> Path:
    """Return the folder of the programs of this Python."""
    return Path(sys.executable).parent


def environment(collection: Path) -> dict[str, str]:
    """Return environment variables with which the tools of Ansible find their programs and the collection."""
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(programs()), os.environ.get("PATH", os.defpath)]),
        "ANSIBLE_COLLECTIONS_PATH": str(collection.parents[2]),
    }
