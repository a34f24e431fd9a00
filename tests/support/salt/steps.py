# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Steps of a minion: commands for Linux or Windows, and calls of functions that another process can import.

Commands for the shell use no quotes.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from azure_events_steps.configuration import Step

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


@dataclass(frozen=True)
class Returns:
    """Return a result, after something is printed."""

    succeeded: bool
    text: str

    def __call__(self, step: Step, variables: Mapping[str, str]) -> tuple[bool, str]:
        print(f"{step.name} prints \u6f22", flush=True)
        os.write(1, b"as a program does\n")
        return self.succeeded, f"{self.text} {variables['EVENT_ID']} {step.args}"


def raises(step: Step, variables: Mapping[str, str]) -> NoReturn:
    raise LookupError("why")


def hangs(step: Step, variables: Mapping[str, str]) -> NoReturn:
    while True:
        time.sleep(60)


def dies(step: Step, variables: Mapping[str, str]) -> NoReturn:
    os._exit(3)


def exits(step: Step, variables: Mapping[str, str]) -> NoReturn:
    sys.exit("why")


def leaves_a_thread(step: Step, variables: Mapping[str, str]) -> tuple[bool, str]:
    """Return while a thread goes on that a Python would wait for."""
    threading.Thread(target=time.sleep, args=(60,)).start()
    return True, "done"


def starts_a_service(step: Step, variables: Mapping[str, str]) -> tuple[bool, str]:
    """Return while a fork goes on in a session of its own; its id is in the file ``step.args[0]``."""
    service = os.fork()
    if service == 0:
        os.setsid()
        time.sleep(300)
        os._exit(0)
    Path(step.args[0]).write_text(str(service))
    return True, "done"


class Unsendable:
    """A call that has its own kind of error when it is pickled."""

    def __reduce__(self) -> NoReturn:
        raise RuntimeError("no state")

    def __call__(self, step: Step, variables: Mapping[str, str]) -> tuple[bool, str]:
        return True, "done"
