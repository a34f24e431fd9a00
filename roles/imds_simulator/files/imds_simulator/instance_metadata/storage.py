# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The values of ``compute.storageProfile`` that a VM has by default (docs/reference/scheduled-events.md 3.3)."""

from __future__ import annotations

from typing import Any

from .identity import Identity


def storage_profile(vm: str, identity: Identity) -> dict[str, Any]:
    """Return the disks of the VM with the name ``vm``: one managed OS disk, and no disk for temporary data."""
    disk = f"{vm}_OsDisk_1"
    return {
        "dataDisks": [],
        "osDisk": {
            "caching": "ReadWrite",
            "createOption": "FromImage",
            "diskSizeGB": 30,
            "encryptionSettings": {"enabled": False},
            "managedDisk": {
                "id": identity.compute_provider + f"disks/{disk}",
                "storageAccountType": "Premium_LRS",
            },
            "name": disk,
            "osType": identity.os_type,
            "writeAcceleratorEnabled": False,
        },
        # in kilobytes; 0 for a size of VM without a local disk, as the default one is (reference 3.3.5)
        "resourceDisk": {"size": 0},
    }
