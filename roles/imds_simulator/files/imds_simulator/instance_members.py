# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The members of instance metadata, with their first api-version (docs/reference/scheduled-events.md 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# version -> the members that it introduced, as the reference lists them; "[]" follows the name of a list
_COMPUTE: Mapping[str, str] = {
    "2017-04-02": "location name offer osType platformFaultDomain platformUpdateDomain publisher sku version vmId "
    "vmSize",
    "2017-08-01": "placementGroupId resourceGroupName subscriptionId tags",
    "2017-12-01": "vmScaleSetName zone",
    "2018-04-02": "plan.name plan.product plan.publisher publicKeys[].keyData publicKeys[].path",
    "2018-10-01": "azEnvironment provider",
    "2019-02-01": "customData",
    "2019-03-11": "resourceId",
    "2019-06-04": "tagsList[].name tagsList[].value",
    "2020-06-01": "isHostCompatibilityLayerVm securityProfile.secureBootEnabled securityProfile.virtualTpmEnabled",
    "2020-07-15": "osProfile.adminUsername osProfile.computerName",
    "2020-09-01": "licenseType",
    "2020-10-01": "osProfile.disablePasswordAuthentication",
    "2020-12-01": "evictionPolicy priority",
    "2021-01-01": "userData",
    "2021-03-01": "extendedLocation.name extendedLocation.type virtualMachineScaleSet.id",
    "2021-10-01": "platformSubFaultDomain",
    "2021-11-01": "additionalCapabilities.hibernationEnabled securityProfile.encryptionAtHost",
    "2021-11-15": "host.id hostGroup.id",
    "2021-12-13": "securityProfile.securityType",
    "2023-11-15": "physicalZone",
}
# DISK stands for osDisk and dataDisks[]
_STORAGE_PROFILE: Mapping[str, str] = {
    "2019-06-01": "DISK.caching DISK.createOption DISK.diffDiskSettings.option DISK.diskSizeGB "
    "DISK.encryptionSettings.enabled DISK.image.uri DISK.managedDisk.id DISK.managedDisk.storageAccountType DISK.name "
    "DISK.osType DISK.vhd.uri DISK.writeAcceleratorEnabled dataDisks[].lun imageReference.id imageReference.offer "
    "imageReference.publisher imageReference.sku imageReference.version",
    "2021-02-01": "resourceDisk.size",
    "2021-05-01": "dataDisks[].bytesPerSecondThrottle dataDisks[].diskCapacityBytes dataDisks[].isSharedDisk "
    "dataDisks[].isUltraDisk dataDisks[].opsPerSecondThrottle",
    "2021-11-01": "DISK.encryptionSettings.diskEncryptionKey.secretUrl "
    "DISK.encryptionSettings.diskEncryptionKey.sourceVault.id DISK.encryptionSettings.keyEncryptionKey.keyUrl "
    "DISK.encryptionSettings.keyEncryptionKey.sourceVault.id",
    "2023-07-01": "imageReference.communityGalleryImageId imageReference.exactVersion "
    "imageReference.sharedGalleryImageId",
}
_NETWORK: Mapping[str, str] = {
    "2017-04-02": "interface[].ipv4.ipAddress[].privateIpAddress interface[].ipv4.ipAddress[].publicIpAddress "
    "interface[].ipv4.subnet[].address interface[].ipv4.subnet[].prefix "
    "interface[].ipv6.ipAddress[].privateIpAddress interface[].macAddress",
}


def _since(object_: str, introduced: Mapping[str, str]) -> Mapping[str, str]:
    return {
        f"{object_}.{name.replace('DISK', disk)}": version
        for version, names in introduced.items()
        for name in names.split()
        for disk in ("osDisk", "dataDisks[]")
    }


# path of a value -> the version that introduced it
MEMBERS_SINCE: Mapping[str, str] = {
    **_since("compute", _COMPUTE),
    **_since("compute.storageProfile", _STORAGE_PROFILE),
    **_since("network", _NETWORK),
}


@dataclass(frozen=True)
class Member:
    """A member of instance metadata: a value, an object, or a list of objects.

    ``since`` is the first version that has it, ``members`` are those of the object, or of each item
    of the list; a value has none.
    """

    since: str
    members: Mapping[str, Member]
    is_list: bool

    @property
    def is_value(self) -> bool:
        """True if the member is neither an object nor a list."""
        return not self.members


def _tree(since: Mapping[str, str]) -> Mapping[str, Member]:
    below: dict[str, dict[str, str]] = {}
    for path, version in since.items():
        head, _dot, rest = path.partition(".")
        below.setdefault(head, {})[rest] = version
    return {
        head[:-2] if head.endswith("[]") else head: Member(
            min(rest.values()), {} if "" in rest else _tree(rest), head.endswith("[]")
        )
        for head, rest in below.items()
    }


# the members at the top: compute and network exist in all versions, possibly without members
MEMBERS: Mapping[str, Member] = {
    name: Member("", member.members, member.is_list) for name, member in _tree(MEMBERS_SINCE).items()
}
