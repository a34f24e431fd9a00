# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: Apache-2.0
"""Runs a step that is a function or an SLS file."""

from __future__ import annotations

import json
from typing import Any, Mapping

import salt._logging
import salt.loader
import salt.utils.state

from azure_events_steps.configuration import SLS, Step


class FunctionStep:
    """Calls functions of a minion, in a process of its own.

    It survives pickling, for a system without fork. ``opts`` is the minion's configuration with its
    grains and pillar.
    """

    def __init__(self, opts: Mapping[str, Any]) -> None:
        # a dry run of the job must not be one of the step, which would count as done
        self._opts = dict(opts, test=False)
        self._logging = salt._logging.get_logging_options_dict()

    def __call__(self, step: Step, variables: Mapping[str, str]) -> tuple[bool, str]:
        """Run the step; return whether it succeeded, and its output.

        The functions are loaded again, because connections of the job's functions belong to its process.
        An SLS file gets EVENT_ID of the variables in its pillar.
        """
        self._log_as_the_minion()
        context: dict[str, Any] = {}
        functions = salt.loader.minion_mods(self._opts, utils=salt.loader.utils(self._opts), context=context)
        if step.kind == SLS:
            pillar = dict(step.pillar, azure_events_event=variables["EVENT_ID"])
            result = functions["state.sls"](step.action, pillar=pillar, test=False, concurrent=True)
            return salt.utils.state.check_result(result), _summary(result)
        if step.action not in functions:
            return (
                False,
                f"the function {step.action} is not available: {functions.missing_fun_string(step.action)}",
            )
        result = functions[step.action](*step.args, **step.kwargs)
        failed = result is False or context.get("retcode", 0) != 0
        if isinstance(result, dict):
            failed = failed or not all(result.get(key, True) for key in ("result", "success"))
        return not failed, result if isinstance(result, str) else json.dumps(result, default=str)

    def _log_as_the_minion(self) -> None:
        """Set up logging in a process that is not a fork of the minion."""
        if self._logging and not salt._logging.get_logging_options_dict():
            salt._logging.set_logging_options_dict(self._logging)
            salt._logging.setup_logging()


def _summary(result: Any) -> str:
    """Return the states of a run that failed, or their number."""
    if not isinstance(result, dict):
        return "; ".join(map(str, result)) if isinstance(result, list) else str(result)
    failed = [
        f"{key}: {one.get('comment')}"
        for key, one in result.items()
        if isinstance(one, dict) and one.get("result") is False
    ]
    return "; ".join(failed) or f"{len(result)} states"
