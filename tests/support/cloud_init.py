# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""cloud-init, as the archives of this machine have it, unpacked into the shared cache without being installed.

python -m support.cloud_init unpacks it; tests in a network namespace cannot download it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from support.shared_cache import entry, only_one

# cloud-init and the libraries that its Azure data source imports and .venv does not have
PACKAGES = ("cloud-init", "python3-configobj", "python3-json-pointer", "python3-jsonpatch", "python3-oauthlib")
MODULES = Path("usr", "lib", "python3", "dist-packages")
LIMIT = 300


def unpacked() -> Path | None:
    """Return the folder for PYTHONPATH, or None if cloud-init has not been unpacked."""
    modules = entry("cloud-init", PACKAGES) / MODULES
    return modules if modules.is_dir() else None


def unpack() -> None:
    """Download and unpack cloud-init, where this machine has apt-get and its archives answer."""
    home = entry("cloud-init", PACKAGES)
    with only_one("cloud-init"):
        if not home.is_dir() and shutil.which("apt-get") and shutil.which("dpkg-deb"):
            with tempfile.TemporaryDirectory(dir=home.parent, prefix="cloud-init-") as folder:
                archives, made = Path(folder, "archives"), Path(folder, "unpacked")
                archives.mkdir()
                if _download(archives):
                    for archive in sorted(archives.glob("*.deb")):
                        subprocess.run(["dpkg-deb", "--extract", archive, made], check=True, timeout=LIMIT)
                    made.rename(home)


def _download(folder: Path) -> bool:
    command = ["apt-get", "-qq", "download", *PACKAGES]
    with only_one("apt"):
        if subprocess.run(command, cwd=folder, check=False, timeout=LIMIT).returncode == 0:
            return True
        # the lists of packages are missing, or older than the archive
        subprocess.run(["apt-get", "-qq", "update"], check=False, timeout=LIMIT)
        return subprocess.run(command, cwd=folder, check=False, timeout=LIMIT).returncode == 0


if __name__ == "__main__":
    unpack()
    if unpacked() is None:
        sys.exit("cloud-init: it could not be downloaded; see that apt-get has the archives of a Debian or Ubuntu")
