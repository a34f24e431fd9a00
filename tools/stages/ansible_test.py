# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages that ansible-test runs: sanity, units and integration."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.simulator_process import reserved_port
from tools.junit import read_junit
from tools.stage import Job, Outcome
from tools.stages.ansible_core import AnsibleCore, newest_core, oldest_core, own_core, path_for

NO_MODULE_TESTS = "no tests in tests/unit/plugins/modules and tests/unit/plugins/module_utils"
_DOWNLOAD_LOCK = threading.Lock()
STANDIN = Path(__file__).with_name("offline_get_pip.py")


def sanity_own(job: Job) -> Outcome:
    """Run the checks of the ansible-core of .venv, on every Python."""
    return sanity(job, own_core(job.environment))


def sanity_short(job: Job) -> Outcome:
    """Run the checks of the ansible-core of .venv, on the oldest Python."""
    core = own_core(job.environment)
    return sanity(job, core, "--python", core.targets(job.environment.interpreters)[0])


def sanity_newest(job: Job) -> Outcome:
    """Run the checks of the newest ansible-core, on every Python."""
    return sanity(job, newest_core(job))


def sanity(job: Job, core: AnsibleCore, *options: str) -> Outcome:
    """Run `ansible-test sanity`."""
    tree = job.environment.tree(f"sanity-{core.version}")
    status = ansible_test(job, core, tree, "sanity", *options)
    return sanity_outcome(status, job.output())


def sanity_outcome(status: int, output: str) -> Outcome:
    """Return the counts of `ansible-test sanity`, and a note for each Python and program that is missing."""
    absent = dict.fromkeys(
        re.findall(r"Skipping sanity test \S+ on Python (\S+) because it could not be found", output)
    )
    programs = dict.fromkeys(re.findall(r"Required program \"(\w+)\" not found", output))
    notes = [f"Python {', '.join(absent)}: not on this machine"] if absent else []
    notes += [f"needs {program}" for program in programs]
    return counted(status, output, "sanity") + Outcome(skipped=len(absent) + len(programs), notes=tuple(notes))


def counted(status: int, output: str, kind: str) -> Outcome:
    """Return the counts: ansible-test prints each test that it starts, and the number that failed.

    A run without a test is a failure.
    """
    ran = len(re.findall(rf"^Running (?:{kind} test .+|\S+ {kind} test (?:role|script))$", output, re.MULTILINE))
    summary = re.search(rf"The (\d+) {kind} test\(s\) listed below", output)
    failed = int(summary[1]) if summary else int(bool(status) or not ran)
    return Outcome(max(0, ran - failed), failed, failures=tuple(failures_in(output, kind)))


def failures_in(output: str, kind: str) -> Iterator[str]:
    """Return the failed tests with their first issue, or with the task that failed and its message."""
    listed = re.search(rf"The (\d+) {kind} test\(s\) listed below.*\n((?:\S.*\n?)*)", output)
    for name in listed[2].splitlines()[: int(listed[1])] if listed else []:
        pattern = re.escape(name)
        task = rf"^TASK \[{pattern} : (.+)\] \*+\n(?:(?!TASK ).*\n)*?(?:fatal|failed): (.+)\n(?!\.\.\.ignoring)"
        issue = rf"^ERROR: Found \d+ {pattern} issue.*\nERROR: (.+)"
        found = re.search(task, output, re.MULTILINE) or re.search(issue, output, re.MULTILINE)
        yield ": ".join([name, *(found.groups() if found else ())])


def units(job: Job) -> Outcome:
    """Run tests/unit/plugins by ansible-test, on every Python."""
    core = own_core(job.environment)
    return units_on(job, core, core.targets(job.environment.interpreters))


def units_short(job: Job) -> Outcome:
    """Run tests/unit/plugins by ansible-test, on the oldest and the newest Python."""
    core = own_core(job.environment)
    versions = core.targets(job.environment.interpreters)
    return units_on(job, core, list(dict.fromkeys([versions[0], versions[-1]])))


def units_on(job: Job, core: AnsibleCore, versions: Sequence[str]) -> Outcome:
    """Run `ansible-test units` on these versions of Python, one after the other."""
    tree = job.environment.tree(f"units-{core.version}")
    outcome = Outcome()
    without = []
    for version in versions:
        shutil.rmtree(tree / "tests" / "output" / "junit", ignore_errors=True)
        options = ("--venv", "--python", version, "--num-workers", "1", "tests/unit/plugins/")
        status = ansible_test(job, core, tree, "units", *options)
        result = read_junit(tree / "tests" / "output" / "junit", status)
        outcome += result
        if not (result.passed or result.failed):
            without.append(version)
    if without:
        outcome += Outcome(skipped=len(without), notes=(f"Python {', '.join(without)}: {NO_MODULE_TESTS}",))
    return outcome


def integration_own(job: Job) -> Outcome:
    """Run the targets of tests/integration by the ansible-core of .venv, on the oldest Python."""
    core = own_core(job.environment)
    return integration(job, core, core.targets(job.environment.interpreters)[0])


def integration_newest(job: Job) -> Outcome:
    """Run the targets of tests/integration by the newest ansible-core, on the newest Python."""
    core = newest_core(job)
    return integration(job, core, core.targets(job.environment.interpreters)[-1])


def integration_oldest(job: Job) -> Outcome:
    """Run the targets of tests/integration by the oldest ansible-core, on the oldest Python."""
    core = oldest_core(job)
    return integration(job, core, core.targets(job.environment.interpreters)[0])


def integration(job: Job, core: AnsibleCore, target: str) -> Outcome:
    """Run `ansible-test integration`; `target` is the version of Python that runs the modules."""
    tree = job.environment.tree(f"integration-{core.version}")
    hosts = ("--controller", f"origin:python=3.{core.minor}", "--target", f"controller:python=venv/{target}")
    # each target starts a simulator of its own: the ports stay reserved from the first to the last
    with reserved_port() as port, reserved_port() as control_port:
        write_integration_config(job, tree, port, control_port)
        status = ansible_test(job, core, tree, "integration", "--continue-on-error", *hosts)
    return counted(status, job.output(), "integration")


def write_integration_config(job: Job, tree: Path, port: int, control_port: int) -> None:
    """Write how the targets start the simulator: their own Python may be too old and has no libraries for it."""
    settings = {
        "simulator_python": job.environment.python,
        "simulator_pythonpath": tree / "roles" / "imds_simulator" / "files",
        "simulator_port": port,
        "simulator_control_port": control_port,
    }
    text = "".join(f"{name}: {json.dumps(value, default=str)}\n" for name, value in settings.items())
    (tree / "tests" / "integration" / "integration_config.yml").write_text(text)
    job.write(text)


def ansible_test(job: Job, core: AnsibleCore, tree: Path, command: str, *options: str) -> int:
    """Run a command of ansible-test in a copy of the collection, and return its exit status."""
    provide_pip(job, core)
    return job.run(
        core.ansible_test, command, "--color", "no", *options, cwd=tree, env={"PATH": path_for(core, job.environment)}
    )


def provide_pip(job: Job, core: AnsibleCore) -> None:
    """Provide the files that ansible-test would otherwise download from a site that is not a package registry."""
    folder = job.environment.home / ".ansible" / "test" / "cache"
    folder.mkdir(parents=True, exist_ok=True)
    for version in core.pip_versions():
        with _DOWNLOAD_LOCK:
            shutil.copy(STANDIN, folder / f"get_pip_{version.replace('.', '_')}.py")
            if not (folder / f"pip-{version}-py3-none-any.whl").exists():
                job.run_or_fail(
                    job.environment.python,
                    "-m",
                    "pip",
                    "download",
                    "-qq",
                    "--no-deps",
                    "--dest",
                    folder,
                    f"pip=={version}",
                )
