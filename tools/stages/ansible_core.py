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

from tools.environment import Workshop
from tools.interpreters import Interpreter
from tools.stage import Job, Skip

BESIDE_IT = ("requests", "PyYAML")
NEWEST_NEEDS_MINOR = 12
INSTALLING = threading.Lock()
LOCATE = "import ansible_test, ansible.release; print(ansible_test.__path__[0], ansible.release.__version__)"


@dataclass(frozen=True)
class Core:
    bin: Path
    package: Path
    version: str

    @property
    def ansible_test(self) -> Path:
        return self.bin / "ansible-test"

    @property
    def minor(self) -> int:
        """The minor version of the Python that ansible-core itself runs on."""
        return int(self.package.parent.parent.name.removeprefix("python3."))

    def targets(self, interpreters: tuple[Interpreter, ...]) -> list[str]:
        """The Pythons of managed nodes that this ansible-core knows and this machine has, oldest first."""
        known = runpy.run_path(str(self.package / "_util" / "target" / "common" / "constants.py"))
        versions = known["REMOTE_ONLY_PYTHON_VERSIONS"] + known["CONTROLLER_PYTHON_VERSIONS"]
        return [interpreter.version for interpreter in interpreters if interpreter.version in versions]

    def pip_versions(self) -> set[str]:
        """The versions of pip that ansible-test puts into the virtual environments that it makes."""
        source = (self.package / "_internal" / "python_requirements.py").read_text()
        return set(re.findall(r"\bpip='([\d.]+)'", source))


def core_at(folder: Path) -> Core:
    answer = subprocess.run([folder / "python", "-c", LOCATE], check=True, capture_output=True, text=True)
    package, version = answer.stdout.split()
    return Core(folder, Path(package), version)


def own_core(workshop: Workshop) -> Core:
    return core_at(workshop.bin)


def oldest_core(job: Job) -> Core:
    """The oldest ansible-core that meta/runtime.yml promises to work with."""
    fitting = [interpreter for interpreter in job.workshop.interpreters if 10 <= interpreter.minor <= 12]
    if not fitting:
        raise Skip("ansible-core 2.16 needs a Python from 3.10 to 3.12")
    return other_core(job, "oldest", "ansible-core==2.16.*", fitting[0])


def newest_core(job: Job) -> Core:
    if own_core(job.workshop).minor >= NEWEST_NEEDS_MINOR:
        raise Skip("the ansible-core of .venv is the newest")
    fitting = [interpreter for interpreter in job.workshop.interpreters if interpreter.minor >= NEWEST_NEEDS_MINOR]
    if not fitting:
        raise Skip(f"the newest ansible-core needs Python 3.{NEWEST_NEEDS_MINOR}")
    return other_core(job, "newest", "ansible-core", fitting[-1])


def other_core(job: Job, name: str, requirement: str, interpreter: Interpreter) -> Core:
    """An ansible-core of its own at .cache/cores/NAME, installed at the first call."""
    folder = job.workshop.cache / "cores" / name
    marker = folder / "requirement"
    wanted = f"{requirement} on Python {interpreter.version}\n"
    with INSTALLING:
        if not (marker.exists() and marker.read_text() == wanted):
            job.must(interpreter.path, "-m", "venv", "--clear", folder)
            job.must(folder / "bin" / "python", "-m", "pip", "install", "-qq", requirement, *BESIDE_IT)
            marker.write_text(wanted)
    return core_at(folder / "bin")


def path_for(core: Core, workshop: Workshop) -> str:
    """PATH with this core's commands first; those of .venv stay behind it, for shellcheck."""
    return os.pathsep.join([str(core.bin), workshop.environment["PATH"]])
