# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Where a test run works, and in which environment."""

from __future__ import annotations

import ast
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tools.collection_tree import copy_tree
from tools.interpreters import Interpreter, clean_path, find_interpreters

INHERITED_VARIABLES_THAT_MISLEAD = (
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "PYENV_VERSION",
    "PIP_REQUIRE_VIRTUALENV",
)


@dataclass(frozen=True)
class Workshop:
    repository: Path
    interpreters: tuple[Interpreter, ...]
    environment: dict[str, str]

    @property
    def cache(self) -> Path:
        return self.repository / ".cache"

    @property
    def home(self) -> Path:
        return self.cache / "home"

    @property
    def bin(self) -> Path:
        return self.repository / ".venv" / "bin"

    @property
    def python(self) -> Path:
        return self.bin / "python"

    def tree(self, name: str) -> Path:
        """A stage's own physical copy of the collection, so that stages can run side by side."""
        return copy_tree(self.repository, self.cache / "trees" / name)


def open_workshop(repository: Path) -> Workshop:
    interpreters = find_interpreters(os.environ.get("PATH", os.defpath), Path.home())
    environment = {name: value for name, value in os.environ.items() if name not in INHERITED_VARIABLES_THAT_MISLEAD}
    environment |= {
        "HOME": str(repository / ".cache" / "home"),
        "PATH": os.pathsep.join(
            [str(repository / ".venv" / "bin"), clean_path(os.environ.get("PATH", os.defpath), interpreters)]
        ),
        "ANSIBLE_NOCOWS": "1",
        "LC_ALL": "C.UTF-8",
    }
    workshop = Workshop(repository, interpreters, environment)
    write_pip_settings(workshop)
    return workshop


def write_pip_settings(workshop: Workshop) -> None:
    """Carry pip's settings into the run's own HOME.

    ansible-test hands its children a bare environment, so that settings from variables and from the
    user's files would be lost, and with them the way to the package registry.
    """
    settings = workshop.home / ".config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.touch(mode=0o600)
    settings.write_text(
        "[global]\n" + "".join(f"{name} = {value}\n" for name, value in pip_settings(workshop.python).items())
    )


def pip_settings(python: Path) -> dict[str, str]:
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
