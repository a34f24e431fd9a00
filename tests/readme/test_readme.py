# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""What the README shows is true: its commands run, its playbooks are accepted, its links and its table of contents lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tools.tree import copy_tree

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)

# Commands that the README shows and that this test leaves to others, with the reason.
LEFT_OUT = {
    "make test": "it is what is running",
    "ansible-galaxy collection install azure_imds.scheduled_events": "would fetch a release, not this checkout",
}


def commands() -> list[str]:
    """The lines of shell blocks, continued lines joined; in `console` blocks only those after a prompt."""
    found = []
    for language, text in BLOCKS:
        lines = text.replace("\\\n", " ").splitlines()
        if language in ("sh", "bash", "shell"):
            found += [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        elif language == "console":
            found += [line[2:].strip() for line in lines if line.startswith("$ ")]
    return [re.sub(r"\s+#.*", "", command) for command in dict.fromkeys(found)]


def playbooks() -> list[str]:
    def has_plays(text: str) -> bool:
        content = yaml.safe_load(text)
        return isinstance(content, list) and all(isinstance(play, dict) and "hosts" in play for play in content)

    return [text for language, text in BLOCKS if language in ("yaml", "yml") and has_plays(text)]


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    collections = REPOSITORY / ".cache" / "trees" / "readme"
    copy_tree(REPOSITORY, collections)
    path = os.pathsep.join([str(REPOSITORY / ".venv" / "bin"), os.environ["PATH"]])
    return {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(collections), "PATH": path}


@pytest.mark.parametrize("command", [command for command in commands() if command not in LEFT_OUT])
def test_command_runs(command: str, environment: dict[str, str]) -> None:
    ran = subprocess.run(command, shell=True, cwd=REPOSITORY, env=environment, timeout=900, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("text", playbooks(), ids=range(len(playbooks())))
def test_playbook_is_accepted(text: str, environment: dict[str, str], tmp_path: Path) -> None:
    playbook = tmp_path / "playbook.yml"
    playbook.write_text(text, encoding="utf-8")
    command = ["ansible-playbook", "--syntax-check", "--inventory", "localhost,", str(playbook)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!https?:)([^)#\s]+)", README))))
def test_link_leads_to_a_file(target: str) -> None:
    assert (REPOSITORY / target).exists()


@pytest.mark.parametrize("anchor", sorted(set(re.findall(r"\]\(#([^)\s]+)\)", README))))
def test_link_leads_to_a_heading(anchor: str) -> None:
    headings = re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
