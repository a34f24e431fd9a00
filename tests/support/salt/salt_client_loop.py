# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Calls Salt's clients without a start of Salt's command line for each. Runs in Salt's Python.

    python salt_client_loop.py CONFIG

Each line of standard input is in JSON the name of a call and its arguments: ``cmd`` and ``run_job``
of LocalClient, or ``runner``. Each line of standard output is what it returned.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import salt.client
import salt.config
import salt.runner


class Clients:
    """The clients of a master, each created at its first call."""

    def __init__(self, config: str) -> None:
        self._config = config
        self._local: Any = None
        self._runner: Any = None

    def cmd(self, **arguments: Any) -> Any:
        """Return what minions returned."""
        returned = self._local_client().cmd(**arguments)
        if not returned:
            # a client that did not find the master never finds it later
            self._local = None
        return returned

    def run_job(self, **arguments: Any) -> Any:
        """Publish a job, and return its id."""
        return self._local_client().run_job(**arguments)

    def runner(self, **arguments: Any) -> Any:
        """Return what a runner returned; raise RuntimeError if it failed."""
        self._runner = self._runner or salt.runner.RunnerClient(salt.config.client_config(self._config))
        # of an earlier call
        self._runner.context.pop("retcode", None)
        ran = self._runner.cmd(print_event=False, full_return=True, **arguments)
        if not ran["success"]:
            raise RuntimeError(ran["return"])
        return ran["return"]

    def _local_client(self) -> Any:
        self._local = self._local or salt.client.LocalClient(self._config)
        return self._local


def main() -> None:
    answers = sys.stdout
    # Salt prints messages about missing minions
    sys.stdout = sys.stderr
    clients = Clients(sys.argv[1])
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"returned": getattr(clients, name)(**arguments)}
        except Exception as error:  # pylint: disable=broad-exception-caught  # while there is no master it is one or another, by version
            clients = Clients(sys.argv[1])
            answer = {"error": repr(error)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
