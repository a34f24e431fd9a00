# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""The program of a process that makes one call, for a system without fork."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import sys
from typing import NoReturn

from .results import output_end


def main() -> NoReturn:
    """Read a pickled call, step and variables from the standard input; write the result as JSON."""
    # the answer alone goes to the caller, and nothing that the call prints
    answer = os.dup(1)
    with open(os.devnull, "w", encoding="utf-8") as null, contextlib.redirect_stdout(null):
        os.dup2(null.fileno(), 1)
        try:
            # the caller, which is the parent of this process, has written it
            call, step, variables = pickle.load(sys.stdin.buffer)
            succeeded, text = call(step, variables)
        except BaseException as error:  # pylint: disable=broad-except
            succeeded, text = False, f"{type(error).__name__}: {error}"
    os.write(answer, json.dumps([bool(succeeded), output_end(text)]).encode("ascii"))
    # as in a fork, a thread that the call has left does not keep the process
    os._exit(0)
