# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The verbs that do more than one request to the control API, and where each is implemented.

A verb is imported when it is used, because the verbs need different libraries.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Callable, NamedTuple

Main = Callable[[Sequence[str]], int]


class Command(NamedTuple):
    """A verb: its module, with a function ``main``, and its line in ``--help``.

    ``module`` is relative to this package; with a leading dot it is that of a package beside this one. ``main`` takes
    the arguments after the verb and returns the exit code. ``libraries`` are those that the module needs, as ``pip``
    names them.
    """

    module: str
    usage: str
    help: str
    libraries: str

    def main(self) -> Main:
        """Import the module and return its function ``main``; raise ImportError if a library is not installed."""
        found: Main = importlib.import_module(f".{self.module}", __package__).main
        return found


SERVER_LIBRARIES = "aiohttp and PyYAML"
COMMANDS: Mapping[str, Command] = {
    "exec": Command(
        "exec_command",
        "exec [OPTIONS] -- COMMAND ...",
        "run a command while a simulator serves, and return its exit code",
        SERVER_LIBRARIES,
    ),
    "record": Command(
        ".recording.record_command",
        "record [OPTIONS] --output FILE",
        "record the answers of IMDS on a VM of Azure",
        "requests",
    ),
    "replay": Command(
        ".replay.replay_command", "replay [OPTIONS] FILE", "serve a recording as the VM saw it", SERVER_LIBRARIES
    ),
    "report": Command(
        "report_command",
        "report [--output FILE]",
        "write the run of a running simulator as an HTML file with a time line",
        "Python 3.9 or later",
    ),
}


def overview() -> str:
    """Return one line for each verb, for ``--help``."""
    width = max(len(each.usage) for each in COMMANDS.values())
    return "\n".join(f"  {each.usage:{width}}  {each.help}" for each in COMMANDS.values())
