# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Every example that a document prints is run by a test, or is listed here with a reason."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from support.recipes.printed import Printed, printed_in
from support.repository import REPOSITORY

DOCUMENTS = [
    path.relative_to(REPOSITORY).as_posix()
    for pattern in ("README.md", "docs/**/*.md", "roles/*/README.md")
    for path in REPOSITORY.glob(pattern)
]

# (document, language) -> the test that takes all blocks of this language from the document, and
# fails when it does not know one
WHOLE = {
    ("docs/configuration.md", "text"): "tests/hook_runner/test_documentation.py",
    ("docs/configuration.md", "yaml"): "tests/hook_runner/test_documentation.py",
    ("docs/event-driven.md", "sh"): "tests/eda/test_page.py",
    ("docs/event-driven.md", "yaml"): "tests/eda/test_page.py",
    ("docs/helper.md", "python"): "tests/project/test_docs.py",
    ("docs/hook-runner.md", "console"): "tests/hook_runner/test_documentation.py",
    ("docs/hook-runner.md", "yaml"): "tests/hook_runner/test_documentation.py",
    ("docs/hook-runner.md", "json"): "tests/hook_runner/process/test_daemon.py",
    ("docs/monitoring.md", "sh"): "tests/hosts/test_monitoring.py",
    ("docs/monitoring.md", "yaml"): "tests/hosts/test_monitoring.py",
    ("docs/policies.md", "text"): "tests/project/test_docs.py",
    ("docs/policies.md", "yaml"): "tests/project/test_docs.py",
    ("docs/ready-hooks/README.md", "sh"): "tests/ready_hooks/test_overview.py",
    ("docs/ready-hooks/README.md", "yaml"): "tests/ready_hooks/test_overview.py",
    ("docs/ready-hooks/command.md", "yaml"): "tests/ready_hooks/test_page_command.py",
    ("docs/ready-hooks/redis.md", "yaml"): "tests/ready_hooks/test_page_redis.py",
    ("docs/ready-hooks/systemd-units.md", "yaml"): "tests/ready_hooks/test_page_systemd_units.py",
    ("docs/reference/scheduled-events.md", "json"): "tests/project/test_docs.py",
    ("docs/ready-hooks/connections.md", "yaml"): "tests/ready_hooks/test_connections.py",
    ("docs/ready-hooks/connections.md", "text"): "tests/ready_hooks/test_connections.py",
    ("docs/ready-hooks/haproxy.md", "yaml"): "tests/ready_hooks/test_haproxy.py",
    ("docs/ready-hooks/haproxy.md", "haproxy"): "tests/ready_hooks/test_haproxy.py",
    ("docs/ready-hooks/health-file.md", "yaml"): "tests/ready_hooks/test_health_file.py",
    ("docs/ready-hooks/health-file.md", "nginx"): "tests/ready_hooks/test_health_file.py",
    ("docs/ready-hooks/health-file.md", "text"): "tests/ready_hooks/test_health_file.py",
    ("docs/ready-hooks/slurm.md", "yaml"): "tests/ready_hooks/test_slurm.py",
    ("docs/ready-hooks/pacemaker.md", "yaml"): "tests/ready_hooks/test_pacemaker.py",
    ("docs/ready-hooks/postgresql.md", "yaml"): "tests/ready_hooks/test_postgresql.py",
    ("docs/ready-hooks/kubernetes.md", "yaml"): "tests/ready_hooks/test_page_kubernetes.py",
    ("docs/ready-hooks/notify.md", "yaml"): "tests/ready_hooks/test_page_notify.py",
    ("docs/ready-hooks/log.md", "json"): "tests/ready_hooks/test_page_log.py",
    ("docs/ready-hooks/log.md", "sh"): "tests/ready_hooks/test_page_log.py",
    ("docs/ready-hooks/postgresql.md", "ini"): "tests/ready_hooks/test_postgresql.py",
    ("docs/ready-hooks/postgresql.md", "text"): "tests/ready_hooks/test_postgresql.py",
    ("docs/ready-hooks/log.md", "yaml"): "tests/ready_hooks/test_page_log.py",
    ("docs/salt.md", "console"): "tests/salt/guide/test_guide.py",
    ("docs/salt.md", "sh"): "tests/salt/guide/test_guide.py",
    ("docs/salt.md", "yaml"): "tests/salt/guide/test_guide.py",
    ("docs/salt-reference.md", "yaml"): "tests/project/test_salt_docs.py",
    ("docs/simulator/live-page.md", "bash"): "tests/unit/imds_simulator/control/test_page_docs.py",
    ("docs/simulator/imds-address.md", "bash"): "tests/namespace/test_imds_address_page.py",
    ("docs/simulator/imds-address.md", "yaml"): "tests/namespace/test_imds_address_page.py",
    ("docs/simulator/recordings.md", "bash"): "tests/unit/imds_simulator/recording/test_page.py",
    ("docs/simulator/recordings.md", "console"): "tests/unit/imds_simulator/recording/test_page.py",
    ("docs/simulator.md", "bash"): "tests/unit/imds_simulator/test_docs.py",
    ("docs/simulator.md", "yaml"): "tests/unit/imds_simulator/test_docs.py",
    ("docs/simulator/report.md", "bash"): "tests/unit/imds_simulator/report/test_report_docs.py",
    ("docs/simulator/report.md", "console"): "tests/unit/imds_simulator/report/test_report_docs.py",
    ("docs/simulator/report.md", "sh"): "tests/unit/imds_simulator/report/test_report_docs.py",
    ("docs/start/ansible.md", "sh"): "tests/start/test_ansible.py",
    ("docs/start/ansible.md", "text"): "tests/start/test_ansible.py",
    ("docs/start/contributing.md", "sh"): "tests/start/test_contributing.py",
    ("docs/start/contributing.md", "text"): "tests/start/test_contributing.py",
    ("docs/start/event-driven.md", "sh"): "tests/start/test_event_driven.py",
    ("docs/start/event-driven.md", "text"): "tests/start/test_event_driven.py",
    ("docs/start/one-vm.md", "sh"): "tests/start/test_one_vm.py",
    ("docs/start/one-vm.md", "text"): "tests/start/test_one_vm.py",
    ("docs/start/salt.md", "sh"): "tests/start/test_salt.py",
    ("docs/start/salt.md", "text"): "tests/start/test_salt.py",
    ("docs/start/simulator.md", "sh"): "tests/start/test_simulator.py",
    ("docs/start/simulator.md", "text"): "tests/start/test_simulator.py",
    ("docs/start/windows.md", "powershell"): "tests/start/test_windows.py",
    ("docs/start/windows.md", "sh"): "tests/start/test_windows.py",
    ("docs/start/windows.md", "text"): "tests/start/test_windows.py",
    ("docs/start/windows.md", "yaml"): "tests/windows/test_start_page.py",
    ("docs/zero-loss.md", "yaml"): "tests/demo/test_page.py",
    ("roles/ready_hooks/README.md", "yaml"): "tests/ready_hooks/test_overview.py",
}

README_TEST = "tests/readme/test_readme.py runs it in the checkout"
READS_ONLY = "shows what the service has logged or does, and changes nothing"
# examples that are too long for one line of code
INSTALL = "ansible-galaxy collection install --force .cache/collection/azure_imds-scheduled_events-0.1.0.tar.gz"
INSTALL_SIMULATOR = "pip install ./roles/imds_simulator/files"
INSTALLS_WHEEL = "tests/simulator_wheel/test_wheel.py installs its wheel"
STARTED = "serves until it is ended; tests/unit/imds_simulator/test_docs.py starts the same"
CURL_IN_EXEC = (
    "imds-simulator exec --imds-address --scenario user-reboot -- curl -fsS -H Metadata:true"
    ' "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"'
)
REHEARSAL = "python3 -m imds_simulator exec --scenario live-migration --speed 60 -- ansible-playbook rehearsal.yml"
NOTIFY = (
    "python3 -m imds_simulator --scenario user-reboot --notify-url http://127.0.0.1:5000/endpoint --notify-token secret"
)
IN_DOCKER = (
    "docker run --rm --cap-add NET_ADMIN -e IMDS_SIMULATOR_SCENARIO=user-reboot IMAGE"
    " exec --imds-address --keep-network -- ./run-tests"
)
DETACHED = (
    "docker run --detach --name imds --cap-add NET_ADMIN IMAGE exec --imds-address --keep-network -- sleep infinity"
)
NO_PASTA = "needs pasta; tests/namespace/test_imds_address_page.py runs exec with the same rights below unshare"
NO_DOCKER = "needs docker; tests/namespace/test_imds_address_page.py runs exec with the rights of such a container"
CURL_ON_WINDOWS = (
    "curl.exe --noproxy * --max-time 130 -H Metadata:true"
    ' "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"'
)
EXCHANGE_ON_WINDOWS = (
    "ansible windows -m azure_imds.scheduled_events.imds_exchange -a"
    ' \'{"url": "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01",'
    ' "headers": {"Metadata": "true"}, "timeout": 130}\''
)
REPORT = (
    "host  event                                        not before  prepared  approved  started   over      recovered"
    "  outcome    why not"
)
PLAN = "event                                        not before            hosts  wave  action   approve  why"
GET_TOKEN = (
    'export ARM_TOKEN="$(az account get-access-token --resource https://management.azure.com'
    ' --query accessToken --output tsv)"'
)
LEFT_OUT = {
    "README.md": {
        "make rehearsal": README_TEST,
        "make test": "it is running now",
        "make collection": README_TEST,
        INSTALL: README_TEST,
        "ansible-doc azure_imds.scheduled_events.event_approve": README_TEST,
        INSTALL_SIMULATOR: INSTALLS_WHEEL,
        CURL_IN_EXEC: "tests/namespace/test_imds_address_page.py runs it",
        "imds-simulator --scenario live-migration": STARTED,
    },
    "docs/hook-runner.md": {
        "#!/bin/sh": (
            "tests/hook_runner/test_documentation.py installs the hooks of hooks.d, "
            "and tests/unit/hook_runner/preflight/test_hook_checks.py runs the other one"
        ),
        "azure-scheduled-events try 10-drain --type Reboot --notice 120": (
            "tests/unit/hook_runner/preflight/test_trial.py runs the verb"
        ),
        "journalctl --unit azure-scheduled-events": READS_ONLY,
        "journalctl --unit azure-scheduled-events --priority warning": READS_ONLY,
        "journalctl AZURE_EVENT_ID=F29FDFA2-BE90-4942-94D0-E137DE9DA355": READS_ONLY,
    },
    "docs/ready-hooks/log.md": {
        "/var/log/azure-events.jsonl {": (
            "the hosts have no logrotate; tests/ready_hooks/test_log.py renames the file as logrotate does"
        ),
    },
    "docs/salt.md": {
        "# on the Windows minion": "needs Windows; tests/windows/minion starts a minion and calls its functions",
    },
    "docs/simulator.md": {
        INSTALL_SIMULATOR: INSTALLS_WHEEL,
        "imds-simulator --scenario live-migration": STARTED,
        "python3 -m venv ~/imds-simulator": "the environment is the reader's; tests/simulator_wheel has its own",
        ". ~/imds-simulator/bin/activate": "the same",
        REHEARSAL: "the playbook is the reader's; tests/recipes/test_guide.py runs one with `exec`",
        "python3 -m imds_simulator --check mine.yaml": "the file is the reader's",
        "python3 -m imds_simulator --check pool.yaml": "tests/unit/imds_simulator/test_docs.py runs it",
        NOTIFY: "tests/unit/imds_simulator/test_docs.py runs it with another port",
    },
    "docs/simulator/imds-address.md": {
        "pasta --config-net -- imds-simulator exec --imds-address --keep-network -- ./run-tests": NO_PASTA,
        "imds-simulator --scenario user-reboot --listen 169.254.169.254:80": (
            "tests/namespace/test_imds_address_page.py starts it and compares its output"
        ),
        "FROM python:3.12-slim": "needs docker; tests/simulator_wheel/test_wheel.py installs and runs the wheel",
        IN_DOCKER: NO_DOCKER,
        DETACHED: NO_DOCKER,
        "docker run --rm --network container:imds CLIENT": NO_DOCKER,
    },
    "docs/windows.md": {
        CURL_ON_WINDOWS: "needs Windows",
        "group_vars/windows.yml": "the connection is the reader's, to a host with Windows",
        "maintain-windows.yml": "tests/scenarios/test_windows_page.py runs it",
        EXCHANGE_ON_WINDOWS: "needs a host with Windows; tests/scenarios/test_windows_page.py runs the module",
    },
    "roles/hook_runner/README.md": {
        "- name: Database servers leave their cluster before Azure touches them": (
            "tests/hook_runner/test_documentation.py loads what it gives the role, "
            "and tests/recipes/test_readme.py runs the README's playbook of the same kind"
        ),
        'hook_runner_unit_overrides: "[Service]\\nReadWritePaths=/srv/journal"': (
            "tests/hosts/test_hook_runner_role.py gives the variable another value"
        ),
        "hook_runner_hook_unit_overrides: |": "tests/hosts/test_hook_runner_role.py applies it",
        "hook_runner_ready_hooks:": "tests/ready_hooks applies the lists of the pages of these hooks",
        "hook_runner_hooks:": "tests/hosts/test_hook_units.py sets the same limits",
        "systemctl status azure-scheduled-events": READS_ONLY,
        "azure-scheduled-events status": READS_ONLY,
        "azure-scheduled-events history": READS_ONLY,
        "journalctl --unit azure-scheduled-events": READS_ONLY,
    },
    "roles/maintenance/README.md": {
        REPORT: "tests/recipes/test_maintenance.py compares the table of docs/ansible.md",
        PLAN: "test_check_mode_prints_the_plan of tests/maintenance/test_maintenance_limits.py reads this table",
        "coordinate.yml": "tests/maintenance/test_maintenance_coordinate.py runs it",
        "arm.yml": "tests/maintenance/test_maintenance_arm.py runs it",
        "windows.yml": "tests/maintenance/test_maintenance_announced.py runs it",
        GET_TOKEN: "it needs a subscription of Azure",
    },
    "roles/imds_simulator/README.md": {
        "imds_simulator_listen: 10.77.0.1:80": (
            "the addresses are the reader's; tests/recipes/conftest.py has one simulator for many hosts too"
        ),
    },
}


def followed() -> set[tuple[str, str]]:
    """Document and name of all that tests/recipes follows."""
    found = set()
    for path in (REPOSITORY / "tests" / "recipes").glob("test_*.py"):
        module = importlib.import_module(f"recipes.{path.stem}")
        for test in (module, *vars(module).values()):
            marks = getattr(test, "pytestmark", [])
            for mark in marks if isinstance(marks, list) else [marks]:
                if mark.name == "follows":
                    found |= {(mark.args[0], name) for name in mark.args[1:]}
    return found


def test_each_name_that_a_recipe_follows_is_printed_once() -> None:
    names = [(printed.document, printed.name) for document in DOCUMENTS for printed in printed_in(document)]
    assert {place: names.count(place) for place in followed() if names.count(place) != 1} == {}


def is_known(printed: Printed) -> bool:
    # a block without a language is a picture
    return (
        not printed.language
        or (printed.document, printed.language) in WHOLE
        or printed.name in LEFT_OUT.get(printed.document, {})
        or (printed.document, printed.name) in followed()
    )


@pytest.mark.parametrize("document", DOCUMENTS)
def test_all_that_a_document_prints_is_run_or_left_out_for_a_reason(document: str) -> None:
    assert [printed.name for printed in printed_in(document) if not is_known(printed)] == []


def test_nothing_is_listed_that_is_not_printed() -> None:
    printed = [found for document in DOCUMENTS for found in printed_in(document)]
    names = {(found.document, found.name) for found in printed}
    assert {(document, name) for document, reasons in LEFT_OUT.items() for name in reasons} <= names
    assert followed() <= names
    assert set(WHOLE) <= {(found.document, found.language) for found in printed}
    assert all((REPOSITORY / Path(test)).is_file() for test in WHOLE.values())
