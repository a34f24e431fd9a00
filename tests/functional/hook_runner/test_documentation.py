# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Hooks, configuration and commands of docs/hook-runner.md have the effects and output that it shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hook_runner.config.settings import ConfigError, load_settings
from support.daemon.documents import GUIDE, REFERENCE, blocks, column, dialogues, section, shape
from support.daemon.machine_driver import Driver, event, hook
from support.daemon.simulated_azure import Azure
from support.repository import REPOSITORY
from support.troubleshooting.daemon_host import DaemonHost

HOOKS = [block for block in blocks(GUIDE, "sh") if block.startswith("#!") and "\n# hooks.d/" in block]
CONFIG = next(block for block in blocks(GUIDE, "yaml") if "20-checkpoint" in block)
READY = "/var/www/health/ready"

# stand in for the commands of the documented hooks: one connection is open at first, and each call
# is noted
_STAND_IN = '#!/bin/sh\necho "${0##*/} $*" >> %(calls)s\n'
_CONNECTIONS = _STAND_IN + "test -e %(calls)s.seen || echo 'a connection'\ntouch %(calls)s.seen\n"


@pytest.fixture
def host(azure: Azure, tmp_path: Path) -> Iterator[DaemonHost]:
    """A VM with the files of the guide."""
    made = DaemonHost(tmp_path, azure.simulator.endpoints["vm1"])
    made.places["/var/www/health"] = str(tmp_path / "www")
    made.page_config = CONFIG
    made.write(READY, "")
    for name in ("curl", "runuser", "ss"):
        text = (_CONNECTIONS if name == "ss" else _STAND_IN) % {"calls": tmp_path / "calls"}
        made.write(f"/usr/local/bin/{name}", text, 0o755)
    for text in HOOKS:
        (name,) = re.findall(r"^# (hooks\.d/\S+):", text, re.MULTILINE)
        made.write(f"/etc/azure-scheduled-events/{name}", text, 0o755)
    made.write_config()
    yield made
    made.stop()


def test_the_guide_from_its_beginning_to_its_end(azure: Azure, host: DaemonHost) -> None:
    shown = iter(dialogues(GUIDE))
    ready = Path(host.moved(READY))

    def see(exit_code: int, event_id: str = "") -> None:
        """Check that the next command in the guide has the output in the guide."""
        command, output = next(shown)
        if event_id:
            command = re.sub(r"[0-9A-F]{8}-[-0-9A-F]{27}", event_id, command)
        code, text = host.run(command)
        assert (code, shape(text)) == (exit_code, shape(output)), text

    def wait_until_logged(text: str, times: int = 1) -> None:
        host.wait(lambda: host.log().count(text) >= times)

    see(0)  # check
    assert host.run("azure-scheduled-events status")[0] == 3
    host.start()
    about = "Virtual machine is going to be restarted as requested by authorized user."
    reboot = azure.schedule("Reboot", "vm1", source="User", description=about)
    wait_until_logged("approved: ")
    assert not ready.exists()
    assert [line for line in (host.folder / "calls").read_text().splitlines() if line.startswith("runuser")] == [
        "runuser -u postgres -- psql -qXc CHECKPOINT"
    ]
    see(0)  # status
    check_status(host.status())
    azure.advance(2)
    wait_until_logged(" started: ")
    azure.complete(reboot)
    wait_until_logged("closed: ")
    assert ready.exists()
    host.run("azure-scheduled-events status")  # answered when the end is on the disk, which the log has before
    see(0)  # history
    see(0, reboot)  # history of the event
    check_history(json.loads(host.run("azure-scheduled-events history --json")[1]))
    freeze = azure.schedule("Freeze", "vm1", "vm2")
    wait_until_logged("hook-ended: prepare/10-drain ok", times=2)
    see(1, freeze)  # approve
    see(0, freeze)  # approve --release-others
    host.wait(lambda: azure.status(freeze) != "Scheduled" or host.event(freeze).get("approval") == "accepted")
    see(4)  # approve of nothing
    assert next(shown, None) is None


def check_status(status: dict[str, Any]) -> None:
    """Check that the members are those of the tables."""
    heading = "Status as JSON"
    assert set(status) == set(column(GUIDE, heading, "member")) and status["running"] is True
    assert set(status["maintenance"]) == set(column(GUIDE, heading, "member of `maintenance`"))
    (listed,) = status["events"]
    # the table names the module for the others
    assert set(listed) - set(event().as_dict()) == set(column(GUIDE, heading, "member of an event")) - {"event_info"}
    text = section(GUIDE, heading)
    assert not {name for run in status["maintenance"]["hooks"] for name in run if f"`{name}`" not in text}
    assert not {
        name for part in ("imds", "records", "configuration") for name in status[part] if f"`{name}`" not in text
    }


def check_history(history: list[dict[str, Any]]) -> None:
    """Check that the members are those of the text and of the table."""
    (maintenance,) = history
    assert set(maintenance) == set(column(GUIDE, "History as JSON", "member"))
    text = section(GUIDE, "Status as JSON") + section(GUIDE, "History as JSON")
    parts = [*maintenance["hooks"], *maintenance["timeline"], *maintenance["events"]]
    assert not {name for part in parts for name in part if f"`{name}`" not in text and name not in event().as_dict()}


@pytest.mark.parametrize("text", blocks(GUIDE, "yaml") + blocks(REFERENCE, "yaml"))
def test_a_configuration_that_is_shown_is_one(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yml"
    path.write_text(text)
    assert load_settings(str(path)).policy.name


def test_what_the_readme_of_the_role_gives_the_role_is_a_configuration(tmp_path: Path) -> None:
    """As the role puts it together: the policy, and the settings of each hook."""
    texts = [
        text
        for text in blocks((REPOSITORY / "roles/hook_runner/README.md").read_text(), "yaml")
        if "role: azure_imds.scheduled_events.hook_runner" in text
    ]
    assert texts
    for text in texts:
        (given,) = [role["vars"] for play in yaml.safe_load(text) for role in play["roles"]]
        settings = {
            f"{hook['stage']}/{hook['name']}": hook["settings"]
            for hook in given["hook_runner_hooks"]
            if "settings" in hook
        }
        path = tmp_path / "config.yml"
        path.write_text(yaml.safe_dump({"policy": given["hook_runner_policy"], "hooks": settings}))
        assert load_settings(str(path)).policy.may_approve() and settings


def test_documented_mistake_is_reported_as_shown(tmp_path: Path) -> None:
    (shown,) = blocks(REFERENCE, "text")
    path = tmp_path / "config.yml"
    path.write_text("hooks:\n  10-drain: {timout: 5m}\n")
    with pytest.raises(ConfigError) as caught:
        load_settings(str(path))
    assert str(caught.value).replace(str(tmp_path) + "/", "") == shown.strip()


def test_documented_answer_to_a_waiting_approval_is_that_of_the_daemon() -> None:
    (documented,) = re.findall(r"the second answer is `([^`]+)`", section(GUIDE, "Approval"))
    vm = Driver(hook("prepare/10-a"))
    vm.read(event(vms=["vm1", "vm2"]))
    answer = vm.ask(release_others=True)
    assert (answer.accepted, answer.text) == (True, documented)
