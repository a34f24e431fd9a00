# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Run the project's tests: every stage, or those whose names are given."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from functools import partial
from pathlib import Path

from tools import ansible_test, oldest_requests, release_checks
from tools.ansible_core import newest_core, oldest_core, own_core
from tools.environment import open_workshop
from tools.hosts import chaos, hosts, hosts_others, hosts_role, recipes
from tools.maintenance import maintenance, maintenance_interrupted
from tools.namespace import namespace
from tools.pytest_stage import pytest_folder
from tools.runner import run_stages
from tools.salt import guide, salt
from tools.stage import Job, Outcome, Stage

REPOSITORY = Path(__file__).resolve().parents[1]


def sanity(job: Job) -> Outcome:
    return ansible_test.sanity(job, own_core(job.workshop))


def sanity_newest(job: Job) -> Outcome:
    return ansible_test.sanity(job, newest_core(job))


def units(job: Job) -> Outcome:
    return ansible_test.units(job, own_core(job.workshop))


def integration(job: Job) -> Outcome:
    core = own_core(job.workshop)
    return ansible_test.integration(job, core, core.targets(job.workshop.interpreters)[0])


def integration_newest(job: Job) -> Outcome:
    core = newest_core(job)
    return ansible_test.integration(job, core, core.targets(job.workshop.interpreters)[-1])


def integration_oldest(job: Job) -> Outcome:
    core = oldest_core(job)
    return ansible_test.integration(job, core, core.targets(job.workshop.interpreters)[0])


# The long ones first, so that the short ones fill the time beside them.
STAGES = (
    Stage(
        "salt-3008",
        "Salt 3008: functions, beacon and engine on real masters and minions, docs/salt.md as printed, faults",
        partial(salt, series=3008),
    ),
    Stage("sanity", "ansible-test sanity without an ignore file, on every Python that is there", sanity),
    Stage("scenarios", "events from their announcement to their end", partial(pytest_folder, folder="scenarios")),
    Stage("maintenance", "the role maintenance and its playbook", maintenance),
    Stage(
        "maintenance-interrupted",
        "the role maintenance when controllers, hosts and connections are lost",
        maintenance_interrupted,
    ),
    Stage(
        "hook_runner",
        "the daemon: all scenarios, a kill at every commit, its process",
        partial(pytest_folder, folder="hook_runner"),
    ),
    Stage("unit-hook_runner", "the parts of the daemon", partial(pytest_folder, folder="unit/hook_runner")),
    Stage(
        "hosts",
        "whole lives of events on real systemd hosts, through real interruptions; the role imds_simulator",
        hosts,
    ),
    Stage("hosts-role", "the role hook_runner on a real systemd host, from nothing to nothing", hosts_role),
    Stage("hosts-others", "the role hook_runner on the oldest and the newest Debian", hosts_others),
    Stage("recipes", "every Ansible recipe that README and docs/ansible.md print, on real systemd hosts", recipes),
    Stage(
        "chaos",
        "the maintenance playbook over real sshd, disturbed, by a few seeds; `make chaos` runs any number",
        chaos,
    ),
    Stage(
        "salt-3006", "Salt 3006: functions, beacon and engine on real masters and minions", partial(salt, series=3006)
    ),
    Stage("integration-newest", "the newest ansible-core, on the newest Python", integration_newest),
    Stage(
        "integration-oldest", "the oldest ansible-core of meta/runtime.yml, on the oldest Python", integration_oldest
    ),
    Stage("units", "tests/unit/plugins by ansible-test, on every Python that is there", units),
    Stage(
        "readme",
        "the README's commands for a checkout, and its links as Galaxy renders them",
        partial(pytest_folder, folder="readme"),
    ),
    Stage("namespace", "the modules against 169.254.169.254 itself, in a network namespace", namespace),
    Stage(
        "soak",
        "random lives of the daemon's process, by a few seeds; `make soak` runs any number",
        partial(pytest_folder, folder="soak"),
    ),
    Stage(
        "unit-simulator",
        "the simulator against docs/reference/scheduled-events.md",
        partial(pytest_folder, folder="unit/imds_simulator"),
    ),
    Stage("transport", "the helper over real sockets", partial(pytest_folder, folder="transport")),
    Stage("transport-oldest", "the same with the requests of Debian 11 and RHEL 9", oldest_requests.transport),
    Stage(
        "unit-salt",
        "the logic of Salt's engine without Salt, and a simulated fleet",
        partial(pytest_folder, folder="unit/salt"),
    ),
    Stage("unit-plugins", "the helper and the plugins", partial(pytest_folder, folder="unit/plugins")),
    Stage("lint", "yamllint and ansible-lint", release_checks.lint),
    Stage("galaxy", "the archive is built, and Galaxy's importer takes it", release_checks.galaxy),
    Stage("docs", "the documentation of modules and its references", release_checks.docs),
    Stage("mypy", "types", release_checks.mypy),
    Stage("changelog", "the changelog and its fragments", release_checks.changelog),
    Stage(
        "project", "rules of this repository: licences, imports, no leftovers", partial(pytest_folder, folder="project")
    ),
)


# Not part of the whole: they take minutes, and seldom find what the stages above do not.
ON_REQUEST = (
    Stage(
        "integration",
        "each module against the simulator, by the ansible-core for Python 3.11; only when asked for by name",
        integration,
    ),
    Stage(
        "sanity-newest", "the checks of sanity by the newest ansible-core, only when asked for by name", sanity_newest
    ),
    Stage(
        "salt-3006-guide",
        "docs/salt.md as printed, and the faults, with Salt 3006; only when asked for by name",
        partial(guide, series=3006),
    ),
    # a series that its makers no longer support
    Stage("salt-3007", "as salt-3006, with Salt 3007; only when asked for by name", partial(salt, series=3007)),
)


def main() -> int:
    names = [stage.name for stage in (*STAGES, *ON_REQUEST)]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stages", nargs="*", choices=[*names, []], metavar="STAGE", help=", ".join(names))
    side_by_side = (os.cpu_count() or 1) + 1
    parser.add_argument(
        "--jobs",
        type=int,
        default=side_by_side,
        help="how many stages run side by side (default: one more than cores, as some wait)",
    )
    parser.add_argument("--list", action="store_true", help="say what each stage shows")
    options = parser.parse_args()
    if options.list:
        for stage in sorted((*STAGES, *ON_REQUEST), key=lambda stage: stage.name):
            print(f"{stage.name:<24} {stage.promise}")
        return 0
    chosen = (
        [stage for stage in (*STAGES, *ON_REQUEST) if stage.name in options.stages] if options.stages else list(STAGES)
    )
    # what the stages have started is in sessions of its own, and would go on in the folders of the
    # next run
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run_stages(open_workshop(REPOSITORY), chosen, options.jobs)
    except KeyboardInterrupt:
        print("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
