# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The order of imports inside of the programs: each package imports only packages of lower layers."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
HELPER = REPOSITORY / "plugins" / "module_utils" / "azure_scheduled_events"
SIMULATOR = REPOSITORY / "roles" / "imds_simulator" / "files" / "imds_simulator"
READY_HOOKS = REPOSITORY / "roles" / "ready_hooks" / "files" / "ready_hooks"
HOOK_RUNNER = REPOSITORY / "roles" / "hook_runner" / "files" / "hook_runner"

# packages and modules from the lowest to the highest; docs/architecture.md shows them. Those in one
# set do not import each other.
LAYERS: dict[Path, tuple[set[str], ...]] = {
    HOOK_RUNNER: (
        {""},
        {"records", "atomic_file", "permissions", "log", "event_ids", "known_resources"},
        {"clock"},
        {"gates"},
        {"journal"},
        {"config"},
        {"hooks"},
        {"lifecycle", "push"},
        {"preflight"},
        {"reporting"},
        {"service"},
        {"cli"},
        {"__main__"},
    ),
    SIMULATOR: (
        {""},
        {"times", "api_versions", "instance_members", "suggestions", "namespace"},
        {"moments"},
        {"scenario", "report"},
        {"model", "instance_metadata"},
        {"protocol"},
        {"server"},
        {"control"},
        {"simulator"},
        {"cli"},
        {"recording"},
        {"comparison"},
        {"replay"},
        {"__main__"},
    ),
    READY_HOOKS: ({"core"}, {"hooks"}, {"", "cli"}, {"__main__"}),
}
