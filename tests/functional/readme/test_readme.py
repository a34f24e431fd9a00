# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The README's commands for a checkout run, and its links are valid on GitHub and on Galaxy's page."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
import yaml
from markdown_it import MarkdownIt

from support.recipes.printed import COMMAND, printed_in
from support.repository import REPOSITORY
from tools.repository.markdown import anchors

README = "README.md"
PAGE = MarkdownIt("commonmark").enable("table").render((REPOSITORY / README).read_text(encoding="utf-8"))

# commands that this test does not run, with the reason
LEFT_OUT = {
    "make rehearsal": "tests/functional/readme/test_rehearsal.py runs it, as a user without a home directory",
    "ansible-galaxy collection install azure_imds.scheduled_events": "tests/system/recipes has its own Galaxy server",
}
IN_A_PROJECT = "ansible-playbook "  # tests/system/recipes runs them
COMMANDS = [printed.name for printed in printed_in(README) if printed.kind == COMMAND]
HERE = [command for command in COMMANDS if command not in LEFT_OUT and not command.startswith(IN_A_PROJECT)]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    path = os.pathsep.join([str(REPOSITORY / ".venv" / "bin"), os.environ["PATH"]])
    return {**os.environ, "ANSIBLE_HOME": str(tmp_path_factory.mktemp("ansible")), "PATH": path}


@pytest.mark.all  # the rehearsal builds and installs the collection, too
@pytest.mark.xdist_group("commands of the README")  # each uses what the one before it made
@pytest.mark.parametrize("command", HERE)
def test_command_runs(command: str, environment: dict[str, str]) -> None:
    ran = subprocess.run(
        command, shell=True, cwd=REPOSITORY, env=environment, timeout=900, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_files_of_salt_are_those_of_its_guide() -> None:
    """tests/salt/guide follows the guide."""
    files = [printed.text for printed in printed_in(README) if printed.name.startswith("# /")]
    assert len(files) == 2
    assert set(files) <= {printed.text for printed in printed_in("docs/salt.md")}


def test_links_are_absolute_and_lead_to_a_file_and_a_heading() -> None:
    """GitHub and Galaxy show the page at different addresses."""
    repository = yaml.safe_load((REPOSITORY / "galaxy.yml").read_text(encoding="utf-8"))["repository"]
    targets = re.findall(r'href="([^"]*)"', PAGE)
    assert len(targets) > 10
    for target in targets:
        assert target.startswith("https://"), target
        if found := re.fullmatch(re.escape(repository) + r"/(blob|tree)/main/([^#]+)#?(.*)", target):
            kind, path, anchor = found.groups()
            file = REPOSITORY / path
            assert file.is_file() if kind == "blob" else file.is_dir(), target
            assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target
        else:
            assert target == f"{repository}/issues", target


def test_links_have_a_target() -> None:
    assert re.findall(r"\[[^\]]*\]\[?", re.sub(r"<pre>.*?</pre>|<code>.*?</code>", "", PAGE, flags=re.DOTALL)) == []
