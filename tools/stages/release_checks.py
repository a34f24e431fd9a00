# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The checks that a collection passes before it is published."""

from __future__ import annotations

import os
import shutil

from tools.stage import Job, Outcome


def mypy(job: Job) -> Outcome:
    root_of_ansible_collections = job.workshop.tree("mypy").parents[2]
    return Outcome.of(job.run(job.workshop.bin / "mypy", env={"MYPYPATH": os.fspath(root_of_ansible_collections)}))


def lint(job: Job) -> Outcome:
    tree = job.workshop.tree("lint")
    yaml = job.run(job.workshop.bin / "yamllint", "--strict", ".", cwd=tree)
    environment = {"ANSIBLE_COLLECTIONS_PATH": os.fspath(tree.parents[2]), "NO_COLOR": "1"}
    ansible = job.run(
        job.workshop.bin / "ansible-lint", "--offline", "--profile", "production", cwd=tree, env=environment
    )
    return Outcome.of(yaml) + Outcome.of(ansible)


def docs(job: Job) -> Outcome:
    tree = job.workshop.tree("docs")
    options = ("--plugin-docs", "--validate-collection-refs=all", "--disallow-unknown-collection-refs")
    return Outcome.of(job.run(job.workshop.bin / "antsibull-docs", "lint-collection-docs", *options, ".", cwd=tree))


def changelog(job: Job) -> Outcome:
    return Outcome.of(job.run(job.workshop.bin / "antsibull-changelog", "lint", cwd=job.workshop.tree("changelog")))


def galaxy(job: Job) -> Outcome:
    """Build the archive and let Galaxy's importer look at it; a warning of the importer fails the stage too."""
    folder = job.workshop.cache / "galaxy"
    shutil.rmtree(folder, ignore_errors=True)
    tree = job.workshop.tree("galaxy")
    if job.run(job.workshop.bin / "ansible-galaxy", "collection", "build", "--output-path", folder, cwd=tree):
        return Outcome(failed=1)
    archive = next(folder.glob("*.tar.gz"))
    settings = folder / "galaxy-importer.cfg"
    settings.write_text("[galaxy-importer]\nCHECK_REQUIRED_TAGS=True\nRUN_ANSIBLE_DOC=True\nRUN_ANSIBLE_LINT=False\n")
    environment = {"GALAXY_IMPORTER_CONFIG": os.fspath(settings)}
    status = job.run(job.workshop.python, "-m", "galaxy_importer.main", archive, cwd=folder, env=environment)
    complained = any(line.startswith(("ERROR:", "WARNING:")) for line in job.output().splitlines())
    return Outcome(passed=1) + Outcome.of(status or complained)
