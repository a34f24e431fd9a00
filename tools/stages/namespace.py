# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stage of the network namespace, in which 169.254.169.254 is an address of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tools.stage import Job, Outcome, Skip
from tools.stages.pytest_stage import pytest_folder

UNSHARE_COMMAND = ("unshare", "--net", "--")
# cloud-init and the libraries that its Azure data source imports and .venv does not have
CLOUD_INIT_PACKAGES = (
    "cloud-init",
    "python3-configobj",
    "python3-json-pointer",
    "python3-jsonpatch",
    "python3-oauthlib",
)


def skip_reason() -> str | None:
    """Return why this machine has no network namespace for tests, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("unshare", "ip"):
        if not shutil.which(program):
            return f"needs the program {program}"
    tried = subprocess.run(
        [*UNSHARE_COMMAND, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False
    )
    return f"not allowed here: {tried.stderr.strip()}" if tried.returncode else None


def namespace(job: Job) -> Outcome:
    """Run tests/system/namespace."""
    if reason := skip_reason():
        raise Skip(reason)
    unpacked = cloud_init(job)
    env = {} if unpacked is None else {"CLOUD_INIT": str(unpacked)}
    return pytest_folder(job, "system/namespace", prefix=UNSHARE_COMMAND, env=env)


def cloud_init(job: Job) -> Path | None:
    """Unpack cloud-init, as the archives of this machine have it, without installing it.

    Returns:
        The folder for PYTHONPATH; None if this machine has no apt-get, or its archives do not answer.
    """
    home = job.environment.cache / "cloud-init"
    modules = home / "usr" / "lib" / "python3" / "dist-packages"
    if not modules.is_dir() and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        with tempfile.TemporaryDirectory(dir=job.environment.cache, prefix="cloud-init-") as folder:
            archives = Path(folder) / "archives"
            archives.mkdir()
            if _download(job, archives):
                for archive in sorted(archives.glob("*.deb")):
                    job.run_or_fail("dpkg-deb", "--extract", archive, Path(folder) / "unpacked")
                (Path(folder) / "unpacked").rename(home)
    return modules if modules.is_dir() else None


def _download(job: Job, folder: Path) -> bool:
    command = ("apt-get", "-qq", "download", *CLOUD_INIT_PACKAGES)
    if job.run(*command, cwd=folder) == 0:
        return True
    # the lists of packages are missing, or older than the archive
    job.run("apt-get", "-qq", "update")
    return job.run(*command, cwd=folder) == 0
