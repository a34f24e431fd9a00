# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The role hook_runner on a real host, from nothing to nothing. The tests go on from each other, in the order of this file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hook_runner.config.settings import RESTART_ONLY_SETTINGS
from support.hosts.lab import Lab
from support.hosts.patience import until
from support.hosts.role_host import COMMAND, HOOK, SERVICE, Azure, Site, azure_of
from support.hosts.role_host import HOOKS as ALL_HOOKS

README = Path(__file__).resolve().parents[2] / "roles" / "hook_runner" / "README.md"
LIBRARY = "/usr/local/lib/azure-scheduled-events"
JOURNAL = "/var/lib/azure-scheduled-events"
HOOKS_FOLDER = "/etc/azure-scheduled-events/hooks.d"
GROUP = "azure-scheduled-events"
STATUS_GROUP = "azure-scheduled-events-status"
NEW_CONFIGURATION, NEW_PACKAGE, PLACED = (
    ["Lay out the configuration"],
    "Look for what is new in the package",
    "Put it in its place",
)
RESTART, RELOAD = "Restart the hook runner", "Reload the hook runner"
# two are enough here
HOOKS = [hook for hook in ALL_HOOKS if hook["stage"] in ("prepare", "recover")]


@pytest.fixture(scope="module")
def site(lab: Lab, folder: Path) -> Site:
    return Site(lab.host("role"), folder, HOOKS)


@pytest.fixture(scope="module", autouse=True)
def azure(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azure]:
    with azure_of({site.host.name: site.host}, tmp_path_factory.mktemp("azure")) as made:
        yield made


def changed(hooks: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{**hook, "content": hook["content"] + "# changed\n"} for hook in hooks]


def installed(site: Site) -> list[str]:
    found = site.host.run(
        ["find", "/etc", "/usr/local", "/var/lib", "/run", "-name", "*azure-scheduled-events*"]
    ).stdout.split()
    return sorted(found)


def test_check_mode_on_a_fresh_host_changes_nothing(site: Site) -> None:
    check = site.apply("--check", "--diff", install_packages=True)
    assert check.status == 0, check.text
    assert check.changed > 0
    assert installed(site) == []


def test_first_run_installs_and_starts(site: Site) -> None:
    first = site.apply(install_packages=True)
    assert first.status == 0, first.text
    assert "waits up to 15 minutes for an approval" in first.text
    assert (site.unit("UnitFileState"), site.unit("Type"), site.unit("WatchdogUSec")) == ("enabled", "notify", "1min")
    until(lambda: site.unit("ActiveState") == "active", "it is ready", site.said)
    assert site.watches()
    assert site.unit("StatusText") != ""
    assert site.host.run(["systemctl", "is-system-running"]).stdout == "running\n"


def test_second_run_changes_nothing(site: Site) -> None:
    process = site.process()
    second = site.apply(install_packages=True)
    assert (second.status, second.changed_tasks, second.changed) == (0, [], 0), second.text
    assert site.process() == process


def test_package_is_what_the_collection_has_and_no_more(site: Site) -> None:
    laid = site.host.run(
        ["find", LIBRARY, "-type", "f", "-not", "-path", "*/__pycache__/*", "-printf", "%P %m %u\n"]
    ).stdout.splitlines()
    repository = README.parents[2]
    folders = (
        repository / "roles/hook_runner/files/hook_runner",
        repository / "plugins/module_utils/azure_scheduled_events",
    )
    assert sorted(laid) == sorted(
        f"{file.relative_to(folder.parent)} 644 root" for folder in folders for file in folder.rglob("*.py")
    )


def test_unit_is_understood_by_systemd(site: Site) -> None:
    assert site.host.run(["systemd-analyze", "verify", SERVICE]).stderr == ""


def test_exposure_is_as_the_readme_says(site: Site) -> None:
    told = re.search(r"`systemd-analyze security` calls it (\d+\.\d) on Debian 12", README.read_text(encoding="utf-8"))
    assert told is not None
    assert exposure(site) == told[1] and float(told[1]) <= 3.0


def exposure(site: Site) -> str:
    said = site.host.run(["systemd-analyze", "security", "--no-pager", SERVICE]).stdout
    found = re.search(r"Overall exposure level for \S+: (\d+\.\d)", said)
    assert found, said
    return found[1]


def test_check_mode_shows_what_would_change(site: Site) -> None:
    before = site.process()
    check = site.must_apply("--check", "--diff", hooks=changed(HOOKS), config={"interval": 0.3})
    assert "+interval: 0.3" in check.text and "+# changed" in check.text, check.text
    assert site.host.run(["grep", "-r", "changed", "/etc/azure-scheduled-events"], check=False).stdout == ""
    assert site.process() == before
    assert not [path for path in installed(site) if path.startswith("/etc/azure-scheduled-events.")]


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
        (
            {"hooks": [{"stage": "prepair", "name": "10-mark", "content": HOOK}]},
            ["must be one of: prepare, emergency, started, recover, got: prepair"],
        ),
        ({"hooks": [{"stage": "prepare", "name": "../10", "content": HOOK}]}, ["a name such as 10-drain"]),
        ({"hooks": [{"stage": "prepare", "name": "10-mark"}]}, ["Give each hook one of src"]),
        ({"python": "/usr/bin/python2"}, ["python2"]),
    ],
)
def test_what_cannot_be_is_refused_and_the_service_goes_on(
    site: Site, variables: dict[str, Any], said: list[str]
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


def test_changed_hooks_and_policy_are_taken_without_a_restart(site: Site) -> None:
    process = site.process()
    applied = site.must_apply(hooks=changed(HOOKS), policy="documented")
    assert applied.changed_tasks == [*NEW_CONFIGURATION, "Lay out the hooks", PLACED, RELOAD], applied.text
    until(lambda: site.status().get("policy") == "documented", "it takes it", site.said)
    assert site.process() == process


def test_bad_configuration_of_an_administrator_does_not_get_through_a_reload(site: Site) -> None:
    process = site.process()
    site.host.run(["sh", "-c", "echo 'no_such_key: [' >>/etc/azure-scheduled-events/config.yml"])
    assert site.host.run(["systemctl", "reload", SERVICE], check=False).returncode != 0
    assert (site.process(), site.unit("ActiveState")) == (process, "active")


def test_setting_that_only_a_restart_changes_gets_its_restart(site: Site) -> None:
    process = site.process()
    applied = site.must_apply(hooks=changed(HOOKS), config={"interval": 0.3})
    assert applied.changed_tasks == [*NEW_CONFIGURATION, PLACED, RESTART], applied.text
    until(lambda: site.process() not in (process, "0"), "it is started again", site.said)


def test_reload_that_got_lost_is_made_up_for(site: Site) -> None:
    # the sandbox lets the unit write there
    lost = f"{JOURNAL}/lost"
    lose = f"/bin/sh -c 'test -e {lost} || {{ touch {lost}; exit 0; }}; kill -HUP $MAINPID'"
    site.tell_unit("ExecReload=", f"ExecReload={lose}")
    site.must_apply(hooks=changed(HOOKS), config={"interval": 0.3}, policy="documented")
    status = site.status()
    site.host.run(["rm", lost])
    assert (status["policy"], status["configuration"]["differs"]) == ("documented", False)


def test_reload_that_is_always_lost_fails_the_role(site: Site) -> None:
    site.tell_unit("ExecReload=", "ExecReload=/bin/true")
    failed = site.apply(hooks=changed(HOOKS), config={"interval": 0.3})
    assert failed.status != 0 and "goes by another configuration than the host has" in failed.text, failed.text
    assert site.status()["configuration"]["changed"] == ["/etc/azure-scheduled-events/config.yml"]
    site.tell_unit()
    assert not site.status()["configuration"]["differs"]


def test_settings_that_need_a_restart_are_those_of_the_daemon() -> None:
    role = README.parent
    known = yaml.safe_load((role / "vars/main.yml").read_text(encoding="utf-8"))["hook_runner__fixed_keys"]
    assert sorted(known) == sorted(RESTART_ONLY_SETTINGS)


def test_upgrade_restarts_and_keeps_journal_and_hooks(site: Site) -> None:
    site.host.run(
        [
            "sh",
            "-c",
            f"echo '# older' >>{LIBRARY}/hook_runner/lifecycle/engine.py; touch {LIBRARY}/hook_runner/removed.py {JOURNAL}/mine",
        ]
    )
    site.host.run(["install", "-m", "0755", "/bin/true", f"{HOOKS_FOLDER}/recover/90-of-an-administrator"])
    process = site.process()
    upgraded = site.must_apply(hooks=changed(HOOKS), config={"interval": 0.3})
    assert upgraded.changed_tasks == [NEW_PACKAGE, PLACED, RESTART], upgraded.text
    until(lambda: site.process() not in (process, "0"), "it is started again", site.said)
    kept = (f"{JOURNAL}/mine", f"{JOURNAL}/journal.db", f"{HOOKS_FOLDER}/recover/90-of-an-administrator")
    assert [
        site.host.run(["test", "-e", file], check=False).returncode
        for file in (*kept, f"{LIBRARY}/hook_runner/removed.py")
    ] == [0, 0, 0, 1]


def test_hooks_of_others_are_removed_when_asked_for(site: Site) -> None:
    until(site.watches, "it watches", site.said)
    purged = site.must_apply(hooks=changed(HOOKS), config={"interval": 0.3}, purge_hooks=True)
    assert purged.changed_tasks == ["Leave out hooks", PLACED, RELOAD], purged.text
    hooks = site.host.run(["find", HOOKS_FOLDER, "-type", "f", "-printf", "%P\n"]).stdout.split()
    assert sorted(hooks) == sorted(f"{hook['stage']}/{hook['name']}" for hook in HOOKS)


def test_hooks_come_from_files_templates_and_text(site: Site, tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"\x7fELF\xff\x00not text")
    (tmp_path / "hook.j2").write_text("#!/bin/sh\necho {{ 6 * 7 }}\n")
    hooks = [
        {"stage": "prepare", "name": "20-file", "src": str(tmp_path / "program")},
        {
            "stage": "prepare",
            "name": "30-template",
            "template": str(tmp_path / "hook.j2"),
            "settings": {"timeout": "90s"},
        },
        {"stage": "prepare", "name": "10-mark", "state": "absent"},
        *HOOKS[1:],
    ]
    site.must_apply(hooks=hooks, group=GROUP)
    assert site.host.file(f"{HOOKS_FOLDER}/prepare/20-file").read_bytes() == (tmp_path / "program").read_bytes()
    assert site.host.file(f"{HOOKS_FOLDER}/prepare/30-template").read_text() == "#!/bin/sh\necho 42\n"
    assert not site.host.file(f"{HOOKS_FOLDER}/prepare/10-mark").exists()
    assert "prepare/30-template:" in site.host.file("/etc/azure-scheduled-events/config.yml").read_text()
    again = site.apply(hooks=hooks, group=GROUP)
    assert (again.status, again.changed_tasks) == (0, []), again.text


def test_only_root_and_the_groups_may_ask_and_approve(site: Site) -> None:
    site.must_apply(group=GROUP, status_group=STATUS_GROUP)
    users = "useradd --no-create-home stranger; useradd --no-create-home --groups %s member; useradd --no-create-home --groups %s monitor"
    site.host.run(["sh", "-c", users % (GROUP, STATUS_GROUP)])
    until(site.watches, "it watches", site.said)

    def tried(user: str) -> list[int]:
        words = (["status"], ["history"], ["approve", "no-such-event"])
        return [site.host.run(["runuser", "-u", user, "--", COMMAND, *verb], check=False).returncode for verb in words]

    assert tried("member") == [0, 0, 4]
    assert tried("monitor") == [0, 0, 77]
    assert tried("stranger") == [77, 77, 77]
    found = site.host.run(["find", JOURNAL, "-printf", "%f %m %u\n"]).stdout.splitlines()
    assert {line for line in found if "mine" not in line} >= {
        "azure-scheduled-events 700 root",
        "journal.db 600 root",
    }, found


def test_sick_imds_does_not_hold_up_the_role(site: Site, azure: Azure) -> None:
    azure.simulator.post("/faults", {"kind": "hang"})
    site.host.run(["sh", "-c", f"echo '# older' >>{LIBRARY}/hook_runner/lifecycle/engine.py"])
    upgraded = site.must_apply(group=GROUP)
    assert RESTART in upgraded.changed_tasks
    assert site.unit("ActiveState") == "active"
    assert not site.watches()
    azure.simulator.delete("/faults")
    until(site.watches, "it watches", site.said)


def test_overrides_of_the_service_and_of_its_hooks_are_two_things(site: Site, azure: Azure) -> None:
    recipe = re.search(r"hook_runner_hook_unit_overrides: \|\n((?:  .*\n|\n)+)", README.read_text(encoding="utf-8"))
    assert recipe is not None
    given = {"unit_overrides": "[Service]\nNice=5", "hook_unit_overrides": re.sub(r"(?m)^  ", "", recipe[1])}
    tight = site.must_apply(group=GROUP, **given)
    made = "Make the folder of what holds for the units of hooks"
    assert tight.changed_tasks[-4:] == ["Tell the service besides", made, "Describe the units of hooks", RESTART], (
        tight.text
    )
    until(site.watches, "it watches", site.said)
    assert site.unit("Nice") == "5"
    hook = f"{HOOKS_FOLDER}/prepare/50-asks"
    site.host.run(["sh", "-c", f"printf '#!/bin/sh\\ncat /proc/self/status; nice\\n' >{hook}; chmod 755 {hook}"])
    asked = site.ask("try", "50-asks")
    assert asked.returncode == 0 and "NoNewPrivs:\t1" in asked.stdout, asked
    assert asked.stdout.splitlines()[-2].endswith(": 0"), asked.stdout
    site.host.run(["rm", f"{HOOKS_FOLDER}/prepare/50-asks"])
    again = site.apply(group=GROUP, **given)
    assert (again.status, again.changed_tasks) == (0, []), again.text


def test_sandbox_can_be_left_out(site: Site) -> None:
    told = re.search(r"and (\d+\.\d) without that", README.read_text(encoding="utf-8"))
    loose = site.must_apply(group=GROUP, hardening=False)
    assert loose.changed_tasks == [
        "Describe the service",
        "Tell the service nothing besides",
        "Leave the units of hooks as they are",
        RESTART,
    ], loose.text
    until(site.watches, "it watches without", site.said)
    assert told is not None and exposure(site) == told[1]


def test_stopped_and_disabled_when_asked_for(site: Site) -> None:
    site.must_apply(service_state="stopped", service_enabled=False)
    assert (site.unit("ActiveState"), site.unit("UnitFileState")) == ("inactive", "disabled")


def test_absent_leaves_the_journal_only(site: Site) -> None:
    check = site.apply("--check", state="absent")
    assert check.status == 0 and len(installed(site)) > 3, check.text
    gone = site.must_apply(state="absent")
    assert installed(site) == [JOURNAL], gone.text
    assert (site.unit("LoadState"), site.unit("ActiveState")) == ("not-found", "inactive")
    assert [site.host.run(["getent", "group", each], check=False).returncode for each in (GROUP, STATUS_GROUP)] == [
        2,
        2,
    ]
    assert site.host.run(["pgrep", "--full", LIBRARY], check=False).stdout == ""


def test_absent_twice_changes_nothing(site: Site) -> None:
    again = site.apply(state="absent")
    assert (again.status, again.changed_tasks, again.changed) == (0, [], 0), again.text


def test_journal_goes_when_that_is_told(site: Site) -> None:
    site.must_apply(state="absent", remove_journal=True)
    assert installed(site) == []
