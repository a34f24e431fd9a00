# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A prepare that follows another one: after a second event, a reboot, a kill, or a change of the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from ready_hooks.core.errors import HookError
from support.ready_hooks.hook_host import HookHost

# each notes the commands that change something
PROGRAMS = {
    "kubectl": """case $* in
    *get*) echo '{"kind": "Node", "metadata": {"name": "a"}}' ;;
    *) echo "$*" >>$FOLDER/changes ;;
esac""",
    "scontrol": """case $* in
    show*) printf 'NodeName=a NodeHostName=a\\n   State=IDLE\\n' ;;
    *) echo "$*" >>$FOLDER/changes ;;
esac""",
    "squeue": "",
    "crm_standby": "echo changed >>$FOLDER/changes",
}


@pytest.mark.parametrize(
    ("use", "record", "options"),
    [
        ("health-file", {"path": "/srv/ready", "before": None, "after": None}, {"path": "FOLDER/ready"}),
        ("kubernetes", {"node": "b", "cordoned": True, "reports_boot": False}, {"node": "a"}),
        ("pacemaker", {"node": "b"}, {"node": "a", "tool": "crm_standby"}),
        ("slurm", {"node": "b", "reason": "azure-scheduled-events", "boot": "", "signalled": []}, {"node": "a"}),
    ],
)
def test_preparation_of_something_else_is_refused_and_changes_nothing(
    hook_host: HookHost, use: str, record: dict[str, Any], options: dict[str, Any]
) -> None:
    """The record has one node or file; the other one would never be undone."""
    for name, script in PROGRAMS.items():
        hook_host.program(name, script)
    ready = hook_host.folder / "ready"
    ready.touch()
    options = {name: value.replace("FOLDER", str(hook_host.folder)) for name, value in options.items()}
    if use == "kubernetes":
        options["kubeconfig"] = str(ready)
    hook_host.record(use).save(record)
    with pytest.raises(HookError, match="run recover first"):
        hook_host.hook(use, **options).prepare()
    assert hook_host.record(use).load() == record
    assert ready.exists() and not (hook_host.folder / "changes").exists()
