# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role hook_runner on a real host, from installation to removal; each test continues from the one before.

The host is that of test_hook_runner_events.py and test_hook_runner_imds.py, since an application of the role costs
much. pytest runs those files before this one, which changes the installation, and removes it at its end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.hosts.lab import Lab
from support.hosts.role_host import COMMAND, HOOK, HOOKS, SERVICE, Azure, RoleHost
from support.wait import wait_until

README = Path(__file__).resolve().parents[3] / "roles" / "hook_runner" / "README.md"
LIBRARY = "/usr/local/lib/azure-scheduled-events"
STATE = "/var/lib/azure-scheduled-events"
HOOKS_FOLDER = "/etc/azure-scheduled-events/hooks.d"
GROUP = "azure-scheduled-events"
STATUS_GROUP = "azure-scheduled-events-status"
NEW_CONFIGURATION, NEW_PACKAGE, INSTALLED = (
    ["Stage the configuration"],
    "Compare the installed package with that of the collection",
    "Install from staging",
)
FACTS = "/etc/ansible/facts.d/azure_scheduled_events.fact"
RESTART, RELOAD = "Restart the hook runner", "Reload the hook runner"
RELOAD_AGAIN = "Reload the daemon again, or restart it for keys that need a restart"
VM = "role"


@pytest.fixture
def site(installed: RoleHost) -> RoleHost:
    return installed


def changed(hooks: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    return [{**hook, "content": hook["content"] + "# changed\n"} for hook in hooks]


def installed_paths(site: RoleHost) -> list[str]:
    found = site.host.run(
        ["find", "/etc", "/usr/local", "/var/lib", "/run", "-name", "*azure-scheduled-events*"]
    ).stdout.split()
    return sorted(found)


@pytest.mark.all
def test_check_mode_on_a_fresh_host_changes_nothing(lab: Lab, folder: Path) -> None:
    site = RoleHost(lab.host("fresh"), folder)
    check = site.apply("--check", "--diff", install_packages=True)
    assert check.status == 0, check.text
    assert check.changed > 0
    assert installed_paths(site) == []


def test_first_run_installs_and_starts(site: RoleHost) -> None:
    first = site.first_run
    assert first is not None and first.changed > 0
    assert "waits up to 15 minutes for an approval" in first.text
    assert (site.unit("UnitFileState"), site.unit("Type"), site.unit("WatchdogUSec")) == ("enabled", "notify", "1min")
    assert site.unit("LimitNOFILE") == "4096"
    wait_until(lambda: site.unit("ActiveState") == "active", "the unit is active", site.log)
    wait_until(site.watches, "the daemon polls", site.log)
    assert site.unit("StatusText") != ""
    assert site.host.run(["systemctl", "is-system-running"]).stdout == "running\n"


def test_second_run_changes_nothing(site: RoleHost) -> None:
    process = site.process()
    second = site.apply(install_packages=True)
    assert (second.status, second.changed_tasks, second.changed) == (0, [], 0), second.text
    assert site.process() == process


@pytest.mark.all
def test_daemon_reloads_beside_an_owner_that_approves_and_check_fails(site: RoleHost) -> None:
    site.host.run(["mkdir", "-p", "/opt/cycle/jetpack"])
    assert site.ask("check").returncode == 1
    site.host.run(["systemctl", "reload", SERVICE])
    site.host.run(["rm", "-r", "/opt/cycle"])
    assert site.ask("check").returncode == 0


def test_unit_is_valid_and_its_exposure_as_the_readme_says(site: RoleHost) -> None:
    assert site.host.run(["systemd-analyze", "verify", SERVICE]).stderr == ""
    documented = re.search(
        r"`systemd-analyze security` calls it (\d+\.\d) on Debian 12", README.read_text(encoding="utf-8")
    )
    assert documented is not None
    assert exposure(site) == documented[1] and float(documented[1]) <= 3.0


def exposure(site: RoleHost) -> str:
    said = site.host.run(["systemd-analyze", "security", "--no-pager", SERVICE]).stdout
    found = re.search(r"Overall exposure level for \S+: (\d+\.\d)", said)
    assert found, said
    return found[1]


@pytest.mark.all
def test_check_mode_shows_the_changes(site: RoleHost) -> None:
    before = site.process()
    check = site.must_apply("--check", "--diff", hooks=changed(HOOKS), config={"interval": 0.3})
    assert "+interval: 0.3" in check.text and "+# changed" in check.text, check.text
    assert site.host.run(["grep", "-r", "changed", "/etc/azure-scheduled-events"], check=False).stdout == ""
    assert site.process() == before
    assert not [path for path in installed_paths(site) if path.startswith("/etc/azure-scheduled-events.")]


@pytest.mark.all
@pytest.mark.parametrize(
    "variables, said",
    [
        (
            {"config": {"intervall": 1}},
            ["/etc/azure-scheduled-events/config.yml:", "intervall", "did you mean interval?"],
        ),
        (
            {"hooks": [{"stage": "prepare", "name": "10-mark", "content": "#!/no/such/shell\n"}]},
            [f"{HOOKS_FOLDER}/prepare/10-mark", "/no/such/shell"],
        ),
        ({"hooks": [{"stage": "prepare", "name": "../10", "content": HOOK}]}, ["a name such as 10-drain"]),
        ({"hooks": [{"stage": "prepare", "name": "10-mark"}]}, ["set one of src"]),
        ({"python": "/usr/bin/python2"}, ["python2"]),
    ],
    ids=["configuration", "text of a hook", "name of a hook", "source of a hook", "Python"],
)
def test_invalid_variables_are_refused_and_the_service_continues(
    site: RoleHost, variables: dict[str, Any], said: list[str]
) -> None:
    def state() -> tuple[str, str]:
        sums = site.host.run(
            ["sh", "-c", "find /etc/azure* /usr/local/lib/azure* /etc/systemd/system -type f | sort | xargs sha256sum"]
        ).stdout
        return site.process(), sums

    before = state()
    refused = site.apply(**variables)
    text = " ".join(refused.text.replace("\\n", " ").split())
    assert refused.status != 0, refused.text
    assert [word for word in said if word not in text] == [], refused.text
    assert state() == before


@pytest.mark.all
def test_changed_hooks_and_policy_need_no_restart_and_a_lost_reload_is_repeated(site: RoleHost) -> None:
    # the sandbox allows the unit to write there
    lost = f"{STATE}/lost"
    lose = f"/bin/sh -c 'test -e {lost} || {{ touch {lost}; exit 0; }}; kill -HUP $MAINPID'"
    site.write_drop_in("ExecReload=", f"ExecReload={lose}")
    process = site.process()
    applied = site.must_apply(hooks=changed(HOOKS), policy="documented")
    assert applied.changed_tasks == [*NEW_CONFIGURATION, "Stage the hooks", INSTALLED, RELOAD, RELOAD_AGAIN], (
        applied.text
    )
    status = site.status()
    assert (status["policy"], status["configuration"]["differs"], site.process()) == ("documented", False, process)
    site.host.run(["rm", lost])


@pytest.mark.all
def test_setting_that_needs_a_restart_restarts_the_daemon(site: RoleHost) -> None:
    process = site.process()
    applied = site.must_apply(hooks=changed(HOOKS), config={"interval": 0.3})
    assert applied.changed_tasks == [*NEW_CONFIGURATION, INSTALLED, RESTART], applied.text
    wait_until(lambda: site.process() not in (process, "0"), "the daemon is restarted", site.log)


@pytest.mark.all
def test_reload_that_is_always_lost_fails_the_role(site: RoleHost) -> None:
    site.write_drop_in("ExecReload=", "ExecReload=/bin/true")
    failed = site.apply(policy="documented", hooks=changed(HOOKS), config={"interval": 0.3})
    assert failed.status != 0 and "uses another configuration than the installed one" in failed.text, failed.text
    assert site.status()["configuration"]["changed"] == ["/etc/azure-scheduled-events/config.yml"]
    site.write_drop_in()
    assert not site.status()["configuration"]["differs"]


@pytest.mark.all
def test_upgrade_restarts_keeps_records_and_hooks_and_does_not_wait_for_imds(site: RoleHost, azure: Azure) -> None:
    azure.simulator.post("/faults", {"kind": "hang"})
    older = f"echo '# older' >>{LIBRARY}/hook_runner/runner.py; touch {LIBRARY}/hook_runner/removed.py {STATE}/mine"
    site.host.run(["sh", "-c", older])
    site.host.run(["install", "-m", "0755", "/bin/true", f"{HOOKS_FOLDER}/recover/90-of-an-administrator"])
    process = site.process()
    upgraded = site.must_apply(policy="documented", hooks=changed(HOOKS), config={"interval": 0.3})
    assert upgraded.changed_tasks == [NEW_PACKAGE, INSTALLED, RESTART], upgraded.text
    assert site.process() not in (process, "0") and site.unit("ActiveState") == "active"
    assert not site.watches()
    azure.simulator.delete("/faults")
    wait_until(site.watches, "the daemon polls", site.log)
    kept = (f"{STATE}/mine", f"{STATE}/hook-runner/clean", f"{HOOKS_FOLDER}/recover/90-of-an-administrator")
    assert [
        site.host.run(["test", "-e", file], check=False).returncode
        for file in (*kept, f"{LIBRARY}/hook_runner/removed.py")
    ] == [0, 0, 0, 1]


@pytest.mark.all
def test_options_are_applied_together_and_a_second_run_changes_nothing(site: RoleHost, tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"\x7fELF\xff\x00not text")
    (tmp_path / "hook.j2").write_text("#!/bin/sh\necho {{ 6 * 7 }}\n")
    template = {"stage": "prepare", "name": "30-template", "template": str(tmp_path / "hook.j2")}
    recipe = re.search(r"hook_runner_hook_unit_overrides: \|\n((?:  .*\n|\n)+)", README.read_text(encoding="utf-8"))
    assert recipe is not None
    given: dict[str, Any] = {
        "hooks": [
            {"stage": "prepare", "name": "10-mark", "state": "absent"},
            {"stage": "prepare", "name": "20-file", "src": str(tmp_path / "program")},
            {**template, "settings": {"timeout": "90s"}},
            *HOOKS[1:],
        ],
        "purge_hooks": True,
        "facts": True,
        "group": GROUP,
        "status_group": STATUS_GROUP,
        "unit_overrides": "[Service]\nNice=5",
        "hook_unit_overrides": re.sub(r"(?m)^  ", "", recipe[1]),
    }
    site.must_apply(**given)
    again = site.apply(**given)
    assert (again.status, again.changed_tasks) == (0, []), again.text
    wait_until(site.watches, "the daemon polls", site.log)


@pytest.mark.all
def test_hooks_come_from_files_templates_and_text_and_others_are_purged(site: RoleHost) -> None:
    found = site.host.run(["find", HOOKS_FOLDER, "-type", "f", "-printf", "%P\n"]).stdout.split()
    assert sorted(found) == sorted(
        ["prepare/20-file", "prepare/30-template", *(f"{hook['stage']}/{hook['name']}" for hook in HOOKS[1:])]
    )
    assert site.host.file(f"{HOOKS_FOLDER}/prepare/20-file").read_bytes() == b"\x7fELF\xff\x00not text"
    assert site.host.file(f"{HOOKS_FOLDER}/prepare/30-template").read_text() == "#!/bin/sh\necho 42\n"
    assert "prepare/30-template:" in site.host.file("/etc/azure-scheduled-events/config.yml").read_text()


@pytest.mark.all
def test_fact_is_an_executable_of_root(site: RoleHost) -> None:
    assert site.host.run(["stat", "--format=%a %U", FACTS]).stdout.split() == ["755", "root"]
    assert json.loads(site.host.run([FACTS]).stdout)["available"] is True


@pytest.mark.all
def test_only_root_and_the_groups_may_read_the_status_and_approve(site: RoleHost) -> None:
    site.host.run(["useradd", "--no-create-home", "stranger"])
    for user, group in (("member", GROUP), ("monitor", STATUS_GROUP)):
        site.host.run(["useradd", "--no-create-home", "--groups", group, user])

    def tried(user: str) -> list[int]:
        words = (["status"], ["history"], ["approve", "no-such-event"])
        return [site.host.run(["runuser", "-u", user, "--", COMMAND, *verb], check=False).returncode for verb in words]

    assert tried("member") == [0, 0, 4]
    assert tried("monitor") == [0, 0, 77]
    assert tried("stranger") == [77, 77, 77]
    found = site.host.run(["find", STATE, "-printf", "%f %m %u\n"]).stdout.splitlines()
    assert {line for line in found if "mine" not in line} >= {
        "azure-scheduled-events 700 root",
        "hook-runner 700 root",
        "state.json 600 root",
    }, found


@pytest.mark.all
def test_unit_overrides_do_not_apply_to_hooks(site: RoleHost) -> None:
    assert site.unit("Nice") == "5"
    hook = f"{HOOKS_FOLDER}/prepare/50-asks"
    site.host.run(["sh", "-c", f"printf '#!/bin/sh\\ncat /proc/self/status; nice\\n' >{hook}; chmod 755 {hook}"])
    asked = site.ask("try", "50-asks")
    assert asked.returncode == 0 and "NoNewPrivs:\t1" in asked.stdout, asked
    assert asked.stdout.splitlines()[-2] == "0", asked.stdout
    site.host.run(["rm", hook])


@pytest.mark.all
def test_hardening_false_removes_the_sandbox_and_unset_options_what_they_installed(site: RoleHost) -> None:
    documented = re.search(r"and (\d+\.\d) without that", README.read_text(encoding="utf-8"))
    loose = site.must_apply(group=GROUP, hardening=False)
    assert loose.changed_tasks[-5:] == [
        "Install the unit file",
        "Remove the unit drop-in",
        "Remove the drop-in for units of hooks",
        "Remove the executable fact",
        RESTART,
    ], loose.text
    wait_until(site.watches, "the daemon polls without the sandbox", site.log)
    assert documented is not None and exposure(site) == documented[1]


@pytest.mark.all
def test_service_state_and_enabled_stop_and_disable_the_unit(site: RoleHost) -> None:
    # what else the removal below must remove
    site.must_apply(
        service_state="stopped",
        service_enabled=False,
        facts=True,
        restrict_imds=True,
        group=GROUP,
        status_group=STATUS_GROUP,
    )
    assert (site.unit("ActiveState"), site.unit("UnitFileState")) == ("inactive", "disabled")


def test_absent_leaves_the_records_only(site: RoleHost) -> None:
    check = site.apply("--check", state="absent")
    assert check.status == 0 and len(installed_paths(site)) > 3, check.text
    gone = site.must_apply(state="absent")
    # a test file that follows installs the role again
    site.first_run = None
    assert installed_paths(site) == [STATE], gone.text
    assert (site.unit("LoadState"), site.unit("ActiveState")) == ("not-found", "inactive")
    assert [site.host.run(["getent", "group", each], check=False).returncode for each in (GROUP, STATUS_GROUP)] == [
        2,
        2,
    ]
    assert site.host.run(["pgrep", "--full", LIBRARY], check=False).stdout == ""
    assert site.host.run(["ls", FACTS], check=False).stdout == ""
    assert "azure_scheduled_events" not in site.host.run(["nft", "list", "tables"]).stdout


@pytest.mark.all
def test_absent_again_changes_nothing_and_remove_records_removes_the_records(site: RoleHost) -> None:
    again = site.apply(state="absent")
    assert (again.status, again.changed_tasks, again.changed) == (0, [], 0), again.text
    site.must_apply(state="absent", remove_records=True)
    assert installed_paths(site) == []
