# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages that ansible-test runs: sanity, units and integration, each on every Python that fits and is there."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from support.simulator_process import reserved_port
from tools.ansible_core import Core, path_for
from tools.junit import read_junit
from tools.stage import Job, Outcome

NO_MODULE_TESTS = "no tests in tests/unit/plugins/modules and tests/unit/plugins/module_utils"
PROVIDING = threading.Lock()
STANDIN = Path(__file__).with_name("offline_get_pip.py")


def sanity(job: Job, core: Core) -> Outcome:
    tree = job.workshop.tree(f"sanity-{core.version}")
    status = ansible_test(job, core, tree, "sanity")
    return sanity_outcome(status, job.output())


def sanity_outcome(status: int, output: str) -> Outcome:
    absent = dict.fromkeys(
        re.findall(r"Skipping sanity test \S+ on Python (\S+) because it could not be found", output)
    )
    programs = dict.fromkeys(re.findall(r"Required program \"(\w+)\" not found", output))
    notes = [f"Python {', '.join(absent)}: not on this machine"] if absent else []
    notes += [f"needs {program}" for program in programs]
    return counted(status, output, "sanity") + Outcome(skipped=len(absent) + len(programs), notes=tuple(notes))


def counted(status: int, output: str, kind: str) -> Outcome:
    """ansible-test names each test when it starts it, and at the end how many failed; having run none is a failure too."""
    ran = len(re.findall(rf"^Running (?:{kind} test .+|\S+ {kind} test (?:role|script))$", output, re.MULTILINE))
    said = re.search(rf"The (\d+) {kind} test\(s\) listed below", output)
    failed = int(said[1]) if said else int(bool(status) or not ran)
    return Outcome(max(0, ran - failed), failed, failures=tuple(failures_in(output, kind)))


def failures_in(output: str, kind: str) -> Iterator[str]:
    """What ansible-test lists at its end, each with the first that it said of it: an issue, or the task that failed and how."""
    listed = re.search(rf"The (\d+) {kind} test\(s\) listed below.*\n((?:\S.*\n?)*)", output)
    for name in listed[2].splitlines()[: int(listed[1])] if listed else []:
        word = re.escape(name)
        task = rf"^TASK \[{word} : (.+)\] \*+\n(?:(?!TASK ).*\n)*?(?:fatal|failed): (.+)\n(?!\.\.\.ignoring)"
        issue = rf"^ERROR: Found \d+ {word} issue.*\nERROR: (.+)"
        said = re.search(task, output, re.MULTILINE) or re.search(issue, output, re.MULTILINE)
        yield ": ".join([name, *(said.groups() if said else ())])


def units(job: Job, core: Core) -> Outcome:
    tree = job.workshop.tree(f"units-{core.version}")
    outcome = Outcome()
    without = []
    for version in core.targets(job.workshop.interpreters):
        shutil.rmtree(tree / "tests" / "output" / "junit", ignore_errors=True)
        status = ansible_test(job, core, tree, "units", "--venv", "--python", version, "--num-workers", "1")
        ran = read_junit(tree / "tests" / "output" / "junit", status)
        outcome += ran
        if not (ran.passed or ran.failed):
            without.append(version)
    return (
        outcome + Outcome(skipped=len(without), notes=(f"Python {', '.join(without)}: {NO_MODULE_TESTS}",))
        if without
        else outcome
    )


def integration(job: Job, core: Core, target: str) -> Outcome:
    tree = job.workshop.tree(f"integration-{core.version}")
    hosts = ("--controller", f"origin:python=3.{core.minor}", "--target", f"controller:python=venv/{target}")
    # each target starts a simulator of its own, so the ports have to stay ours from the first to
    # the last
    with reserved_port() as port, reserved_port() as control_port:
        write_integration_config(job, tree, port, control_port)
        status = ansible_test(job, core, tree, "integration", "--continue-on-error", *hosts)
    return counted(status, job.output(), "integration")


def write_integration_config(job: Job, tree: Path, port: int, control_port: int) -> None:
    """Tell the targets how to start the simulator; their own Python may be too old for it and has not got its libraries."""
    settings = {
        "simulator_python": job.workshop.python,
        "simulator_pythonpath": tree / "roles" / "imds_simulator" / "files",
        "simulator_port": port,
        "simulator_control_port": control_port,
    }
    text = "".join(f"{name}: {json.dumps(value, default=str)}\n" for name, value in settings.items())
    (tree / "tests" / "integration" / "integration_config.yml").write_text(text)
    job.say(text)


def ansible_test(job: Job, core: Core, tree: Path, command: str, *options: str) -> int:
    provide_pip(job, core)
    return job.run(
        core.ansible_test, command, "--color", "no", *options, cwd=tree, env={"PATH": path_for(core, job.workshop)}
    )


def provide_pip(job: Job, core: Core) -> None:
    """Lay down what ansible-test would otherwise download from a site that is no package registry."""
    folder = job.workshop.home / ".ansible" / "test" / "cache"
    folder.mkdir(parents=True, exist_ok=True)
    for version in core.pip_versions():
        with PROVIDING:
            shutil.copy(STANDIN, folder / f"get_pip_{version.replace('.', '_')}.py")
            if not (folder / f"pip-{version}-py3-none-any.whl").exists():
                job.must(
                    job.workshop.python,
                    "-m",
                    "pip",
                    "download",
                    "-qq",
                    "--no-deps",
                    "--dest",
                    folder,
                    f"pip=={version}",
                )
