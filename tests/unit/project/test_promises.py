# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Each promise to users names tests that exist, and those that only `make test-all` shows are listed."""

from __future__ import annotations

import re

from support.repository import REPOSITORY
from tools.repository.promises import LIST, PAGES, PROMISES, marks_of, named_tests, only_in_test_all, promises

SHIPPED = ("extensions", "plugins", "roles/hook_runner", "roles/ready_hooks", "salt")
# calls that make a server
SERVES = re.compile(r"\.bind\(|\.listen\(|\.accept\(|create_server|make_server|HTTPServer|start_server|socketserver")


def test_every_promise_names_a_test() -> None:
    found = list(promises())
    assert len(found) > 50
    assert [promise for promise in found if not promise.tests] == []


def test_every_test_that_a_promise_names_exists() -> None:
    named = named_tests()
    assert (
        sorted(f"{path}::{name}" for path, name in named if not (name in marks_of(path) if name else marks_of(path)))
        == []
    )
    mentioned = {
        path for page in PAGES for path in re.findall(r"tests/[\w/]+\.py", (REPOSITORY / page).read_text("utf-8"))
    }
    assert mentioned == {path for path, _name in named}


def test_a_promise_names_the_functions_of_a_file_that_make_test_runs_in_part() -> None:
    """Otherwise a function that `make test` runs would count for a promise that others show."""
    whole = {path for promise in promises() for path, name in promise.tests if not name}
    assert sorted(path for path in whole if len(set(marks_of(path).values())) > 1) == []


def test_promises_without_a_test_in_make_test_are_listed() -> None:
    """``python -m tools.repository.promises`` prints the list."""
    text = (REPOSITORY / PROMISES).read_text(encoding="utf-8")
    section = text.split(f"\n## {LIST}\n")[1].split("\n## ")[0]
    listed = [" ".join(entry.split()) for entry in re.findall(r"^- (.*(?:\n  .*)*)", section, re.MULTILINE)]
    assert listed == only_in_test_all()


def test_a_host_serves_on_unix_sockets_and_at_metrics_address_only() -> None:
    """No part that is installed on a host listens, but for the sockets of the daemon and the metrics with their key."""
    files = [file for folder in SHIPPED for file in (REPOSITORY / folder).rglob("*.p[sy]*") if not file.is_symlink()]
    serving = {file.name for file in files if file.suffix in (".py", ".ps1") and SERVES.search(file.read_text("utf-8"))}
    assert serving == {"run_directory.py", "control_socket.py", "metrics_server.py"}
    control = (REPOSITORY / "roles/hook_runner/files/hook_runner/service/control_socket.py").read_text("utf-8")
    assert set(re.findall(r"AF_\w+", control)) == {"AF_UNIX"}
