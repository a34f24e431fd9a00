# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The helper and the minion's part of salt/ use only modules and functions that Windows has too."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from support.repository import REPOSITORY
from tools.repository.imports import sources
from tools.repository.portability import POSIX_MEMBERS, Platform, unportable_uses, unportable_uses_in

FOLDERS = (
    "plugins/module_utils/azure_scheduled_events",
    "salt/_beacons",
    "salt/_grains",
    "salt/_modules",
    "salt/_states",
    "salt/_utils/azure_events_functions",
    "salt/_utils/azure_events_steps",
    "salt/_utils/azure_events_watch",
)
FILES = [file for folder in FOLDERS for file in sources(REPOSITORY / folder)]

# uses in code for both platforms, with the reason why Windows does not meet them
PERMITTED = {
    ("boot.py", "/proc/sys/kernel/random/boot_id"): "only the function for Linux reads it",
    ("hook_records.py", "/var/lib/azure-scheduled-events/ready-hooks"): "a default of ready hooks, which need Linux",
}


def test_code_for_both_platforms_has_only_what_both_have() -> None:
    found = [(file, use) for file in FILES for use in unportable_uses(file)]
    assert [
        f"{file.relative_to(REPOSITORY)}:{use.line}: {use.name}"
        for file, use in found
        if (file.name, use.name) not in PERMITTED
    ] == []
    assert {(file.name, use.name) for file, use in found} == PERMITTED.keys()


@pytest.mark.parametrize(
    "source, name",
    [
        ("import fcntl", "fcntl"),
        ("def f():\n    import pwd", "pwd"),
        ("from termios import tcgetattr", "termios"),
        ("try:\n    import grp\nexcept ImportError:\n    grp = None", "grp"),
        ("import winreg", "winreg"),
        ("import os\nos.fork()", "os.fork"),
        ("import os\nif os.geteuid() == 0:\n    pass", "os.geteuid"),
        ("from os import pread", "os.pread"),
        ("import os\nos.pwrite(1, b'', 0)", "os.pwrite"),
        ("import os\nos.killpg(1, 15)", "os.killpg"),
        ("import os\nos.setsid()", "os.setsid"),
        ("import os\nos.waitstatus_to_exitcode(0)", "os.waitstatus_to_exitcode"),
        ("import signal\nstop = signal.SIGKILL", "signal.SIGKILL"),
        ("import signal\nfor number in (signal.SIGTERM, signal.SIGHUP):\n    pass", "signal.SIGHUP"),
        ("import os\nos.open('a', 0, dir_fd=3)", "dir_fd="),
        ("import subprocess\nsubprocess.Popen(['a'], start_new_session=True)", "start_new_session="),
        ("PATH = '/proc/1'", "/proc/1"),
        ("def f(path='/run'):\n    pass", "/run"),
        ("class C:\n    path = f'/var/lib/{0}'", "/var/lib/"),
        ("from . import posix_lock", ".posix_lock"),
        ("from .posix_lock import lock", ".posix_lock"),
        ("from ..a import posix_lock", "..a.posix_lock"),
        ("from package.windows_lock import lock", "package.windows_lock"),
        ("import package.posix_lock", "package.posix_lock"),
        ("import sys\nif sys.platform == 'win32':\n    import fcntl", "fcntl"),
        ("import sys\nif sys.platform != 'win32':\n    pass\nelse:\n    import fcntl", "fcntl"),
        ("import sys\nif sys.platform == 'win32' or f():\n    pass\nelse:\n    import winreg", "winreg"),
        ("import sys\nif sys.platform == 'linux':\n    import fcntl", "fcntl"),
        ("import sys\nassert sys.platform == 'win32'\nimport fcntl", "fcntl"),
        ("import sys\ndef f():\n    if sys.platform == 'win32':\n        g()\n    import fcntl", "fcntl"),
    ],
)
def test_use_that_one_platform_does_not_have_is_found(source: str, name: str) -> None:
    assert [use.name for use in unportable_uses_in(source)] == [name]


@pytest.mark.parametrize(
    "source",
    [
        "'''Reads /proc.'''",
        "'''/proc is not read.'''\ndef f():\n    '''/run is not read.'''",
        "import os\nos.kill(os.getpid(), 15)\nos.replace('a', 'b')",
        "PATH = '/metadata/scheduledevents'",
        "import sys\nif sys.platform == 'win32':\n    import winreg\nelse:\n    import fcntl",
        "import sys\nif sys.platform == 'win32':\n    from . import windows_a\nelse:\n    from . import posix_a",
        "import os, sys\nif sys.platform != 'win32' and f():\n    os.fork()",
        "import os, sys\ndef f():\n    if sys.platform == 'win32':\n        return 1\n    return os.getuid()",
        "import sys\ndef f():\n    if sys.platform != 'win32':\n        return\n    import winreg",
        "import sys\nassert sys.platform == 'win32'\nimport winreg",
    ],
)
def test_use_that_each_platform_of_the_code_has_is_permitted(source: str) -> None:
    assert unportable_uses_in(source) == []


def test_name_of_a_file_states_its_platform(tmp_path: Path) -> None:
    for name, uses in (("lock.py", ["fcntl"]), ("posix_lock.py", []), ("windows_lock.py", ["fcntl"])):
        (tmp_path / name).write_text("import fcntl\n", encoding="utf-8")
        assert [use.name for use in unportable_uses(tmp_path / name)] == uses
    assert unportable_uses_in("import winreg", Platform.WINDOWS) == []
    assert [use.name for use in unportable_uses_in("import winreg", Platform.POSIX)] == ["winreg"]


def test_members_that_only_posix_has_are_those_of_this_python() -> None:
    """A misspelt name would find nothing."""
    named = [name.partition(".") for name in POSIX_MEMBERS]
    assert [
        f"{module}.{member}" for module, _dot, member in named if not hasattr(importlib.import_module(module), member)
    ] == []
