# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Every example that a document prints is run by a test, or is listed here with a reason."""

from __future__ import annotations

import importlib
import re

import pytest
from markdown_it import MarkdownIt

from support.recipes.printed import Printed, fences, printed_in
from support.repository import REPOSITORY

pytestmark = pytest.mark.all

DOCUMENTS = [
    path.relative_to(REPOSITORY).as_posix()
    for pattern in (
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs/**/*.md",
        "roles/*/README.md",
        "roles/*/files/README.md",
        "tests/**/README.md",
    )
    for path in REPOSITORY.glob(pattern)
]

# (document, language) -> the test that takes all blocks of this language from the document, and
# fails when it does not know one
WHOLE = {
    ("docs/configuration.md", "text"): "tests/functional/hook_runner/test_documentation.py",
    ("docs/configuration.md", "yaml"): "tests/functional/hook_runner/test_documentation.py",
    ("docs/event-driven.md", "sh"): "tests/system/eda/test_page.py",
    ("docs/event-driven.md", "yaml"): "tests/system/eda/test_page.py",
    ("docs/helper.md", "python"): "tests/unit/project/test_docs.py",
    ("docs/hook-runner.md", "console"): "tests/functional/hook_runner/test_documentation.py",
    ("docs/hook-runner.md", "yaml"): "tests/functional/hook_runner/test_documentation.py",
    ("docs/monitoring.md", "sh"): "tests/system/hosts/test_monitoring.py",
    ("docs/monitoring.md", "yaml"): "tests/system/hosts/test_monitoring.py",
    ("docs/other-handlers.md", "sh"): "tests/functional/hook_runner/process/test_jetpack_script.py",
    ("docs/other-handlers.md", "yaml"): "tests/functional/hook_runner/process/test_jetpack_script.py",
    ("docs/policies.md", "json"): "tests/unit/project/test_docs.py",
    ("docs/policies.md", "text"): "tests/unit/project/test_docs.py",
    ("docs/policies.md", "yaml"): "tests/unit/project/test_docs.py",
    ("docs/ready-hooks/README.md", "sh"): "tests/system/ready_hooks/test_overview.py",
    ("docs/ready-hooks/README.md", "yaml"): "tests/system/ready_hooks/test_overview.py",
    ("docs/ready-hooks/command.md", "yaml"): "tests/system/ready_hooks/test_page_command.py",
    ("docs/ready-hooks/redis.md", "yaml"): "tests/system/ready_hooks/test_page_redis.py",
    ("docs/ready-hooks/systemd-units.md", "yaml"): "tests/system/ready_hooks/test_page_systemd_units.py",
    ("docs/reference/scheduled-events.md", "json"): "tests/unit/project/test_docs.py",
    ("docs/ready-hooks/connections.md", "yaml"): "tests/system/ready_hooks/test_connections.py",
    ("docs/ready-hooks/connections.md", "text"): "tests/system/ready_hooks/test_connections.py",
    ("docs/ready-hooks/haproxy.md", "yaml"): "tests/system/ready_hooks/test_haproxy.py",
    ("docs/ready-hooks/haproxy.md", "haproxy"): "tests/system/ready_hooks/test_haproxy.py",
    ("docs/ready-hooks/health-file.md", "yaml"): "tests/system/ready_hooks/test_health_file.py",
    ("docs/ready-hooks/health-file.md", "nginx"): "tests/system/ready_hooks/test_health_file.py",
    ("docs/ready-hooks/health-file.md", "text"): "tests/system/ready_hooks/test_health_file.py",
    ("docs/ready-hooks/slurm.md", "yaml"): "tests/system/ready_hooks/test_slurm.py",
    ("docs/ready-hooks/pacemaker.md", "yaml"): "tests/system/ready_hooks/test_pacemaker.py",
    ("docs/ready-hooks/postgresql.md", "yaml"): "tests/system/ready_hooks/test_postgresql.py",
    ("docs/ready-hooks/kubernetes.md", "yaml"): "tests/system/ready_hooks/test_page_kubernetes.py",
    ("docs/ready-hooks/notify.md", "yaml"): "tests/system/ready_hooks/test_page_notify.py",
    ("docs/ready-hooks/log.md", "json"): "tests/system/ready_hooks/test_page_log.py",
    ("docs/ready-hooks/log.md", "sh"): "tests/system/ready_hooks/test_page_log.py",
    ("docs/ready-hooks/postgresql.md", "ini"): "tests/system/ready_hooks/test_postgresql.py",
    ("docs/ready-hooks/postgresql.md", "text"): "tests/system/ready_hooks/test_postgresql.py",
    ("docs/ready-hooks/log.md", "yaml"): "tests/system/ready_hooks/test_page_log.py",
    ("docs/salt.md", "console"): "tests/salt/guide/test_guide.py",
    ("docs/salt.md", "sh"): "tests/salt/guide/test_guide.py",
    ("docs/salt.md", "yaml"): "tests/salt/guide/test_guide.py",
    ("docs/salt-reference.md", "yaml"): "tests/unit/project/test_salt_docs.py",
    ("docs/simulator/live-page.md", "bash"): "tests/unit/imds_simulator/control/test_page.py",
    ("docs/simulator/live-page.md", "console"): "tests/unit/imds_simulator/control/test_page.py",
    ("docs/simulator/live-page.md", "sh"): "tests/unit/imds_simulator/control/test_page.py",
    ("docs/simulator/imds-address.md", "bash"): "tests/system/namespace/test_imds_address_page.py",
    ("docs/simulator/imds-address.md", "yaml"): "tests/system/namespace/test_imds_address_page.py",
    ("docs/simulator/recordings.md", "bash"): "tests/unit/imds_simulator/recording/test_recorder.py",
    ("docs/simulator/recordings.md", "console"): "tests/unit/imds_simulator/recording/test_recorder.py",
    ("docs/simulator.md", "bash"): "tests/unit/imds_simulator/test_docs.py",
    ("docs/simulator.md", "yaml"): "tests/unit/imds_simulator/test_docs.py",
    ("docs/start/ansible.md", "sh"): "tests/functional/start/test_ansible.py",
    ("docs/start/ansible.md", "text"): "tests/functional/start/test_ansible.py",
    ("docs/start/contributing.md", "sh"): "tests/functional/start/test_contributing.py",
    ("docs/start/contributing.md", "text"): "tests/functional/start/test_contributing.py",
    ("docs/start/event-driven.md", "sh"): "tests/functional/start/test_event_driven.py",
    ("docs/start/event-driven.md", "text"): "tests/functional/start/test_event_driven.py",
    ("docs/start/one-vm.md", "sh"): "tests/functional/start/test_one_vm.py",
    ("docs/start/one-vm.md", "text"): "tests/functional/start/test_one_vm.py",
    ("docs/troubleshooting.md", "console"): "tests/functional/troubleshooting/test_page.py",
    ("docs/troubleshooting.md", "sh"): "tests/functional/troubleshooting/test_page.py",
    ("docs/troubleshooting.md", "yaml"): "tests/functional/troubleshooting/test_page.py",
    ("docs/start/salt.md", "sh"): "tests/functional/start/test_salt.py",
    ("docs/start/salt.md", "text"): "tests/functional/start/test_salt.py",
    ("docs/start/simulator.md", "sh"): "tests/functional/start/test_simulator.py",
    ("docs/start/simulator.md", "text"): "tests/functional/start/test_simulator.py",
    ("docs/start/windows.md", "powershell"): "tests/functional/start/test_windows.py",
    ("docs/start/windows.md", "sh"): "tests/functional/start/test_windows.py",
    ("docs/start/windows.md", "text"): "tests/functional/start/test_windows.py",
    ("docs/start/windows.md", "yaml"): "tests/system/windows/test_start_page.py",
    ("docs/zero-loss.md", "yaml"): "tests/labs/demo/test_zero_loss.py",
    ("roles/ready_hooks/README.md", "yaml"): "tests/system/ready_hooks/test_overview.py",
}

USERS_OF_IMDS = (
    "timeout 60 sh -c 'while :; do ss -Htne dst 169.254.169.254; done' | grep -o 'uid:[0-9]*' | sort | uniq -c"
)
READS_ONLY = "shows what the service has logged or does, and changes nothing"
# examples that are too long for one line of code
INSTALL = "ansible-galaxy collection install --force .cache/collection/azure_imds-scheduled_events-0.1.0.tar.gz"
INSTALL_SIMULATOR = "pip install ./roles/imds_simulator/files"
INSTALLS_WHEEL = "tests/functional/simulator_wheel/test_wheel.py installs its wheel"
CHAOS = "takes up to hours; tests/labs/chaos/test_chaos.py runs a few seeds"
SOAK = "takes up to an hour; tests/labs/soak/test_soak.py runs a few seeds"
NAMESPACES = "PYTHONPATH=tests .venv/bin/python -m support.hosts.namespaces"
RELEASE = (
    "PATH=$PWD/.venv/bin:$PATH antsibull-changelog release"
    " --update-existing --reload-plugins --refresh-plugins prevent-removal"
)
SALT_CLUSTER = (
    'with simulated({"web": {"vms": {"vm1": {}}}}) as azure,'
    " cluster(SaltInstallation.at(environments.salt(3008))) as here:"
)
SALT_SESSION = "the session salt(3008) does the same"
SALT_LOOP = "it takes long; the session salt(3008) runs these tests once"
VERBS_OF_GUIDE = "tests/unit/imds_simulator/test_docs.py runs these verbs as docs/simulator.md prints them"
STARTED = "serves until it is ended; tests/unit/imds_simulator/test_docs.py starts the same"
REHEARSAL = "python3 -m imds_simulator exec --scenario live-migration --speed 60 -- ansible-playbook rehearsal.yml"
IN_DOCKER = (
    "docker run --rm --cap-add NET_ADMIN -e IMDS_SIMULATOR_SCENARIO=user-reboot IMAGE"
    " exec --imds-address --keep-network -- ./run-tests"
)
DETACHED = (
    "docker run --detach --name imds --cap-add NET_ADMIN IMAGE exec --imds-address --keep-network -- sleep infinity"
)
NO_DOCKER = (
    "needs docker; tests/system/namespace/test_imds_address_page.py runs exec with the rights of such a container"
)
CURL_ON_WINDOWS = (
    "curl.exe --noproxy * --max-time 130 -H Metadata:true"
    ' "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"'
)
EXCHANGE_ON_WINDOWS = (
    "ansible windows -m azure_imds.scheduled_events.imds_exchange -a"
    ' \'{"url": "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01",'
    ' "headers": {"Metadata": "true"}, "timeout": 130}\''
)
IMDS_ADDRESS_TEST = "tests/system/namespace/test_imds_address_page.py"
REPORT = (
    "host  event                                        not before  prepared  approved  started   over      recovered"
    "  outcome    why not"
)
PLAN = "event                                        not before            hosts  wave  action   approve  why"
GET_TOKEN = (
    'export ARM_TOKEN="$(az account get-access-token --resource https://management.azure.com'
    ' --query accessToken --output tsv)"'
)
AZURE_APPROVES = (
    "az vm update --resource-group RG --name VM"
    " --enable-user-reboot-scheduled-events true --enable-user-redeploy-scheduled-events true"
)
NEEDS_AZURE = "it needs a subscription of Azure"
# document -> name -> the test that takes it from the document and runs it
BY_NAME = {
    "README.md": {
        "make rehearsal": "tests/functional/readme/test_readme.py",
        "make collection": "tests/functional/readme/test_readme.py",
        INSTALL: "tests/functional/readme/test_readme.py",
        "# /srv/pillar/azure.sls": "tests/functional/readme/test_readme.py",
        "# /etc/salt/master.d/azure.conf": "tests/functional/readme/test_readme.py",
    },
    "docs/simulator.md": {
        "python3 -m imds_simulator --check pool.yaml": "tests/unit/imds_simulator/test_docs.py",
    },
    "docs/simulator/imds-address.md": {
        "imds-simulator --scenario user-reboot --listen 169.254.169.254:80": IMDS_ADDRESS_TEST,
    },
    "docs/windows.md": {"maintain-windows.yml": "tests/functional/scenarios/test_windows_page.py"},
    "roles/maintenance/README.md": {
        "coordinate.yml": "tests/functional/maintenance/test_maintenance_coordinate.py",
        "arm.yml": "tests/functional/maintenance/test_maintenance_arm.py",
        "windows.yml": "tests/functional/maintenance/test_maintenance_announced.py",
    },
}

# document -> name -> the reason why no test runs it as it is printed
LEFT_OUT = {
    "CONTRIBUTING.md": {
        "make venv": "it made the environment of this test",
        "make lint": "the lane beside the one of this test",
        "make test": "it runs this test",
        "make test-all": "it runs this test",
        "make docs": "tests/functional/docs_site/test_build.py builds the site",
        ".venv/bin/nox -s unit -- tests/unit/plugins -k policy": "the session runs this test",
        ".venv/bin/python -m pytest tests/unit/hook_runner/maintenance": "the lane of this test runs these tests",
        RELEASE: "it removes the fragments; the lane lint checks them",
        ".venv/bin/nox -l": "it lists the sessions, and runs none",
    },
    "docs/hook-runner.md": {
        "#!/bin/sh": (
            "tests/functional/hook_runner/test_documentation.py installs the hooks of hooks.d, "
            "and tests/unit/hook_runner/preflight/test_hook_checks.py runs the other one"
        ),
        "azure-scheduled-events try 10-drain --type Reboot --notice 120": (
            "tests/unit/hook_runner/preflight/test_trial.py runs the verb"
        ),
        "journalctl --unit azure-scheduled-events": READS_ONLY,
        "journalctl --unit 'azure-scheduled-events*'": READS_ONLY,
        "journalctl --unit 'azure-scheduled-events-hook-prepare-10-drain-*'": READS_ONLY,
        "journalctl --unit azure-scheduled-events --priority warning": READS_ONLY,
        "journalctl AZURE_EVENT_ID=F29FDFA2-BE90-4942-94D0-E137DE9DA355": READS_ONLY,
    },
    "docs/policies.md": {AZURE_APPROVES: NEEDS_AZURE},
    "docs/ready-hooks/log.md": {
        "/var/log/azure-events.jsonl {": (
            "the hosts have no logrotate; tests/system/ready_hooks/test_log.py renames the file as logrotate does"
        ),
    },
    "docs/salt.md": {
        "# on the Windows minion": "needs Windows; tests/system/windows/minion starts a minion and calls its functions",
    },
    "docs/simulator.md": {
        INSTALL_SIMULATOR: INSTALLS_WHEEL,
        "imds-simulator --scenario live-migration": STARTED,
        "python3 -m venv ~/imds-simulator": "tests/functional/simulator_wheel has its own environment",
        ". ~/imds-simulator/bin/activate": "the same",
        REHEARSAL: "the playbook is the reader's; tests/system/recipes/test_guide.py runs one with `exec`",
        "python3 -m imds_simulator --check mine.yaml": "the file is the reader's",
    },
    "docs/simulator/imds-address.md": {
        "FROM python:3.12-slim": "needs docker; tests/functional/simulator_wheel runs the wheel",
        IN_DOCKER: NO_DOCKER,
        DETACHED: NO_DOCKER,
        "docker run --rm --network container:imds CLIENT": NO_DOCKER,
    },
    "docs/windows.md": {
        CURL_ON_WINDOWS: "needs Windows",
        "group_vars/windows.yml": "the connection is the reader's, to a host with Windows",
        EXCHANGE_ON_WINDOWS: "needs Windows; tests/functional/scenarios/test_windows_page.py runs the module",
    },
    "roles/hook_runner/README.md": {
        "- name: Database servers leave their cluster before Azure touches them": (
            "tests/functional/hook_runner/test_documentation.py loads what it gives the role, "
            "and tests/system/recipes/test_readme.py runs the README's playbook of the same kind"
        ),
        'hook_runner_unit_overrides: "[Service]\\nReadWritePaths=/srv/records"': (
            "tests/system/hosts/test_hook_runner_role.py gives the variable another value"
        ),
        "hook_runner_hook_unit_overrides: |": "tests/system/hosts/test_hook_runner_role.py applies it",
        "hook_runner_ready_hooks:": "tests/system/ready_hooks applies the lists of the pages of these hooks",
        "hook_runner_hooks:": "tests/system/hosts/test_hook_units.py sets the same limits",
        USERS_OF_IMDS: "tests/system/hosts/test_hook_runner_imds.py runs it for three seconds",
        "systemctl status azure-scheduled-events": READS_ONLY,
        "azure-scheduled-events status": READS_ONLY,
        "azure-scheduled-events history": READS_ONLY,
        "journalctl --unit azure-scheduled-events": READS_ONLY,
    },
    "roles/maintenance/README.md": {
        REPORT: "tests/system/recipes/test_maintenance.py compares the table of docs/ansible.md",
        PLAN: "tests/functional/maintenance/test_maintenance_limits.py reads this table",
        GET_TOKEN: NEEDS_AZURE,
    },
    "roles/imds_simulator/README.md": {
        "imds_simulator_listen: 10.77.0.1:80": (
            "the addresses are the reader's; tests/system/recipes/conftest.py has one simulator for many hosts too"
        ),
    },
    "roles/imds_simulator/files/README.md": {
        "imds-simulator --scenario live-migration": STARTED,
        "imds-simulator exec --imds-address --scenario user-reboot -- my-event-handler --once": (
            "the handler is the reader's; tests/system/namespace/test_imds_address_page.py runs such a command"
        ),
        "imds-simulator schedule --type Redeploy --resources vm2 --notice 5m --name move": VERBS_OF_GUIDE,
        "imds-simulator approve move --as vm1": VERBS_OF_GUIDE,
        "pip install click": INSTALLS_WHEEL,
        "pip install --no-deps azure_imds_simulator-0.1.0-py3-none-any.whl": INSTALLS_WHEEL,
    },
    "docs/helper.md": {
        'New-Item -ItemType Directory "$env:ProgramData\\azure-scheduled-events"': "needs an administrator of Windows",
    },
    "tests/labs/chaos/README.md": {
        "make chaos CHAOS_SEEDS=1-100": CHAOS,
        "make chaos CHAOS_SEED=7": CHAOS,
        "make chaos CHAOS_SEEDS=1-100 CHAOS_OF=../older-checkout": CHAOS,
    },
    "tests/labs/demo/README.md": {
        "make demo-zero-loss": "tests/labs/demo/test_zero_loss.py runs a part of it",
        'make demo-zero-loss DEMO_OF="nothing ours"': "the same",
        '.venv/bin/nox -s "labs(demo)"': "make test-all runs it",
    },
    "tests/system/hosts/README.md": {
        "with Lab(folder) as lab:": "the tests of this folder use the same methods",
        f"{NAMESPACES} .venv/bin/python -m pytest tests/system/hosts": "the session system does the same",
        "PYTHONPATH=tests .venv/bin/python -m support.hosts.rootfs bookworm": "the session system does the same",
    },
    "tests/labs/promises/README.md": {
        f'{NAMESPACES} .venv/bin/python -m pytest tests/labs/promises -k "salt and cancelled"': (
            "the session system does the same"
        ),
    },
    "tests/salt/README.md": {
        SALT_CLUSTER: "the tests of tests/salt/live use the same functions",
        "export SALT_HOME=$(PYTHONPATH=tests .venv/bin/python -m support.environments 3008)": SALT_SESSION,
        '$SALT_HOME/bin/python -m pytest -n 3 -m "not all" tests/salt/functional': SALT_SESSION,
        '.venv/bin/python -m pytest -m "not all" tests/salt/live tests/salt/faults tests/salt/guide': SALT_SESSION,
        "for run in 1 2 3; do": SALT_LOOP,
        ".venv/bin/python -m pytest tests/salt/faults --junitxml=.cache/salt-faults-$run.xml": SALT_LOOP,
        "done": SALT_LOOP,
    },
    "tests/labs/soak/README.md": {
        "make soak SOAK_FOR=55m SOAK_SEEDS=1-1000 SOAK_JOBS=3": SOAK,
        "make soak SOAK_SEED=4711": SOAK,
    },
}


def followed() -> set[tuple[str, str]]:
    """Document and name of all that tests/system/recipes follows."""
    found = set()
    for path in (REPOSITORY / "tests" / "system" / "recipes").glob("test_*.py"):
        module = importlib.import_module(f"system.recipes.{path.stem}")
        for test in (module, *vars(module).values()):
            marks = getattr(test, "pytestmark", [])
            for mark in marks if isinstance(marks, list) else [marks]:
                if mark.name == "follows":
                    found |= {(mark.args[0], name) for name in mark.args[1:]}
    return found


def test_each_name_that_a_recipe_follows_is_printed_once() -> None:
    names = [(printed.document, printed.name) for document in DOCUMENTS for printed in printed_in(document)]
    assert {place: names.count(place) for place in followed() if names.count(place) != 1} == {}


FOLLOWED = followed()


def is_run(printed: Printed) -> bool:
    """Return True if a test takes it from the document and runs it."""
    return (
        (printed.document, printed.language) in WHOLE
        or printed.name in BY_NAME.get(printed.document, {})
        or (printed.document, printed.name) in FOLLOWED
    )


def is_picture(printed: Printed) -> bool:
    """Return True for a block without a language."""
    return not printed.language


def reason_of(printed: Printed) -> str:
    """Return why no test runs it as it is printed; empty if one does, or if there is no reason."""
    return "" if is_run(printed) else LEFT_OUT.get(printed.document, {}).get(printed.name, "")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_all_that_a_document_prints_is_run_or_left_out_for_a_reason(document: str) -> None:
    unknown = [
        printed.name
        for printed in printed_in(document)
        if not (is_picture(printed) or is_run(printed) or reason_of(printed))
    ]
    assert unknown == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_block_of_a_document_is_overlooked(document: str) -> None:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    parsed = [token for token in MarkdownIt("commonmark").parse(text) if token.type in ("fence", "code_block")]
    assert fences(text) == [(token.info, token.content) for token in parsed]


def test_nothing_is_listed_that_is_not_printed() -> None:
    printed = [found for document in DOCUMENTS for found in printed_in(document)]
    names = {(found.document, found.name) for found in printed}
    listed = [(document, name) for table in (BY_NAME, LEFT_OUT) for document in table for name in table[document]]
    assert set(listed) - names == set()
    assert [place for place in listed if listed.count(place) > 1] == []
    assert followed() <= names
    assert set(WHOLE) <= {(found.document, found.language) for found in printed}
    tests = {*WHOLE.values(), *(test for names in BY_NAME.values() for test in names.values())}
    assert [test for test in tests if not (REPOSITORY / test).is_file()] == []


def test_targets_sessions_and_tests_that_commands_name_exist() -> None:
    commands = " ".join(name for names in LEFT_OUT.values() for name in names)
    tests = set(re.findall(r"(?<![\w/])tests/[\w/.-]+", commands))
    targets = set(re.findall(r"\bmake ([\w-]+)", commands))
    sessions = set(re.findall(r"\bnox -s ([\w-]+)", commands))
    made = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    defined = (REPOSITORY / "noxfile.py").read_text(encoding="utf-8")
    assert tests and [name for name in tests if not (REPOSITORY / name).exists()] == []
    assert targets and [each for each in targets if not re.search(rf"^{each}:", made, re.MULTILINE)] == []
    assert sessions and [each for each in sessions if f"\ndef {each}(" not in defined] == []
