# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Record the hook runner of one VM: the daemon's process with its default poll interval, and hooks that sleep."""

from __future__ import annotations

import platform
import tempfile
from pathlib import Path
from typing import Any

from support.daemon.daemon_process import DaemonProcess
from support.daemon.engine_harness import EngineHarness
from support.daemon.simulated_azure import Azure
from support.wait import wait_until
from tools.pictures.time_lines.recording import Lane, Recording, lane
from tools.pictures.time_lines.runs.azure_side import EVENT, Account, azure, collection_version

VM = "vm1"
# hook -> its shell command
HOOKS = {"prepare/10-drain": "sleep 4", "prepare/20-flush": "sleep 2", "recover/10-undrain": "sleep 2"}
# the words of the daemon's timeline -> steps
STEPS = {"appeared": "seen", "approved": "approved", "started": "started", "gone": "over", "closed": "recovered"}


def record(hooks: dict[str, str] | None = None) -> Recording:
    """Run the daemon through an event and return the recording."""
    with azure(VM) as simulator, tempfile.TemporaryDirectory(prefix="recorded-") as folder:
        harness = EngineHarness(Path(folder), Azure(simulator), VM)
        daemon = DaemonProcess(harness)
        harness.configure(interval=1)
        for name, body in (HOOKS if hooks is None else hooks).items():
            harness.hook(name, body)
        try:
            daemon.start()
            event_id = simulator.post("/events", {**EVENT, "resources": [VM]})["id"]
            account = Account(simulator, event_id)
            account.wait_for_end()

            def closed() -> Any:
                (entry,) = daemon.data("history")[1]
                return entry if entry["closed_at"] else None

            entry = wait_until(closed, "the end of the recovery", explain=daemon.log, pause=0.5)
            return Recording(
                f"Hook runner: {EVENT['type']} of {VM}",
                {**collection_version(), "Python": platform.python_version()},
                account.not_before,
                (account.lane(), vm_lane(account, entry)),
            )
        finally:
            daemon.close()


def vm_lane(account: Account, entry: dict[str, Any]) -> Lane:
    """Return the lane of the VM from the daemon's history.

    The daemon's clock follows the Date of IMDS, which has whole seconds. The approval, of which both have
    the time, gives the difference of the clocks.
    """
    own = {line["what"]: account.after(line["at"]) for line in reversed(entry["timeline"])}
    late = account.seconds_of("approval", vm=VM) - own["approved"]
    steps = [(own[what] + late, step) for what, step in STEPS.items() if what in own]
    work = [
        (account.after(run["started_at"]) + late, account.after(run["ended_at"]) + late, f"{stage}/{run['hook']}")
        for stage, runs in entry["stages"].items()
        for run in runs
    ]
    prepared = max(end for _begin, end, name in work if name.startswith("prepare/"))
    return lane(VM, [*steps, (prepared, "prepared")], work)
