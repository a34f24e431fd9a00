# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The disk of the engine's file or of a minion is full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.own_mounts import skip_reason
from support.salt.azure import Azure
from support.salt.fleet import Fleet, running_fleet
from support.salt.full_disk import full, put_on_small_disk
from support.salt.salt_installation import SaltInstallation

pytestmark = [
    pytest.mark.all,
    pytest.mark.xdist_group("faults-disk"),
    pytest.mark.skipif(bool(skip_reason()), reason=skip_reason()),
]


@pytest.fixture(scope="module")
def running(installation: SaltInstallation) -> Iterator[Fleet]:
    with running_fleet(installation) as made:
        put_on_small_disk(made.cluster.master, made.engine_file.parent, "512k")
        put_on_small_disk(made.cluster.minions["vm2"], cache(made), "16m")
        made.cluster.kill()
        made.cluster.start()
        yield made


def cache(fleet: Fleet) -> Path:
    return Path(fleet.cluster.minions["vm2"].config["cachedir"])


def test_full_disk_of_the_engine(fleet: Fleet, azure: Azure) -> None:
    with full(fleet.cluster.master, fleet.engine_file.parent):
        event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
        fleet.wait_for_reason(event_id, "vm1", "the approval cannot be recorded", column="withheld")
        assert str(fleet.engine_file) in fleet.run("status")["problem"]
        fleet.check(event_id, 0, vm1=(1, 0), vm2=(1, 0))
    with fleet.measured("approved when there is room"):
        fleet.wait_for(event_id, "approved")
    assert fleet.run("status")["problem"] == ""
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))


def test_full_disk_of_a_minion(fleet: Fleet, azure: Azure) -> None:
    with full(fleet.cluster.minions["vm2"], cache(fleet)):
        event_id = azure.announce("vm1", "vm2", kind="Freeze", notice="4h")
        fleet.step_logs["vm1"].wait("prepare")
        fleet.wait_for_reason(event_id, "vm2", "minion vm2")
        fleet.notes.append(("measured", fleet.row(event_id, "vm2")["why_not"]))
        fleet.check(event_id, 0, vm1=(1, 0), vm2=(0, 0))
    with fleet.measured("approved when there is room"):
        fleet.wait_for(event_id, "approved")
    fleet.finish(event_id)
    fleet.check(event_id, vm1=(1, 1), vm2=(1, 1))
