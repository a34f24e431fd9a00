# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages of the tests. Long ones are listed first, so that short ones fill the time beside them."""

from __future__ import annotations

from functools import partial

from tools.stage import Stage
from tools.stages import ansible_test, hosts, oldest_requests, release_checks
from tools.stages.browser import browser
from tools.stages.docs_site import docs_site
from tools.stages.eda import eda
from tools.stages.namespace import namespace
from tools.stages.pytest_stage import pytest_folder
from tools.stages.salt import guide, salt, salt_short
from tools.stages.start_pages import start_pages
from tools.stages.windows import windows

SHORT = ("-m", "short")

# `make test` runs these, in their short form where there is one
STAGES = (
    Stage(
        "salt-3008",
        "Salt 3008: functions, beacon and engine on real masters and minions, docs/salt.md as printed, faults",
        partial(salt, series=3008),
        partial(salt_short, series=3008),
    ),
    Stage(
        "maintenance",
        "the role maintenance and its playbook; controllers, hosts and connections that are lost",
        partial(pytest_folder, folder="functional/maintenance", limit=3600),
        partial(pytest_folder, folder="functional/maintenance", options=SHORT),
    ),
    Stage(
        "eda",
        "ansible-rulebook: the event source, the event filter and the rulebooks, from an event to the recovery",
        eda,
        partial(eda, options=SHORT),
    ),
    Stage(
        "hosts-role",
        "the role hook_runner on a real systemd host, from its installation to its removal",
        hosts.hosts_role,
        partial(hosts.hosts_role, options=SHORT),
    ),
    Stage(
        "hosts",
        "events on real systemd hosts through real interruptions; the role imds_simulator",
        hosts.hosts,
        partial(hosts.hosts, options=SHORT),
    ),
    Stage(
        "sanity",
        "ansible-test sanity without an ignore file, on every Python of this machine",
        ansible_test.sanity_own,
        ansible_test.sanity_short,
    ),
    Stage(
        "hook_runner",
        "the daemon: all scenarios, a kill at every commit, its process",
        partial(pytest_folder, folder="functional/hook_runner"),
        partial(pytest_folder, folder="functional/hook_runner", options=("-m", "not slow")),
    ),
    Stage(
        "scenarios",
        "events from their announcement to their end",
        partial(pytest_folder, folder="functional/scenarios"),
    ),
    Stage(
        "recipes",
        "every Ansible recipe that README, docs/ansible.md and docs/migration.md print, on real systemd hosts",
        hosts.recipes,
        partial(hosts.recipes, options=SHORT),
    ),
    Stage(
        "ready-hooks",
        "each ready hook with the workload that it prepares, on real systemd hosts",
        hosts.ready_hooks,
        partial(hosts.ready_hooks, options=SHORT),
    ),
    Stage(
        "zero-loss",
        "ready hooks lose no request and no write; `make demo-zero-loss` compares them with other handlings",
        hosts.zero_loss,
    ),
    Stage(
        "promises",
        "four hosts of one availability set through failures, by playbook, by hook runners and by Salt",
        hosts.promises,
        partial(hosts.promises, options=SHORT),
    ),
    Stage(
        "integration-newest",
        "each module against the simulator: the newest ansible-core, on the newest Python",
        ansible_test.integration_newest,
    ),
    Stage(
        "unit-ready_hooks", "the parts that all ready hooks share", partial(pytest_folder, folder="unit/ready_hooks")
    ),
    Stage("unit-hook_runner", "the parts of the daemon", partial(pytest_folder, folder="unit/hook_runner")),
    Stage(
        "chaos",
        "the maintenance playbook over real sshd, disturbed, by a few seeds; `make chaos` runs any number",
        hosts.chaos,
    ),
    Stage(
        "units",
        "tests/unit/plugins by ansible-test, on every Python of this machine",
        ansible_test.units,
        ansible_test.units_short,
    ),
    Stage(
        "readme",
        "the README's commands for a checkout, and its links as Galaxy renders them",
        partial(pytest_folder, folder="functional/readme"),
    ),
    Stage(
        "unit-simulator",
        "the simulator against docs/reference/scheduled-events.md",
        partial(pytest_folder, folder="unit/imds_simulator"),
    ),
    Stage(
        "simulator-wheel",
        "the wheel of the simulator, installed and used outside of the checkout by its oldest Python",
        partial(pytest_folder, folder="functional/simulator_wheel"),
    ),
    Stage(
        "pictures",
        "the pictures of the documentation are those of the code and of recorded runs",
        partial(pytest_folder, folder="functional/pictures"),
        partial(pytest_folder, folder="functional/pictures", options=SHORT),
    ),
    Stage(
        "start",
        "the start pages as printed, by a new user",
        start_pages,
        partial(start_pages, options=SHORT),
    ),
    Stage("browser", "the simulator's live page in a real browser", browser),
    Stage(
        "docs-site", "the site of the documentation: build, links, search and appearance in a real browser", docs_site
    ),
    Stage("namespace", "the modules and cloud-init against 169.254.169.254 itself, in a network namespace", namespace),
    Stage(
        "soak",
        "random runs of the daemon's process, by a few seeds; `make soak` runs any number",
        partial(pytest_folder, folder="labs/soak"),
    ),
    Stage(
        "fleet-simulation",
        "the hook runner and Salt's engine for a fleet in virtual time; whole: 1,000 VMs and 10,000 events of each",
        partial(pytest_folder, folder="labs/fleet_simulation", options=("-n", "2", "--dist", "worksteal"), limit=3600),
        partial(pytest_folder, folder="labs/fleet_simulation", options=SHORT),
    ),
    Stage(
        "troubleshooting",
        "docs/troubleshooting.md: each situation with real processes, its output, and the remedy",
        partial(pytest_folder, folder="functional/troubleshooting", options=("-n", "2")),
        partial(pytest_folder, folder="functional/troubleshooting", options=SHORT),
    ),
    Stage("lint", "yamllint and ansible-lint", release_checks.lint),
    Stage("transport", "the helper over real sockets", partial(pytest_folder, folder="functional/transport")),
    Stage("transport-oldest", "the same with the requests of Debian 11 and RHEL 9", oldest_requests.transport),
    Stage("galaxy", "the archive is built, and Galaxy's importer takes it", release_checks.galaxy),
    Stage(
        "unit-salt",
        "the logic of Salt's engine without Salt, and a simulated fleet",
        partial(pytest_folder, folder="unit/salt"),
    ),
    Stage("docs", "the documentation of modules and its references", release_checks.docs),
    Stage("mypy", "types", release_checks.mypy),
    Stage("unit-plugins", "the helper and the plugins", partial(pytest_folder, folder="unit/plugins")),
    Stage(
        "project",
        "rules of this repository: licences, imports, no leftovers",
        partial(pytest_folder, folder="unit/project"),
    ),
    Stage("ruff", "formatter and linter of the Python files", release_checks.ruff),
    Stage("changelog", "the changelog and its fragments", release_checks.changelog),
    Stage("workflows", "the workflows of .github, checked by actionlint", release_checks.workflows),
)

# `make test-all` runs these too
LONG = (
    Stage("hosts-others", "the role hook_runner on the oldest and the newest Debian", hosts.hosts_others),
    Stage(
        "salt-3006", "Salt 3006: functions, beacon and engine on real masters and minions", partial(salt, series=3006)
    ),
    Stage(
        "integration-oldest",
        "the oldest ansible-core of meta/runtime.yml, on the oldest Python",
        ansible_test.integration_oldest,
    ),
)

# these run only when they are named
ON_REQUEST = (
    Stage(
        "integration",
        "each module against the simulator, by the ansible-core of .venv",
        ansible_test.integration_own,
    ),
    Stage("sanity-newest", "the checks of sanity by the newest ansible-core", ansible_test.sanity_newest),
    Stage(
        "salt-3006-guide",
        "docs/salt.md as printed, and the faults, with Salt 3006",
        partial(guide, series=3006),
    ),
    # a series that is no longer supported by its vendor
    Stage("salt-3007", "as salt-3006, with Salt 3007", partial(salt, series=3007)),
    Stage(
        "windows",
        "a Windows Python under Wine: the helper, the transport, Salt's functions, and a minion of a Linux master",
        windows,
    ),
)
