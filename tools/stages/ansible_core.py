# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An installed ansible-core: the one of .venv, or another one in a virtual environment of its own."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from tools.environment import Environment
from tools.interpreters import Interpreter
from tools.stage import Job, Skip

CORE_REQUIREMENTS = ("requests", "PyYAML")
NEWEST_NEEDS_MINOR = 12
_INSTALL_LOCK = threading.Lock()
LOCATE = "import ansible_test, ansible.release; print(ansible_test.__path__[0], ansible.release.__version__)"


@dataclass(frozen=True)
class AnsibleCore:
    """An installed ansible-core: the folder of its programs, the package ansible_test, and its version."""

    bin: Path
    package: Path
    version: str

    @property
    def ansible_test(self) -> Path:
        """The program ansible-test."""
        return self.bin / "ansible-test"

    @property
    def minor(self) -> int:
        """The minor version of the Python that ansible-core itself runs on."""
        return int(self.package.parent.parent.name.removeprefix("python3."))

    def targets(self, interpreters: tuple[Interpreter, ...]) -> list[str]:
        """Return the Pythons of managed nodes that this ansible-core supports and this machine has, oldest first."""
        known = runpy.run_path(str(self.package / "_util" / "target" / "common" / "constants.py"))
        versions = known["REMOTE_ONLY_PYTHON_VERSIONS"] + known["CONTROLLER_PYTHON_VERSIONS"]
        return [interpreter.version for interpreter in interpreters if interpreter.version in versions]

    def pip_versions(self) -> set[str]:
        """Return the versions of pip that ansible-test installs into its virtual environments."""
        source = (self.package / "_internal" / "python_requirements.py").read_text()
        return set(re.findall(r"\bpip='([\d.]+)'", source))


def core_at(folder: Path) -> AnsibleCore:
    """Return the ansible-core whose Python is in this folder."""
    answer = subprocess.run([folder / "python", "-c", LOCATE], check=True, capture_output=True, text=True)
    package, version = answer.stdout.split()
    return AnsibleCore(folder, Path(package), version)


def own_core(environment: Environment) -> AnsibleCore:
    """Return the ansible-core of .venv."""
    return core_at(environment.bin)


def oldest_core(job: Job) -> AnsibleCore:
    """Return the oldest ansible-core that meta/runtime.yml supports.

    Raises:
        Skip: no Python fits it.
    """
    suitable = [interpreter for interpreter in job.environment.interpreters if 10 <= interpreter.minor <= 12]
    if not suitable:
        raise Skip("ansible-core 2.16 needs a Python from 3.10 to 3.12")
    return other_core(job, "oldest", "ansible-core==2.16.*", suitable[0])


def newest_core(job: Job) -> AnsibleCore:
    """Return the newest ansible-core.

    Raises:
        Skip: that of .venv is the newest, or no Python is new enough.
    """
    if own_core(job.environment).minor >= NEWEST_NEEDS_MINOR:
        raise Skip("the ansible-core of .venv is the newest")
    suitable = [interpreter for interpreter in job.environment.interpreters if interpreter.minor >= NEWEST_NEEDS_MINOR]
    if not suitable:
        raise Skip(f"the newest ansible-core needs Python 3.{NEWEST_NEEDS_MINOR}")
    return other_core(job, "newest", "ansible-core", suitable[-1])


def other_core(job: Job, name: str, requirement: str, interpreter: Interpreter) -> AnsibleCore:
    """Return the ansible-core at .cache/cores/NAME; install it at the first call."""
    folder = job.environment.cache / "cores" / name
    marker = folder / "requirement"
    wanted = f"{requirement} on Python {interpreter.version}\n"
    with _INSTALL_LOCK:
        if not (marker.exists() and marker.read_text() == wanted):
            job.run_or_fail(interpreter.path, "-m", "venv", "--clear", folder)
            job.run_or_fail(folder / "bin" / "python", "-m", "pip", "install", "-qq", requirement, *CORE_REQUIREMENTS)
            marker.write_text(wanted)
    return core_at(folder / "bin")


def path_for(core: AnsibleCore, environment: Environment) -> str:
    """Return PATH with the programs of this ansible-core first, and those of .venv (shellcheck) behind them."""
    return os.pathsep.join([str(core.bin), environment.variables["PATH"]])
