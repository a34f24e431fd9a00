# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verb `try`: one hook by hand, which nothing else learns of."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.daemon.daemon_process import PYTHONPATH
from support.daemon.site import SHELL, Site
from support.wait import wait_until

COMMAND = [sys.executable, "-m", "hook_runner", "try"]
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": PYTHONPATH, "LC_ALL": "C.UTF-8"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def attempt(site: Site, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "--config", str(site.config), *words]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=ENVIRONMENT, timeout=60, check=False
    )


def test_hook_runs_with_a_made_up_event_and_its_output_is_shown(site: Site) -> None:
    site.configure(environment={"POOL": "blue"})
    site.hook(
        "prepare/10-a",
        SHELL + f'cat >{site.folder}/input; echo "$EVENT_TYPE $EVENT_STATUS"; printf "$HOOK_SECONDS $POOL"\n',
    )
    done = attempt(site, "10-a", "--type", "Preempt", "--notice", "40s")
    assert done.returncode == 0, done
    given = json.loads((site.folder / "input").read_text())
    assert (given["event_type"], given["stage"], round(given["seconds_left"])) == ("Preempt", "prepare", 40)
    assert done.stdout.splitlines()[:2] == ["Preempt Scheduled", "35 blue"]
    assert done.stdout.splitlines()[2].startswith("prepare/10-a: ok, exit status 0, after ")
    assert "really runs" in done.stderr
    assert sorted(os.listdir(site.folder)) == ["config.yml", "hooks.d", "input"]


@pytest.mark.parametrize(
    "stage, expected", [("emergency", "Started -"), ("started", "Started -"), ("recover", "Started completed")]
)
def test_hook_of_another_stage_gets_what_it_would_get(site: Site, stage: str, expected: str) -> None:
    site.hook(stage + "/10-a", SHELL + 'echo "$EVENT_STATUS ${EVENT_OUTCOME:--}"\n')
    done = attempt(site, stage + "/10-a", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], found["output"]) == (0, True, expected + "\n")


@pytest.mark.parametrize("script, status", [("exit 3", 3), ("kill -KILL $$", -9)])
def test_hook_that_fails_makes_the_command_fail(site: Site, script: str, status: int) -> None:
    site.hook("prepare/10-a", SHELL + script + "\n")
    done = attempt(site, "10-a", "--json")
    assert (done.returncode, json.loads(done.stdout)["exit_status"]) == (1, status)


def test_hook_has_no_more_time_than_the_daemon_would_give_it(site: Site) -> None:
    site.configure(kill_after=0.2, hooks={"10-a": {"timeout": 1}})
    site.hook("prepare/10-a", SHELL + "sleep 60\n")
    done = attempt(site, "10-a")
    assert done.returncode == 1 and "its time limit was up" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_hook_that_others_could_write_is_refused(site: Site) -> None:
    site.hook("prepare/10-a", SHELL + f"touch {site.folder}/ran\n", 0o777)
    done = attempt(site, "10-a", "--json")
    assert done.returncode == 1 and "can be written by others" in json.loads(done.stdout)["error"]
    assert "really runs" not in done.stderr
    assert not (site.folder / "ran").exists()


@pytest.mark.parametrize("mode, found", [(0o755, True), (0o777, False)])
def test_run_directory_that_others_can_write_gets_no_files(site: Site, mode: int, found: bool) -> None:
    folder = site.folder / "run"
    folder.mkdir()
    folder.chmod(mode)
    site.hook("prepare/10-a", SHELL + f"ls {folder}\n")
    done = attempt(site, "10-a", "--json")
    assert json.loads(done.stdout)["output"].startswith("try-") == found


def test_hook_that_is_not_there_has_an_exit_status_of_its_own(site: Site) -> None:
    site.hook("recover/10-a", SHELL + ":\n")
    done = attempt(site, "10-a")
    assert done.returncode == 4 and "recover/10-a" in done.stderr
    assert attempt(site, "nowhere/10-a").returncode == 4


def test_interrupt_ends_the_hook(site: Site) -> None:
    site.configure(kill_after=0.2)
    site.hook("prepare/10-a", SHELL + f"touch {site.folder}/up\nsleep 60\n")
    command = [*COMMAND, "--config", str(site.config), "10-a"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT
    ) as process:
        wait_until((site.folder / "up").exists, "the hook")
        process.send_signal(signal.SIGINT)
        printed, _errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "it was ended early" in printed
