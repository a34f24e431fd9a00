# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The pages of docs/start, and docs/simulator/ci.md, as printed, by a user without root and with an empty home."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from support.eda.rulebook import java_home
from support.other_user import AS_USER
from support.recipes.printed import fences
from support.repository import REPOSITORY
from support.simulator.report_page import ReportPage
from support.start.new_user import NAMED, default_ports, new_user
from support.start.page import follow

pytestmark = pytest.mark.all


def test_one_vm_prepares_approves_and_recovers() -> None:
    with new_user("sys.version_info >= (3, 9)") as user, default_ports():
        follow("docs/start/one-vm.md", user)
        folder = user.home / "one-vm"
        assert (folder / "ready").exists()
        assert (folder / "state" / "clean").exists()


def test_ansible_prepares_approves_and_recovers() -> None:
    with new_user("sys.version_info >= (3, 11)") as user, default_ports():
        follow("docs/start/ansible.md", user)
        assert [(user.home / "fleet" / vm / "ready").read_text() for vm in ("vm1", "vm2")] == ["yes\n", "yes\n"]


def test_event_driven_prepares_approves_and_recovers() -> None:
    if java_home() is None:
        pytest.skip("ansible-rulebook needs Java 17 or later")
    with new_user("sys.version_info >= (3, 11)") as user, default_ports():
        follow("docs/start/event-driven.md", user)
        assert [(user.home / "rulebook" / vm / "ready").read_text() for vm in ("vm1", "vm2")] == ["yes\n", "yes\n"]


def test_salt_lists_prepares_approves_and_recovers() -> None:
    # Salt needs the name of its user
    with new_user("sys.version_info >= (3, 10)", NAMED) as user, default_ports():
        follow("docs/start/salt.md", user)
        folder = user.home / "azure-salt"
        log = (folder / "simulator.log").read_text(encoding="utf-8")
        assert log.count(" approved ") == 2
        assert (folder / "serving").exists()
        # a record exists as long as a recovery is due
        assert list(folder.glob("var/cache/salt/minion/azure_events/approvals/*"))
        assert not list(folder.glob("var/cache/salt/minion/azure_events/prepared.json"))


def test_simulator_approves_meets_a_fault_and_reports() -> None:
    with new_user("sys.version_info >= (3, 9)") as user:
        follow("docs/start/simulator.md", user)
        report = ReportPage.of(user.home / "azure-handler" / "run.html")
        assert set(report.steps("vm1")) == {"seen", "approved"}
        assert any(answer["vm"] == "vm1" and answer["fault"] for answer in report.data["answers"])


def test_tests_of_a_handler_pass_by_hand_and_as_the_job_runs_them() -> None:
    blocks = fences((REPOSITORY / "docs" / "simulator" / "ci.md").read_text(encoding="utf-8"))
    (job,) = [yaml.safe_load(text)["jobs"]["test"] for language, text in blocks if language == "yaml"]
    install, *steps = [step["run"] for step in job["steps"] if "run" in step]
    by_hand = [text for language, text in blocks if language == "sh"]
    with new_user("sys.version_info >= (3, 9)") as user, user.terminal() as terminal:
        terminal.paste(f"python3 -m venv venv && . venv/bin/activate && {install}")
        output = "".join(map(terminal.paste, [*by_hand, *steps]))
    assert output.count("2 passed") == output.count("Z vm1 started patch ") == 2


def test_contributing_breaks_code_and_adds_a_test() -> None:
    breaks = "sed -i 's/if after.complete:/if True:/' plugins/module_utils/azure_scheduled_events/changes.py"
    with new_user("sys.version_info >= (3, 11)") as user:
        follow("docs/start/contributing.md", user, fails=breaks)
        changed = subprocess.run(
            ["git", "diff", "--name-only"],
            cwd=user.home / "scheduled_events",
            env=user.environment,
            capture_output=True,
            text=True,
            check=True,
            **AS_USER,
        )
        assert changed.stdout.split() == ["tests/unit/plugins/module_utils/azure_scheduled_events/test_changes.py"]
