# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""The members of instance metadata, each with the api-version that introduced it.

See docs/reference/scheduled-events.md 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_DISK: Mapping[str, str] = {
    "caching": "2019-06-01",
    "createOption": "2019-06-01",
    "diffDiskSettings.option": "2019-06-01",
    "diskSizeGB": "2019-06-01",
    "encryptionSettings.enabled": "2019-06-01",
    "encryptionSettings.diskEncryptionKey.secretUrl": "2021-11-01",
    "encryptionSettings.diskEncryptionKey.sourceVault.id": "2021-11-01",
    "encryptionSettings.keyEncryptionKey.keyUrl": "2021-11-01",
    "encryptionSettings.keyEncryptionKey.sourceVault.id": "2021-11-01",
    "image.uri": "2019-06-01",
    "managedDisk.id": "2019-06-01",
    "managedDisk.storageAccountType": "2019-06-01",
    "name": "2019-06-01",
    "osType": "2019-06-01",
    "vhd.uri": "2019-06-01",
    "writeAcceleratorEnabled": "2019-06-01",
}
_STORAGE_PROFILE: Mapping[str, str] = {
    **{f"dataDisks[].{name}": version for name, version in _DISK.items()},
    "dataDisks[].bytesPerSecondThrottle": "2021-05-01",
    "dataDisks[].diskCapacityBytes": "2021-05-01",
    "dataDisks[].isSharedDisk": "2021-05-01",
    "dataDisks[].isUltraDisk": "2021-05-01",
    "dataDisks[].lun": "2019-06-01",
    "dataDisks[].opsPerSecondThrottle": "2021-05-01",
    "imageReference.communityGalleryImageId": "2023-07-01",
    "imageReference.exactVersion": "2023-07-01",
    "imageReference.id": "2019-06-01",
    "imageReference.offer": "2019-06-01",
    "imageReference.publisher": "2019-06-01",
    "imageReference.sharedGalleryImageId": "2023-07-01",
    "imageReference.sku": "2019-06-01",
    "imageReference.version": "2019-06-01",
    **{f"osDisk.{name}": version for name, version in _DISK.items()},
    "resourceDisk.size": "2021-02-01",
}
_COMPUTE: Mapping[str, str] = {
    "additionalCapabilities.hibernationEnabled": "2021-11-01",
    "azEnvironment": "2018-10-01",
    "customData": "2019-02-01",
    "evictionPolicy": "2020-12-01",
    "extendedLocation.name": "2021-03-01",
    "extendedLocation.type": "2021-03-01",
    "host.id": "2021-11-15",
    "hostGroup.id": "2021-11-15",
    "isHostCompatibilityLayerVm": "2020-06-01",
    "licenseType": "2020-09-01",
    "location": "2017-04-02",
    "name": "2017-04-02",
    "offer": "2017-04-02",
    "osProfile.adminUsername": "2020-07-15",
    "osProfile.computerName": "2020-07-15",
    "osProfile.disablePasswordAuthentication": "2020-10-01",
    "osType": "2017-04-02",
    "physicalZone": "2023-11-15",
    "placementGroupId": "2017-08-01",
    "plan.name": "2018-04-02",
    "plan.product": "2018-04-02",
    "plan.publisher": "2018-04-02",
    "platformFaultDomain": "2017-04-02",
    "platformSubFaultDomain": "2021-10-01",
    "platformUpdateDomain": "2017-04-02",
    "priority": "2020-12-01",
    "provider": "2018-10-01",
    "publicKeys[].keyData": "2018-04-02",
    "publicKeys[].path": "2018-04-02",
    "publisher": "2017-04-02",
    "resourceGroupName": "2017-08-01",
    "resourceId": "2019-03-11",
    "securityProfile.encryptionAtHost": "2021-11-01",
    "securityProfile.secureBootEnabled": "2020-06-01",
    "securityProfile.securityType": "2021-12-13",
    "securityProfile.virtualTpmEnabled": "2020-06-01",
    "sku": "2017-04-02",
    **{f"storageProfile.{name}": version for name, version in _STORAGE_PROFILE.items()},
    "subscriptionId": "2017-08-01",
    "tags": "2017-08-01",
    "tagsList[].name": "2019-06-04",
    "tagsList[].value": "2019-06-04",
    "userData": "2021-01-01",
    "version": "2017-04-02",
    "virtualMachineScaleSet.id": "2021-03-01",
    "vmId": "2017-04-02",
    "vmScaleSetName": "2017-12-01",
    "vmSize": "2017-04-02",
    "zone": "2017-12-01",
}
_NETWORK: Mapping[str, str] = {
    "interface[].ipv4.ipAddress[].privateIpAddress": "2017-04-02",
    "interface[].ipv4.ipAddress[].publicIpAddress": "2017-04-02",
    "interface[].ipv4.subnet[].address": "2017-04-02",
    "interface[].ipv4.subnet[].prefix": "2017-04-02",
    "interface[].ipv6.ipAddress[].privateIpAddress": "2017-04-02",
    "interface[].macAddress": "2017-04-02",
}
# path of a value -> the version that introduced it; "[]" follows the name of a list
MEMBERS_SINCE: Mapping[str, str] = {
    **{f"compute.{name}": version for name, version in _COMPUTE.items()},
    **{f"network.{name}": version for name, version in _NETWORK.items()},
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
