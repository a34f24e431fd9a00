# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The checks that a collection passes before it is published."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tools.stage import Job, Outcome


def mypy(job: Job) -> Outcome:
    root_of_ansible_collections = job.workshop.tree("mypy").parents[2]
    return Outcome.of(job.run(job.workshop.bin / "mypy", env={"MYPYPATH": os.fspath(root_of_ansible_collections)}))


def lint(job: Job) -> Outcome:
    tree = job.workshop.tree("lint")
    yaml = job.run(job.workshop.bin / "yamllint", "--strict", ".", cwd=tree)
    environment = {"ANSIBLE_COLLECTIONS_PATH": os.fspath(tree.parents[2]), "NO_COLOR": "1"}
    ansible = job.run(job.workshop.bin / "ansible-lint", "--offline", "--profile", "production", cwd=tree, env=environment)
    return Outcome.of(yaml) + Outcome.of(ansible)


def docs(job: Job) -> Outcome:
    tree = job.workshop.tree("docs")
    options = ("--plugin-docs", "--validate-collection-refs=all", "--disallow-unknown-collection-refs")
    return Outcome.of(job.run(job.workshop.bin / "antsibull-docs", "lint-collection-docs", *options, ".", cwd=tree))


def changelog(job: Job) -> Outcome:
    return Outcome.of(job.run(job.workshop.bin / "antsibull-changelog", "lint", cwd=job.workshop.tree("changelog")))


def build(job: Job) -> Path | None:
    """The collection's archive in .cache/collection."""
    folder = job.workshop.cache / "collection"
    shutil.rmtree(folder, ignore_errors=True)
    tree = job.workshop.tree("galaxy")
    if job.run(job.workshop.bin / "ansible-galaxy", "collection", "build", "--output-path", folder, cwd=tree):
        return None
    return next(folder.glob("*.tar.gz"))


def galaxy(job: Job) -> Outcome:
    archive = build(job)
    if archive is None:
        return Outcome(failed=1)
    scratch = job.workshop.cache / "importer"
    scratch.mkdir(exist_ok=True)
    settings = scratch / "galaxy-importer.cfg"
    settings.write_text("[galaxy-importer]\nCHECK_REQUIRED_TAGS=True\nRUN_ANSIBLE_DOC=True\nRUN_ANSIBLE_LINT=False\n")
    environment = {"GALAXY_IMPORTER_CONFIG": os.fspath(settings)}
    importer = job.run(job.workshop.python, "-m", "galaxy_importer.main", archive, cwd=scratch, env=environment)
    complaints = [line for line in job.output().splitlines() if line.startswith(("ERROR:", "WARNING:"))]
    for line in complaints:
        job.say(f"the importer complains: {line}")
    return Outcome(passed=1) + Outcome.of(importer or len(complaints))
