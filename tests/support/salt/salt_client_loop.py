# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Publish jobs without a start of Salt's command line for each. Runs in Salt's Python.

    python desk.py CONFIG

Each line of standard input is the arguments of LocalClient.cmd in JSON; each line of standard
output is what the minions returned.
"""

from __future__ import annotations

import json
import sys

import salt.client


def main() -> None:
    answers = sys.stdout
    # Salt prints messages about missing minions
    sys.stdout = sys.stderr
    client = None
    for line in sys.stdin:
        try:
            client = client or salt.client.LocalClient(sys.argv[1])
            answer = {"returned": client.cmd(**json.loads(line))}
        except Exception as error:  # pylint: disable=broad-exception-caught  # while there is no master it is one or another, by version
            answer = {"error": repr(error)}
        if not answer.get("returned"):
            # a client that did not find the master never finds it later
            client = None
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
