# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's part of module maintenance_wait, which continues after a reboot or loss of the host."""

from __future__ import annotations

import contextlib
import time
import typing as t

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase

from ..module_utils.azure_scheduled_events.options import parse_option, parse_seconds
from ..plugin_utils._maintenance.controller_process import has_ended, this_run
from ..plugin_utils._maintenance.host_results import checked
from ..plugin_utils._maintenance.outcomes import CONTINUES, REMOVED
from ..plugin_utils._maintenance.wait_rules import WaitRules
from ..plugin_utils._time_limit import TimeLimitExceeded, kill_children, time_limit
from ..plugin_utils._worker_process import release_fork

# seconds between attempts to reach the host
_PAUSE = 2.0

_REMEDY = "the host stays prepared; run the maintenance again"

Result = t.Dict[str, t.Any]


class ActionModule(ActionBase):
    """The action plugin maintenance_wait."""

    _supports_check_mode = True

    def run(self, tmp: None = None, task_vars: dict[str, t.Any] | None = None) -> Result:
        """Run the module again and again until the events are over or the time is up."""
        result: Result = super().run(tmp, task_vars)
        this = this_run()
        options = dict(self._task.args, run_id=this["id"])
        attempt, grace = float(options.get("attempt", 60)), float(options.get("grace", 30))
        try:
            removed_after = parse_option("removed_after", options.pop("removed_after", 120), parse_seconds)
            patience = parse_option("timeout", options.get("timeout", 3600), parse_seconds)
        except ValueError as error:
            raise AnsibleActionFail(str(error)) from None
        rules = WaitRules(task_vars or {}, removed_after)
        release_fork()
        started = self._answered = time.monotonic()
        allowed = rules.patience(patience)
        deadline = started + allowed
        known: dict[str, Result] = {}
        while True:
            left = max(deadline - time.monotonic(), 1.0)
            seen = self._attempt(dict(options, timeout=min(left, attempt)), grace, task_vars)
            _add(known, seen.get("events", ()))
            is_last = time.monotonic() >= deadline
            silent = time.monotonic() - self._answered
            if seen["outcome"] == "unreachable" and rules.has_removed(silent, list(known.values())):
                seen = {
                    "outcome": REMOVED,
                    "msg": f"Azure has removed the VM ({seen['msg']}); remove it from the inventory",
                }
            if is_last or has_ended(this) or seen["outcome"] not in ("timeout", "unreachable"):
                break
            if seen["outcome"] == "unreachable":
                self._reset(grace)
                time.sleep(min(_PAUSE, max(deadline - time.monotonic(), 0)))
        elapsed = time.monotonic() - started
        if seen["outcome"] in ("timeout", "unreachable") and allowed < patience and elapsed >= allowed:
            seen = {"outcome": CONTINUES, "msg": rules.continues_because()}
        result.update(seen, events=list(known.values()), elapsed=round(elapsed, 1))
        if seen["outcome"] == "unreachable":
            result["msg"] = "the host could not be reached at the end of {:.0f} seconds: {}; {}".format(
                elapsed,
                seen["msg"],
                _REMEDY,
            )
        elif "obstacle" in seen:
            result["msg"] = f"the events are not over after {elapsed:.0f} seconds: {seen['obstacle']}; {_REMEDY}"
        return result

    def _attempt(self, options: Result, grace: float, task_vars: dict[str, t.Any] | None) -> Result:
        """Run the module once, and return its result, which always has an outcome."""
        name = "azure_imds.scheduled_events.maintenance_wait"
        # the temporary directory of a lost connection may no longer exist
        self._connection._shell.tmpdir = None
        try:
            with time_limit(options["timeout"] + grace):
                seen = checked(self._execute_module(module_name=name, module_args=options, task_vars=task_vars))
        except TimeLimitExceeded:
            kill_children()
            return _unreachable("the connection does not answer")
        except AnsibleError as error:
            return _unreachable(str(error))
        if not seen.get("unreachable"):
            self._answered = time.monotonic()
        if seen.get("unreachable") or "outcome" not in seen:
            # the module was killed with its connection, or could not start
            return _unreachable(f"{seen.get('msg', '')} {seen.get('module_stderr', '')}")
        return seen

    def _reset(self, limit: float) -> None:
        with contextlib.suppress(AnsibleError, AttributeError, TimeLimitExceeded), time_limit(limit):
            self._connection.reset()


def _unreachable(reason: str) -> Result:
    return {"failed": True, "outcome": "unreachable", "msg": reason.strip()}


def _add(known: dict[str, Result], events: t.Iterable[Result]) -> None:
    """Add the events of one run of the module, and keep when each was first seen started."""
    for event in events:
        key = event["event_id"].casefold()
        started = known.get(key, {}).get("started")
        known[key] = dict(event, started=started or event.get("started"))
