# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Every example that a document prints is run by a test, or is listed here with a reason."""

from __future__ import annotations

import fnmatch
import importlib
import re
from collections import Counter
from collections.abc import Mapping

import pytest

from support.recipes.printed import Printed, is_shown, printed_in
from support.repository import REPOSITORY

pytestmark = pytest.mark.all

PATTERNS = ("*.md", "docs/**/*.md", "roles/*/README.md", "roles/*/files/README.md")
DOCUMENTS = [path.relative_to(REPOSITORY).as_posix() for pattern in PATTERNS for path in REPOSITORY.glob(pattern)]

# documents, languages, and the test that takes all blocks of these languages from the documents, and fails when it
# does not know one
WHOLE = [
    ("docs/configuration.md", "text", "tests/functional/hook_runner/test_documentation.py"),
    ("docs/event-driven.md", "sh yaml", "tests/system/eda/test_page.py"),
    ("docs/helper.md", "python", "tests/unit/project/test_docs.py"),
    ("docs/hook-runner.md", "console yaml", "tests/functional/hook_runner/test_documentation.py"),
    ("docs/monitoring.md", "sh yaml", "tests/system/hosts/test_monitoring.py"),
    ("docs/other-handlers.md", "sh yaml", "tests/functional/hook_runner/process/test_jetpack_script.py"),
    ("docs/policies.md", "text yaml", "tests/unit/project/test_docs.py"),
    ("docs/ready-hooks/README.md", "sh yaml", "tests/system/ready_hooks/test_overview.py"),
    ("docs/ready-hooks/command.md", "yaml", "tests/system/ready_hooks/test_command.py"),
    ("docs/ready-hooks/connections.md", "text yaml", "tests/system/ready_hooks/test_connections.py"),
    ("docs/ready-hooks/haproxy.md", "haproxy yaml", "tests/system/ready_hooks/test_haproxy.py"),
    ("docs/ready-hooks/health-file.md", "nginx text yaml", "tests/system/ready_hooks/test_health_file.py"),
    ("docs/ready-hooks/kubernetes.md", "yaml", "tests/system/ready_hooks/test_kubernetes.py"),
    ("docs/ready-hooks/log.md", "json sh yaml", "tests/system/ready_hooks/test_log.py"),
    ("docs/ready-hooks/notify.md", "yaml", "tests/system/ready_hooks/test_notify.py"),
    ("docs/ready-hooks/pacemaker.md", "yaml", "tests/system/ready_hooks/test_pacemaker.py"),
    ("docs/ready-hooks/postgresql.md", "ini text yaml", "tests/system/ready_hooks/test_postgresql.py"),
    ("docs/ready-hooks/redis.md", "yaml", "tests/system/ready_hooks/test_redis.py"),
    ("docs/ready-hooks/slurm.md", "yaml", "tests/system/ready_hooks/test_slurm.py"),
    ("docs/ready-hooks/systemd-units.md", "yaml", "tests/system/ready_hooks/test_systemd_units.py"),
    ("docs/reference/scheduled-events.md", "json", "tests/unit/project/test_docs.py"),
    ("docs/salt.md", "console sh yaml", "tests/salt/guide/test_guide.py"),
    ("docs/salt-reference.md", "yaml", "tests/unit/project/test_salt_docs.py"),
    ("docs/simulator/ci.md", "sh yaml", "tests/functional/start/test_pages.py"),
    ("docs/simulator/live-page.md", "bash console sh", "tests/unit/imds_simulator/control/test_page.py"),
    ("docs/simulator/imds-address.md", "bash text", "tests/system/namespace/test_imds_address_page.py"),
    ("docs/simulator/recordings.md", "bash console", "tests/unit/imds_simulator/recording/test_recorder.py"),
    ("docs/simulator.md", "bash yaml", "tests/unit/imds_simulator/test_docs.py"),
    ("docs/start/[!w]*.md", "sh text", "tests/functional/start/test_pages.py"),
    ("docs/start/windows.md", "powershell sh text", "tests/functional/start/test_windows.py"),
    ("docs/start/windows.md", "yaml", "tests/system/windows/test_start_page.py"),
    ("docs/troubleshooting.md", "console sh yaml", "tests/functional/troubleshooting/test_page.py"),
    ("docs/zero-loss.md", "yaml", "tests/labs/demo/test_zero_loss.py"),
    ("roles/ready_hooks/README.md", "yaml", "tests/system/ready_hooks/test_overview.py"),
]
# commands that show what the service has logged or does, and change nothing
READS_ONLY = re.compile(r"journalctl |systemctl status |azure-scheduled-events (status|history)$")

INSTALLS_WHEEL = "tests/functional/simulator_wheel/test_wheel.py installs its wheel"
VERBS_OF_GUIDE = "tests/unit/imds_simulator/test_docs.py runs these verbs as docs/simulator.md prints them"
STARTED = "serves until it is ended; tests/unit/imds_simulator/test_docs.py starts the same"
NO_DOCKER = (
    "needs docker; tests/system/namespace/test_imds_address_page.py runs exec with the rights of such a container"
)
IMDS_ADDRESS_TEST = "tests/system/namespace/test_imds_address_page.py"
NEEDS_AZURE = "it needs a subscription of Azure"
# document -> name, or its beginning and "..." -> the test that takes it from the document and runs it
BY_NAME = {
    "README.md": {
        "make rehearsal": "tests/functional/readme/test_readme.py",
        "make collection": "tests/functional/readme/test_readme.py",
        "ansible-galaxy collection install --force ...": "tests/functional/readme/test_readme.py",
        "# /srv/pillar/azure.sls": "tests/functional/readme/test_readme.py",
        "# /etc/salt/master.d/azure.conf": "tests/functional/readme/test_readme.py",
    },
    "docs/simulator.md": {"python3 -m imds_simulator --check pool.yaml": "tests/unit/imds_simulator/test_docs.py"},
    "docs/simulator/imds-address.md": {
        "imds-simulator --scenario user-reboot --listen 169.254.169.254:80": IMDS_ADDRESS_TEST
    },
    "docs/windows.md": {"maintain-windows.yml": "tests/functional/scenarios/test_windows_page.py"},
    "roles/maintenance/README.md": {
        "coordinate.yml": "tests/functional/maintenance/test_maintenance_coordinate.py",
        "arm.yml": "tests/functional/maintenance/test_maintenance_arm.py",
        "windows.yml": "tests/functional/maintenance/test_maintenance_arm.py",
    },
}

# document -> name, or its beginning and "..." -> the reason why no test runs it as it is printed
LEFT_OUT = {
    "CONTRIBUTING.md": {
        "make venv": "it made the environment of this test",
        "make lint": "the lane beside the one of this test",
        "make test": "it runs this test",
        "make test-all": "it runs this test",
        "make docs": "tests/functional/docs_site/test_site.py builds the site",
        ".venv/bin/nox -s unit -- tests/unit/plugins -k policy": "the session runs this test",
        ".venv/bin/python -m pytest tests/unit/hook_runner/maintenance": "the lane of this test runs these tests",
        "PATH=$PWD/.venv/bin:$PATH antsibull-changelog ...": "it removes the fragments; the lane lint checks them",
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
    },
    "docs/policies.md": {"az vm update ...": NEEDS_AZURE},
    "docs/ready-hooks/log.md": {
        "/var/log/azure-events.jsonl {": (
            "the hosts have no logrotate; tests/system/ready_hooks/test_log.py renames the file as logrotate does"
        )
    },
    "docs/salt.md": {
        "# on the Windows minion": "needs Windows; tests/system/windows/minion starts a minion and calls its functions"
    },
    "docs/simulator.md": {
        "pip install ./roles/imds_simulator/files": INSTALLS_WHEEL,
        "imds-simulator --scenario live-migration": STARTED,
        "python3 -m imds_simulator exec ...": (
            "the playbook is the reader's; tests/system/recipes/test_recipes.py runs one with `exec`"
        ),
    },
    "docs/simulator/imds-address.md": {
        "FROM python:3.12-slim": "needs docker; tests/functional/simulator_wheel runs the wheel",
        "docker run --rm --cap-add NET_ADMIN ...": NO_DOCKER,
        "docker run --detach ...": NO_DOCKER,
        "docker run --rm --network container:imds CLIENT": NO_DOCKER,
    },
    "docs/windows.md": {
        "curl.exe ...": "needs Windows",
        "group_vars/windows.yml": "the connection is the reader's, to a host with Windows",
        "ansible windows ...": "needs Windows; tests/functional/scenarios/test_windows_page.py runs the module",
    },
    "roles/hook_runner/README.md": {
        "- name: Database servers leave their cluster before Azure touches them": (
            "tests/functional/hook_runner/test_documentation.py loads what it gives the role, "
            "and tests/system/recipes/test_recipes.py runs the README's playbook of the same kind"
        ),
        'hook_runner_unit_overrides: "[Service]\\nReadWritePaths=/srv/records"': (
            "tests/system/hosts/test_hook_runner_role.py gives the variable another value"
        ),
        "hook_runner_hook_unit_overrides: |": "tests/system/hosts/test_hook_runner_role.py applies it",
        "hook_runner_ready_hooks:": "tests/system/ready_hooks applies the lists of the pages of these hooks",
        "timeout 60 sh -c 'while :; do ss ...": "tests/system/hosts/test_hook_runner_imds.py runs it for three seconds",
    },
    "roles/maintenance/README.md": {
        "event     ...": "tests/functional/maintenance/test_maintenance_limits.py reads this table",
        "export ARM_TOKEN=...": NEEDS_AZURE,
    },
    "roles/imds_simulator/README.md": {
        "imds_simulator_listen: 10.77.0.1:80": (
            "the addresses are the reader's; tests/system/recipes/conftest.py has one simulator for many hosts too"
        )
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
        'New-Item -ItemType Directory "$env:ProgramData\\azure-scheduled-events"': "needs an administrator of Windows"
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


def whole_test_of(document: str, language: str) -> str:
    """Return the test that runs all blocks of this language in a document, or ""."""
    tests = [
        test
        for pattern, languages, test in WHOLE
        if fnmatch.fnmatch(document, pattern) and language in languages.split()
    ]
    return tests[0] if tests else ""


def entries(table: Mapping[str, Mapping[str, str]], document: str, name: str) -> list[str]:
    """Return the entries of a document that are this name or its beginning."""
    return [
        entry
        for entry in table.get(document, {})
        if entry == name or (entry.endswith("...") and name.startswith(entry[:-3]))
    ]


def is_run(printed: Printed) -> bool:
    """Return True if a test takes it from the document and runs it."""
    return (
        whole_test_of(printed.document, printed.language) != ""
        or entries(BY_NAME, printed.document, printed.name) != []
        or (printed.document, printed.name) in FOLLOWED
    )


@pytest.mark.parametrize("document", DOCUMENTS)
def test_all_that_a_document_prints_is_run_or_left_out_for_a_reason(document: str) -> None:
    unknown = [
        printed.name
        for printed in printed_in(document)
        # a block without a language is a picture
        if printed.language
        and not (is_run(printed) or READS_ONLY.match(printed.name))
        and not entries(LEFT_OUT, document, printed.name)
    ]
    assert unknown == []


def test_nothing_is_listed_that_is_not_printed() -> None:
    printed = [found for document in DOCUMENTS for found in printed_in(document)]
    names = {(found.document, found.name) for found in printed}
    tables = (BY_NAME, LEFT_OUT)
    listed = [(document, entry) for table in tables for document in table for entry in table[document]]
    shown = Counter((place[0], entry) for table in tables for place in names for entry in entries(table, *place))
    assert {place: shown[place] for place in listed if shown[place] != 1} == {}
    assert names >= FOLLOWED
    blocks = {(found.document, found.language) for found in printed}
    for pattern, languages, _test in WHOLE:
        printed_here = {language for document, language in blocks if fnmatch.fnmatch(document, pattern)}
        assert set(languages.split()) <= printed_here, pattern
    tests = {*(test for *_of, test in WHOLE), *(test for names in BY_NAME.values() for test in names.values())}
    assert [test for test in tests if not (REPOSITORY / test).is_file()] == []


def test_targets_sessions_and_tests_that_pages_name_exist() -> None:
    pages = [*DOCUMENTS, *(str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("tests/**/README.md"))]
    commands = " ".join(printed.name for page in pages for printed in printed_in(page))
    tests = set(re.findall(r"(?<![\w/])tests/[\w/.-]+", commands))
    targets = set(re.findall(r"\bmake ([\w-]+)", commands))
    sessions = set(re.findall(r"\bnox -s \W?([\w-]+)", commands))
    made = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    defined = (REPOSITORY / "noxfile.py").read_text(encoding="utf-8")
    assert tests and [name for name in tests if not (REPOSITORY / name).exists()] == []
    assert targets and [each for each in targets if not re.search(rf"^{each}:", made, re.MULTILINE)] == []
    assert sessions and [each for each in sessions if f"\ndef {each}(" not in defined] == []


def test_is_shown_with_ellipses_for_missing_lines_only() -> None:
    for shown in ("one two three", "...", "... three", "one ...", "one ... three", "... two ..."):
        assert is_shown(["one", "two", "three"], shown.split()), shown
    for other in ("", "one", "two three", "... two", "two ...", "three ... one", "one two three four"):
        assert not is_shown(["one", "two", "three"], other.split()), other
