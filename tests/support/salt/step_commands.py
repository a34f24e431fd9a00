# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Commands for the steps of a minion on Linux or Windows; those for the shell use no quotes."""

from __future__ import annotations

import sys
from pathlib import Path

WINDOWS = sys.platform == "win32"
SUCCEED = "exit 0"
# writes all environment variables, one in each line
ENVIRONMENT = "set" if WINDOWS else "env"


def variable(name: str) -> str:
    """Return the expression for an environment variable."""
    return f"%{name}%" if WINDOWS else f"${name}"


def append(text: str, file: Path) -> str:
    """Return a command for the shell that appends a line to a file."""
    return f">>{file} echo {text}"


def require(file: Path) -> str:
    """Return a command for the shell that fails unless the file exists."""
    return f"if not exist {file} exit 1" if WINDOWS else f"test -e {file}"


def shell(command: str) -> list[str]:
    """Return the command as a list that begins with the shell."""
    return ["cmd", "/c", command] if WINDOWS else ["sh", "-c", command]


def python(code: str, *arguments: object) -> list[str]:
    """Return a command that runs Python code; the arguments are ``sys.argv[1:]``."""
    return [sys.executable, "-c", code, *map(str, arguments)]


def sleep(seconds: float) -> list[str]:
    return python(f"import time; time.sleep({seconds})")


def slow_append(text: str, file: Path) -> list[str]:
    """Return a command that appends a line to a file after half a second."""
    code = "import sys, time; time.sleep(0.5); open(sys.argv[2], 'a').write(sys.argv[1] + '\\n')"
    return python(code, text, file)
