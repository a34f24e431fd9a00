# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The environment of a test run: folders, interpreters and environment variables."""

from __future__ import annotations

import ast
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.interpreters import Interpreter, clean_path, find_interpreters
from tools.repository.collection_tree import copy_tree

STRIPPED_VARIABLES = (
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "PYENV_VERSION",
    "PIP_REQUIRE_VIRTUALENV",
)


@dataclass(frozen=True)
class Environment:
    """The checkout that is tested, the Pythons of this machine, and the environment variables of all commands."""

    repository: Path
    interpreters: tuple[Interpreter, ...]
    variables: dict[str, str]

    @property
    def cache(self) -> Path:
        """The folder of everything that a run downloads, builds and logs."""
        return self.repository / ".cache"

    @property
    def home(self) -> Path:
        """HOME of all commands."""
        return self.cache / "home"

    @property
    def bin(self) -> Path:
        """The folder of the programs of .venv."""
        return self.repository / ".venv" / "bin"

    @property
    def python(self) -> Path:
        """The Python of .venv."""
        return self.bin / "python"

    def tree(self, name: str) -> Path:
        """Return a stage's own copy of the collection; stages that run side by side need one each."""
        return copy_tree(self.repository, self.cache / "trees" / name)


def open_environment(repository: Path) -> Environment:
    """Find the interpreters, and carry pip's settings over to the HOME of the run."""
    interpreters = find_interpreters(os.environ.get("PATH", os.defpath), Path.home())
    path = clean_path(os.environ.get("PATH", os.defpath), interpreters)
    variables = {name: value for name, value in os.environ.items() if name not in STRIPPED_VARIABLES}
    variables |= {
        "HOME": str(repository / ".cache" / "home"),
        "PATH": os.pathsep.join([str(repository / ".venv" / "bin"), path]),
        "ANSIBLE_NOCOWS": "1",
        "LC_ALL": "C.UTF-8",
    }
    environment = Environment(repository, interpreters, variables)
    write_pip_settings(environment)
    return environment


def write_pip_settings(environment: Environment) -> None:
    """Write pip's settings into the HOME of the run.

    ansible-test clears the environment of its children. Without the file they would lose the settings
    of the user and of the environment variables, and could not reach the package registry.
    """
    settings = environment.home / ".config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.touch(mode=0o600)
    settings.write_text(
        "[global]\n" + "".join(f"{name} = {value}\n" for name, value in pip_settings(environment.python).items())
    )


def pip_settings(python: Path) -> dict[str, str]:
    """Return the settings that pip of this Python uses now."""

    def ask(*question: str) -> str:
        return subprocess.run(
            [python, "-m", "pip", *question], check=True, capture_output=True, text=True
        ).stdout.strip()

    settings = {
        "cache-dir": ask("cache", "dir"),
        "quiet": "2",
        "root-user-action": "ignore",
        "disable-pip-version-check": "true",
    }
    for line in ask("config", "list").splitlines():
        name, value = line.split("=", 1)
        settings[name.rpartition(".")[2]] = "\n    ".join(ast.literal_eval(value).split())
    return settings
