# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`check` says before an event comes what would go wrong when it does, and changes nothing."""

from __future__ import annotations

import grp
import importlib.util
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from hook_runner.preflight.check import run_checks
from hook_runner.preflight.report import ERROR, INFO, WARNING, Report
from support.daemon.hook_scripts import write_program
from support.daemon.simulated_azure import Azure
from support.daemon.site import Site
from support.daemon.systemd_programs import SystemdPrograms


class Stage(Site):
    """A site whose configuration and hooks can be checked."""

    def check(self, hooks_directory: str | None = None, offline: bool = True, **config: Any) -> Report:
        self.configure(**{"policy": "documented", **config})
        before = sorted(self.folder.rglob("*"))
        report = run_checks(str(self.config), hooks_directory, offline, root=str(self.folder / "root"))
        assert sorted(self.folder.rglob("*")) == before
        # both can always be printed
        json.dumps(report.as_data())
        assert all(line.isprintable() for line in report.as_text().splitlines())
        return report


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def said(report: Report, severity: str) -> str:
    return "\n".join(f"{each.what}: {each.where}: {each.text}" for each in report.findings if each.severity == severity)


def test_all_is_well_with_a_good_configuration_and_good_hooks(stage: Stage) -> None:
    stage.hook("prepare/10-a")
    stage.hook("recover/10-a")
    report = stage.check()
    assert (said(report, ERROR), said(report, WARNING)) == ("", "")
    assert not report.has_errors()
    assert "prepare 1, emergency 0, started 0, recover 1" in said(report, INFO)
    assert "PyYAML" in said(report, INFO)
    assert report.as_text().endswith("\nall is well")
    assert report.as_data()["ok"] is True


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts units")
def test_limit_that_systemd_refuses_is_an_error(
    stage: Stage, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd = SystemdPrograms(tmp_path_factory.mktemp("host"))
    monkeypatch.setenv("PATH", f"{systemd.folder}:{os.environ['PATH']}")
    for name in ("10-a", "20-b", "30-c"):
        stage.hook(f"prepare/{name}")
    report = stage.check(hooks={"10-a": {"unit": {"MemoryMax": "lots"}}, "20-b": {"unit": {"MemoryMax": "1G"}}})
    assert said(report, ERROR).count("systemd refuses") == 1 and "MemoryMax=lots" in said(report, ERROR)
    assert "10-a" in said(report, ERROR)
    (unit,) = systemd.units()
    assert unit.startswith("azure-scheduled-events-check-") and "MemoryMax=1G" in " ".join(systemd.arguments(unit))
    systemd.set_host_state("offline")
    assert said(stage.check(hooks={"10-a": {"unit": {"MemoryMax": "lots"}}}), ERROR) == ""


def test_a_missing_configuration_is_an_error_unless_it_is_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "there is no configuration" in said(run_checks(str(tmp_path / "absent.yml"), offline=True), ERROR)
    monkeypatch.setattr("hook_runner.config.settings.DEFAULT_PATH", str(tmp_path / "absent.yml"))
    assert "the defaults hold" in said(run_checks(str(tmp_path / "absent.yml"), offline=True), INFO)


def test_each_mistake_in_the_configuration_is_a_finding_with_its_line(stage: Stage) -> None:
    report = stage.check(intervall=5, margin="soon", hooks={"10-a": {"needs": -1, "unit": {"MemoryMx": "1G"}}})
    assert [each.severity for each in report.findings] == [ERROR] * 4
    assert "config.yml:7: hooks.10-a.needs: expected 0 to 2592000" in said(report, ERROR)
    assert "config.yml:5: intervall: unknown key 'intervall'; did you mean interval?" in said(report, ERROR)


def test_configuration_that_others_can_write_is_an_error_and_the_rest_is_checked(stage: Stage) -> None:
    stage.hook("prepare/10-a", mode=0o775)
    (stage.folder / "config.yml").touch()
    (stage.folder / "config.yml").chmod(0o666)
    errors = said(stage.check(), ERROR)
    assert "config.yml is refused" in errors
    assert "10-a can be written by others" in errors


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("echo no\n", "does not begin with #!"),
        ("", "does not begin with #!"),
        ("#!\n", "names no interpreter"),
        ("#!/no/such/interpreter -x\n", "its interpreter /no/such/interpreter is missing"),
        ("#!/bin/sh\r\nexit 0\r\n", "carriage returns"),
        ("#!/usr/bin/env no-such-command\n", "env will not find no-such-command"),
        ("#!/usr/bin/env -S no-such-command -x\n", "env will not find no-such-command"),
        ("#! /etc/passwd\n", "its interpreter /etc/passwd is missing, or is not executable"),
    ],
)
def test_a_hook_that_could_not_be_started_is_an_error(stage: Stage, text: str, complaint: str) -> None:
    stage.hook("prepare/10-a", text)
    assert complaint in said(stage.check(), ERROR)


@pytest.mark.parametrize(
    "text", ["#! /bin/sh -e\n", "#!/usr/bin/env sh\n", "#!/usr/bin/env -S A=b sh -e\n", "#!/bin/sh"]
)
def test_a_hook_that_can_be_started_is_not(stage: Stage, text: str) -> None:
    stage.hook("prepare/10-a", text)
    stage.hook("prepare/20-program").write_bytes(Path("/bin/true").read_bytes())
    assert said(stage.check(), ERROR) == ""


def test_the_path_of_hooks_is_the_configured_one(stage: Stage) -> None:
    stage.hook("prepare/10-a", "#!/usr/bin/env my-tool\n")
    tool = write_program(stage.folder / "tools" / "my-tool", "")
    assert "env will not find my-tool" in said(stage.check(), ERROR)
    assert said(stage.check(environment={"PATH": f"/bin:{tool.parent}"}), ERROR) == ""


def test_file_like_a_hook_is_a_warning_and_a_leftover_is_an_info(stage: Stage) -> None:
    stage.hook("prepare/10-a", mode=0o644)
    stage.hook("prepare/10 b")
    stage.hook("prepare/10-c~")
    stage.hook("prepar/10-d")
    report = stage.check()
    assert "10-a is not a hook: it is not executable" in said(report, WARNING)
    assert "10 b is not a hook" in said(report, WARNING)
    assert "10-c~ is not a hook" in said(report, INFO)
    assert "not a stage, its files are not run; did you mean prepare?" in said(report, WARNING)
    assert not report.has_errors()


@pytest.mark.parametrize("key", ["10-darin", "prepare/10-darin"])
def test_settings_for_a_hook_that_is_not_there_are_a_warning_with_the_nearest_name(stage: Stage, key: str) -> None:
    stage.hook("prepare/10-drain")
    assert f"hooks.{key}: there is no such hook; did you mean {key.replace('darin', 'drain')}?" in said(
        stage.check(hooks={key: {"timeout": 5}}), WARNING
    )
    assert "config.yml:5: hooks." in said(stage.check(hooks={key: {"timeout": 5}}), WARNING)
    assert "hooks.10-x: there is no such hook" in said(stage.check(hooks={"10-x": {"timeout": 5}}), WARNING)
    good = {"10-drain": {"timeout": 5}, "prepare/10-drain": {"timeout": 5}}
    assert said(stage.check(hooks=good), WARNING) == ""
    assert "hooks.recover/10-drain" in said(stage.check(hooks={"recover/10-drain": {"timeout": 5}}), WARNING)


@pytest.mark.parametrize(
    "keys, key",
    [({"10-a": {"needs": 700}}, "10-a"), ({"prepare/10-a": {"needs": "6m"}, "10-a": {"timeout": 60}}, "prepare/10-a")],
)
def test_hook_that_needs_more_than_its_timeout_is_an_error(stage: Stage, keys: dict[str, Any], key: str) -> None:
    stage.hook("prepare/10-a")
    (finding,) = [each for each in stage.check(hooks=keys).findings if each.severity == ERROR]
    assert f"hooks.{key}: needs is" in finding.text and finding.where.startswith(f"{stage.folder}/config.yml:")
    assert not stage.check(hooks={"10-a": {"needs": 60, "timeout": 60}}).has_errors()


def test_policy_that_approves_nothing_is_a_warning_as_in_the_service(stage: Stage) -> None:
    assert "waits up to 15 minutes" in said(stage.check(policy="observe"), WARNING)


def test_a_policy_that_waits_for_preparation_without_hooks_is_a_warning(stage: Stage) -> None:
    policy = {"rules": [{"when": {"concerns_me": True}, "approve": "after_prepare"}]}
    assert "there is no prepare hook: it approves at once" in said(stage.check(policy=policy), WARNING)
    stage.hook("prepare/10-a")
    assert said(stage.check(policy=policy), WARNING) == ""
    assert "nothing is approved" in said(stage.check(policy=policy, dry_run=True), WARNING)


def test_approval_that_does_not_wait_for_prepare_hooks_is_a_warning(stage: Stage) -> None:
    policy = {"rules": [{"when": {}, "approve": "now"}]}
    stage.hook("recover/10-a")
    assert said(stage.check(policy=policy), WARNING) == ""
    stage.hook("prepare/10-a")
    assert "the approval does not wait for them" in said(stage.check(policy=policy), WARNING)
    assert said(stage.check(policy="documented"), WARNING) == ""


def test_prepare_hook_without_a_recover_hook_is_reported(stage: Stage) -> None:
    stage.hook("prepare/10-a")
    stage.hook("prepare/20-b")
    stage.hook("recover/20-b")
    infos = said(stage.check(), INFO)
    assert "no matching recover hook (recover/10-a)" in infos
    assert "recover/20-b" not in infos


def test_hooks_of_another_directory_are_checked_on_request(stage: Stage) -> None:
    stage.hook("prepare/10-a", "no\n")
    (stage.folder / "other" / "prepare").mkdir(parents=True)
    assert said(stage.check(str(stage.folder / "other")), ERROR) == ""
    assert "there are no hooks" in said(stage.check(str(stage.folder / "absent")), INFO)


def test_folders_that_are_not_there_yet_need_only_a_place(stage: Stage) -> None:
    report = stage.check(state_directory="/var/lib/azure-scheduled-events-absent", run_directory="/run/x-absent/y")
    assert said(report, ERROR) == ""
    severity = ERROR if os.geteuid() == 0 else WARNING
    assert "state_directory: /proc: " in said(stage.check(state_directory="/proc/x"), severity)
    (stage.folder / "file").write_text("")
    assert "run_directory: " in said(stage.check(run_directory=str(stage.folder / "file" / "x")), severity)


@pytest.mark.parametrize("name", ["state", "run"])
def test_a_folder_of_records_or_runs_that_others_can_write_is_an_error(stage: Stage, name: str) -> None:
    (stage.folder / name).mkdir()
    assert said(stage.check(), ERROR) == ""
    (stage.folder / name).chmod(0o777)
    assert f"{stage.folder / name} can be written by others" in said(stage.check(), ERROR)


@pytest.mark.parametrize("little, severity", [(10, ERROR), (4 << 20, WARNING), (1 << 30, "")])
def test_a_full_disk_is_told_before_an_event_has_to_be_written(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, little: int, severity: str
) -> None:
    real = os.statvfs

    class Room:
        def __init__(self, path: str) -> None:
            self.f_bavail, self.f_frsize, self.f_files, self.f_favail, self.f_flag = little, 1, 1, 1, real(path).f_flag

    monkeypatch.setattr(os, "statvfs", Room)
    report = stage.check()
    assert [each.severity for each in report.findings if "MiB are free" in each.text] == (
        [severity] * 2 if severity else []
    )


def test_a_group_that_is_not_there_is_an_error(stage: Stage) -> None:
    assert "there is no group no-such-group" in said(stage.check(control_group="no-such-group"), ERROR)
    assert said(stage.check(control_group=grp.getgrgid(0).gr_name), ERROR) == ""


def test_metrics_need_their_folder_and_their_library(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    errors = said(stage.check(metrics_file=str(stage.folder / "absent" / "x.prom")), ERROR)
    assert "does not exist; create it" in errors
    assert "prometheus_client is not installed" in errors
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert said(stage.check(metrics_file=str(stage.folder / "x.prom")), ERROR) == ""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "metrics_address is set, but" in said(stage.check(metrics_address="127.0.0.1:9758"), ERROR)


def test_imds_is_checked_for_the_name_and_the_events(stage: Stage, azure: Azure) -> None:
    azure.schedule("Freeze", "vm1")
    report = stage.check(offline=False, endpoint=azure.simulator.endpoints["vm1"])
    assert said(report, ERROR) == ""
    assert "it answers: this VM is vm1; events now: 1" in said(report, INFO)
    other = stage.check(offline=False, endpoint=azure.simulator.endpoints["vm1"], resource_name="vm2")
    assert "the name of this VM is vm1, but resource_name is vm2" in said(other, WARNING)


def test_an_imds_that_refuses_or_is_not_there_is_an_error(stage: Stage, azure: Azure) -> None:
    refused = stage.check(offline=False, endpoint=azure.simulator.endpoints["vm1"], api_version="2001-01-01")
    assert "supported: " in said(refused, ERROR)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        report = stage.check(offline=False, endpoint=f"http://127.0.0.1:{closed.getsockname()[1]}")
    assert "imds: http://127.0.0.1" in said(report, ERROR)


def test_an_imds_that_is_being_updated_or_does_not_answer_in_time_is_a_warning(
    stage: Stage, azure: Azure, monkeypatch: pytest.MonkeyPatch
) -> None:
    azure.fault("status", status=410, route="scheduledevents")
    report = stage.check(offline=False, endpoint=azure.simulator.endpoints["vm1"])
    assert (said(report, ERROR), "410" in said(report, WARNING)) == ("", True)
    azure.heal()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        report = stage.check(offline=False, endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.5)
    assert said(report, ERROR) == ""
    assert "Azure may be switching the service on" in said(report, WARNING)


def test_findings_are_printed_worst_last_and_without_control_characters(stage: Stage) -> None:
    stage.hook("prepare/10-a", "#!/bin/\x1b[31mred\n")
    lines = stage.check(policy="observe").as_text().splitlines()
    assert [line.split()[0] for line in lines[:-1]] == sorted(
        (line.split()[0] for line in lines[:-1]), key=("info", "warning", "error").index
    )
    assert lines[-1] == "1 error, 1 warning"


@pytest.mark.parametrize(
    "mode, error", [(0o755, ""), (0o777, "the gate go stays closed, because other users could open it")]
)
@pytest.mark.parametrize("there", [False, True])
def test_a_gate_that_others_could_open_is_an_error(stage: Stage, mode: int, error: str, there: bool) -> None:
    folder = stage.folder / "gates"
    folder.mkdir()
    if there:
        (folder / "go").touch(0o644)
    folder.chmod(mode)
    report = stage.check(gates={"go": str(folder / "go")})
    assert error in said(report, ERROR) and report.has_errors() == bool(error)


def test_a_folder_of_metrics_that_others_can_write_is_a_warning(stage: Stage) -> None:
    folder = stage.folder / "metrics"
    folder.mkdir()
    for mode, warning in ((0o755, ""), (0o777, "other users can write or replace the metrics")):
        folder.chmod(mode)
        report = stage.check(metrics_file=str(folder / "our.prom"))
        assert warning in said(report, WARNING) and ("other users can" in said(report, WARNING)) == bool(warning)
