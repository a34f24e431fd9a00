# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""config.yml: every key, and errors that name file, line, key and the nearest valid word."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from azure_scheduled_events.conditions import PolicyContext
from azure_scheduled_events.document import ScheduledEvent
from hook_runner.config import settings as settings_file
from hook_runner.config.listing import as_text, changed_keys, entries
from hook_runner.config.removed_keys import REMOVED_KEYS
from hook_runner.config.settings import KEYS, LIMITS, ConfigError, HookSettings, Settings, load_settings
from support.daemon.documents import REFERENCE, quoted, rows

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FREEZE = ScheduledEvent(
    "A", "Freeze", "Scheduled", ("vm1",), "VirtualMachine", NOW, "", "Platform", timedelta(seconds=5)
)

EVERYTHING = """
endpoint: http://169.254.169.254/
api_version: [2020-07-01, "2019-08-01"]
resource_name: vm-1
interval: 2
timeout: 5s
first_timeout: 3m
policy:
  name: mine
  rules:
  - name: short
    when: {type: freeze}
    approve: now
leader: first
takeover_after: 2m
margin: 10
kill_after: 0
when_started: finish
dry_run: true
hooks_directory: /srv/hooks.d
state_directory: /srv/state
run_directory: /run/x
control_group: adm
history_events: 20
metrics_file: /var/lib/node/x.prom
metrics_address: 127.0.0.1:9758
environment: {KUBECONFIG: /root/.kube/config}
gates: {quiet: /run/quiet}
log_level: debug
hooks:
  10-drain: {timeout: 5m, types: [reboot, Redeploy], on_failure: stop, needs: 30s}
  prepare/10-drain: {timeout: 90, rerun: false}
  recover/20-mail: {types: Freeze, on_failure: ignore}
"""


def load(tmp_path: Path, text: str, is_checked: bool = False) -> Settings:
    path = tmp_path / "config.yml"
    path.write_text(text, encoding="utf-8")
    return load_settings(str(path), is_checked)


def test_only_the_default_file_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = str(tmp_path / "absent.yml")
    with pytest.raises(ConfigError, match=r"there is no configuration .*absent\.yml"):
        load_settings(absent)
    monkeypatch.setattr(settings_file, "DEFAULT_PATH", absent)
    settings = load_settings(absent)
    assert settings == Settings()
    assert settings.policy.name == "observe"
    assert (settings.interval, settings.margin, settings.kill_after) == (1.0, 5.0, 5.0)
    assert load(tmp_path, "# nothing yet\n") == Settings()


def test_every_key_is_read(tmp_path: Path) -> None:
    settings = load(tmp_path, EVERYTHING)
    assert settings._replace(policy=Settings().policy, hooks={}, sources={}) == Settings(
        endpoint="http://169.254.169.254",
        api_version=("2020-07-01", "2019-08-01"),
        resource_name="vm-1",
        interval=2.0,
        timeout=5.0,
        first_timeout=180.0,
        leader="first",
        takeover_after=120.0,
        margin=10.0,
        kill_after=0.0,
        when_started="finish",
        dry_run=True,
        hooks_directory="/srv/hooks.d",
        state_directory="/srv/state",
        run_directory="/run/x",
        control_group="adm",
        history_events=20,
        metrics_file="/var/lib/node/x.prom",
        metrics_address="127.0.0.1:9758",
        environment={"KUBECONFIG": "/root/.kube/config"},
        gates={"quiet": "/run/quiet"},
        log_level="debug",
    )
    decision = settings.policy.decide(FREEZE, PolicyContext(NOW))
    assert decision.code is None
    assert "config.yml:11: policy.rules[0]" in decision.reason


def test_limits_are_documented() -> None:
    (cell,) = [cells[3] for cells in rows(REFERENCE, "Keys of one hook") if cells[0] == "`unit`"]
    assert tuple(word for word in quoted(cell) if word in LIMITS) == LIMITS


def test_limits_are_texts_in_the_notation_of_systemd(tmp_path: Path) -> None:
    text = "hooks: {10-a: {unit: {MemoryMax: 1G, TasksMax: 50, CPUQuota: 150%, Nice: -5}}, 20-b: {unit: {}}}\n"
    settings = load(tmp_path, text)
    expected = {"MemoryMax": "1G", "TasksMax": "50", "CPUQuota": "150%", "Nice": "-5"}
    assert (settings.hook("prepare", "10-a").unit, settings.hook("prepare", "20-b").unit) == (expected, {})


def test_a_hooks_settings_are_those_of_its_name_and_then_those_of_its_stage(tmp_path: Path) -> None:
    settings = load(tmp_path, EVERYTHING)
    assert settings.hook("prepare", "10-drain") == HookSettings(90.0, ("Reboot", "Redeploy"), "stop", 30.0, False)
    assert settings.hook("recover", "10-drain") == HookSettings(300.0, ("Reboot", "Redeploy"), "stop", 0.0, True)
    assert settings.hook("recover", "20-mail") == HookSettings(600.0, ("Freeze",), "ignore", 0.0, True)
    assert settings.hook("started", "20-mail") == HookSettings(600.0)


def test_a_policy_may_be_the_name_of_a_preset(tmp_path: Path) -> None:
    assert load(tmp_path, "policy: documented\n").policy.name == "documented"
    assert load(tmp_path, "policy: {preset: documented}\n").policy.name == "documented"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("margin: 1\nintervall: 2\n", "2: intervall: unknown key 'intervall'; did you mean interval?"),
        ("margin: 1\nmargin: 2\n", "2: the key 'margin' is repeated"),
        ("interval: 0.1\n", "1: interval: expected 0.2 to 60 seconds, not 0.1"),
        ("interval:\n", "1: interval: expected seconds"),
        ("endpoint: https://x\n", "1: endpoint: 'https://x' is not an address of IMDS"),
        ("endpoint: auto\n", "1: endpoint: 'auto' is not an address of IMDS; expected http://HOST or http://HOST:PORT"),
        ("api_version: latest\n", "1: api_version: expected an api-version such as 2020-07-01"),
        ("resource_name: 17\n", "1: resource_name: expected a text, not 17; put a text that YAML reads as another"),
        ('resource_name: "a\\nb"\n', "1: resource_name: 'a\\nb' has control characters"),
        ("leader: frist\n", "1: leader: unknown value 'frist'; did you mean first?"),
        ("dry_run: 1\n", "1: dry_run: expected true or false, not 1"),
        ("state_directory: state\n", "1: state_directory: expected an absolute path, not 'state'"),
        (f"run_directory: /{'x' * 94}\n", "1: run_directory: expected at most 94 bytes, because sockets are"),
        ("metrics_address: 9758\n", "1: metrics_address: expected a text, not 9758"),
        ("metrics_address: localhost:9758\n", "1: metrics_address: expected an address and a port"),
        ("metrics_address: 0.0.0.0:9758\n", "1: metrics_address: 0.0.0.0 is not an address of the loopback interface"),
        ("metrics_address: 127.0.0.1:0\n", "1: metrics_address: port: expected a whole number, 1 to 65535"),
        (f"metrics_address: 127.0.0.1:{'9' * 5000}\n", "1: metrics_address: port: expected a whole number"),
        ("history_events: 1.5\n", "1: history_events: expected a whole number, 1 to 100000, not 1.5"),
        ("environment:\n  EVENT_X: x\n", "2: environment.EVENT_X: EVENT_X: the service sets variables that begin with"),
        ("environment: {HOOK_X: x}\n", "1: environment.HOOK_X: HOOK_X: the service sets variables that begin with"),
        ('environment: {A: "a\\0b"}\n', "1: environment.A: 'a\\x00b' has control characters"),
        ('environment: {A: "\\ud800"}\n', "1: environment.A: '\\ud800' has control characters or surrogates"),
        ("environment: {A-B: x}\n", "1: environment.A-B: 'A-B' cannot be the name of a variable"),
        ("gates: {quiet: quiet}\n", "1: gates.quiet: expected an absolute path"),
        ("policy: observed\n", "1: policy: unknown policy 'observed'; did you mean observe?"),
        ("policy:\n  rules:\n  - when: {tipe: 1}\n", "3: policy.rules[0].when.tipe: unknown key 'tipe'; did you mean"),
        ("policy: {}\n", "1: policy: expected either preset or rules"),
        ("policy: []\n", "1: policy: expected a preset's name or a mapping with rules, not a list"),
        ("policy:\n", "1: policy: it is empty; write some of the keys name, preset, rules"),
        ("hooks: [10-x]\n", "1: hooks: expected a mapping of keys, not ['10-x']"),
        ("hooks:\n  10-x:\n    types: [Rebot]\n", "3: hooks.10-x.types: unknown event type 'Rebot'; did you mean"),
        ("hooks:\n  Prepare/10-x: {}\n", "2: hooks.Prepare/10-x: unknown stage 'Prepare'; did you mean prepare?"),
        ("hooks:\n  .hidden: {}\n", "2: hooks..hidden: '.hidden' cannot be the name of a hook"),
        ("hooks:\n  10: {}\n", "2: hooks[10]: expected a text, not 10"),
        ("hooks:\n  recover/10-x:\n    needs: 5\n", "3: hooks.recover/10-x.needs: only hooks of stage prepare"),
        (
            "hooks: {10-x: {unit: {MemoryMx: 1G}}}\n",
            "1: hooks.10-x.unit.MemoryMx: unknown key 'MemoryMx'; did you mean",
        ),
        ('hooks: {10-x: {unit: {Nice: "1\\n[x]"}}}\n', "1: hooks.10-x.unit.Nice: expected a text or a number"),
        ("hooks: {10-x: {unit: {Nice: true}}}\n", "1: hooks.10-x.unit.Nice: expected a text or a number, not True"),
        ("hooks: {10-x: {unit: {Nice: [1]}}}\n", "1: hooks.10-x.unit.Nice: expected a text or a number, not [1]"),
        ("interval: [\n", "2: not YAML"),
        ("---\n", "2: it is empty; write keys with their values, or remove it"),
        ("interval: &a [*a]\n", "1: an alias refers to this value"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    (problem,) = raised.value.problems
    assert problem.startswith(f"{tmp_path}/config.yml:{complaint}")


def test_each_key_is_listed_with_value_default_and_source(tmp_path: Path) -> None:
    text = "interval: 2\npolicy: documented\nhooks:\n  10-drain:\n    timeout: 5m\n    types: Freeze\n"
    path = tmp_path / "config.yml"
    path.write_text(text)
    found = {each.key: each[1:] for each in entries(load_settings(str(path)))}
    assert list(found)[:-2] == [key for key in KEYS if key != "hooks"]
    assert found["interval"] == (2.0, 1.0, f"{path}:1")
    assert found["policy"] == ("documented", "observe", f"{path}:2")
    assert found["margin"] == (5.0, 5.0, "default")
    assert found["hooks.10-drain.timeout"] == (300.0, 600.0, f"{path}:5")
    assert found["hooks.10-drain.types"] == (["Freeze"], [], f"{path}:6")
    lines = as_text(entries(load_settings(str(path)))).splitlines()
    assert len(lines) == len(found) + 1 and lines[4].split() == ["interval", "2.0", "1.0", f"{path}:1"]


def test_keys_that_differ_from_their_defaults_are_one_line_without_the_values_of_variables(tmp_path: Path) -> None:
    settings = load(tmp_path, "margin: 5\ninterval: 2\nenvironment: {TOKEN: secret}\nhooks: {10-a: {persists: true}}\n")
    assert changed_keys(settings) == 'interval 2.0, environment {"TOKEN": "..."}, hooks.10-a.persists true'
    assert changed_keys(Settings()) == ""
    assert {each.source for each in entries(Settings())} == {"default"}


def test_a_configuration_that_is_no_text_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "config.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(str(tmp_path / "config.yml"))
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(str(tmp_path))


def test_a_configuration_that_others_can_write_is_refused(tmp_path: Path) -> None:
    assert load(tmp_path, "policy: documented\n", is_checked=True).policy.name == "documented"
    (tmp_path / "config.yml").chmod(0o666)
    with pytest.raises(ConfigError, match="config.yml is refused: .*config.yml can be written by others"):
        load_settings(str(tmp_path / "config.yml"), is_checked=True)
    assert load_settings(str(tmp_path / "config.yml")).policy.name == "documented"


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "elsewhere.yml").write_text("interval: 2\n")
    link = tmp_path / "etc" / "config.yml"
    link.symlink_to("../elsewhere.yml")
    with pytest.raises(ConfigError, match="outside"):
        load_settings(str(link), is_checked=True)
    link.unlink()
    link.symlink_to("absent")
    with pytest.raises(ConfigError, match="cannot be"):
        load_settings(str(link))


def test_all_mistakes_are_named_in_one_error(tmp_path: Path) -> None:
    text = "push_url: https://eda\nintervall: 1\npolicy: {rules: []}\nhooks:\n  10-x: {needs: no, rerun: 1}\ndry_run: 2"
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    config = tmp_path / "config.yml"
    assert [problem.split(": ")[:2] for problem in raised.value.problems] == [
        [f"{config}:1", "push_url"],
        [f"{config}:2", "intervall"],
        [f"{config}:3", "policy.rules"],
        [f"{config}:5", "hooks.10-x.needs"],
        [f"{config}:5", "hooks.10-x.rerun"],
        [f"{config}:6", "dry_run"],
    ]
    assert str(raised.value) == "; ".join(raised.value.problems)
    assert raised.value.problems[0].endswith("push_url: no longer a key; use the ready hook notify")


def test_unknown_event_types_are_warnings_with_file_and_line(tmp_path: Path) -> None:
    policy = "policy:\n  rules:\n  - when: {type: Hibernate}\n    approve: now\n"
    settings = load(tmp_path, policy + "hooks:\n  10-x:\n    types: [Freeze, Relocate]\n")
    assert [text.split(" is unknown")[0] for text in settings.warnings()] == [
        f"{tmp_path}/config.yml:3: policy.rules[0].when.type: event type 'Hibernate'",
        f"{tmp_path}/config.yml:7: hooks.10-x.types: event type 'Relocate'",
    ]


def test_no_removed_key_is_a_key() -> None:
    assert not set(REMOVED_KEYS) & set(KEYS)
