# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Runs one step in supervised processes, with a time limit.

All processes of the step end at the time limit, or when the process that requested the step exits.
Processes that the step has left running at its own end, such as a service, stay.
"""

from __future__ import annotations

import sys
import time
from typing import Mapping, Sequence

from ..configuration import Step
from .results import Call, StepResult

if sys.platform == "win32":
    from .windows_supervisor import supervise
else:
    from .posix_supervisor import supervise


def run_step(step: Step, variables: Mapping[str, str], call: Call, not_inherited: Sequence[int] = ()) -> StepResult:
    """Run the step, and wait for its end or its timeout.

    ``variables`` are environment variables of a command, added to those of this process. ``call`` runs a
    step of another kind; it is called in a process of its own, and on Windows it must survive pickling.
    ``not_inherited`` are descriptors that the step must not keep open, because its processes may stay; the
    process that ends them keeps these descriptors until then.
    """
    began = time.monotonic()
    outcome, output = supervise(step, variables, call, not_inherited)
    return StepResult(step.name, step.kind, outcome, time.monotonic() - began, output)
