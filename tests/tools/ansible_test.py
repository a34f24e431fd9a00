# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The stages that ansible-test runs: sanity, units and integration, each on every Python that fits and is there."""

from __future__ import annotations

import re
import shutil
import threading
from pathlib import Path

from tools.core import Core, path_for
from tools.junit import read_junit
from tools.stage import Job, Outcome

NO_MODULE_TESTS = "no tests in tests/unit/plugins/modules and tests/unit/plugins/module_utils"
PROVIDING = threading.Lock()
STANDIN = Path(__file__).with_name("get_pip_standin.py")


def sanity(job: Job, core: Core) -> Outcome:
    tree = job.workshop.tree(f"sanity-{core.version}")
    status = ansible_test(job, core, tree, "sanity")
    return sanity_outcome(status, job.output())


def sanity_outcome(status: int, output: str) -> Outcome:
    ran = re.findall(r"^Running sanity test (.+)$", output, re.MULTILINE)
    failed = re.search(r"The (\d+) sanity test\(s\) listed below", output)
    absent = re.findall(r"Skipping sanity test \S+ on Python (\S+) because it could not be found", output)
    missing = re.findall(r"Required program \"(\w+)\" not found", output)
    count = int(failed[1]) if failed else int(bool(status) or not ran)
    notes = [f"Python {version}: not on this machine" for version in absent] + [f"needs {program}" for program in missing]
    return Outcome(max(0, len(ran) - count), count, len(set(absent)) + len(missing), tuple(dict.fromkeys(notes)))


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
    return outcome + Outcome(skipped=len(without), notes=(f"Python {', '.join(without)}: {NO_MODULE_TESTS}",)) if without else outcome


def integration(job: Job, core: Core, target: str) -> Outcome:
    tree = job.workshop.tree(f"integration-{core.version}")
    write_integration_config(job, tree)
    start = len(job.output())
    status = ansible_test(
        job, core, tree, "integration", "--controller", f"origin:python=3.{core.minor}", "--target", f"controller:python=venv/{target}"
    )
    ran = len(re.findall(r"^Running (\S+) integration test", job.output(start), re.MULTILINE))
    return Outcome(max(0, ran - bool(status)), int(bool(status) or not ran))


def write_integration_config(job: Job, tree: Path) -> None:
    """Tell the targets how to start the simulator; their own Python may be too old for it and has not got its libraries."""
    (tree / "tests" / "integration" / "integration_config.yml").write_text(
        f"simulator_python: {job.workshop.python}\nsimulator_pythonpath: {tree / 'roles' / 'imds_simulator' / 'files'}\n"
    )


def ansible_test(job: Job, core: Core, tree: Path, command: str, *options: str) -> int:
    provide_pip(job, core)
    return job.run(core.ansible_test, command, "--color", "no", *options, cwd=tree, env={"PATH": path_for(core, job.workshop)})


def provide_pip(job: Job, core: Core) -> None:
    """Lay down what ansible-test would otherwise download from a site that is no package registry."""
    folder = job.workshop.home / ".ansible" / "test" / "cache"
    folder.mkdir(parents=True, exist_ok=True)
    for version in core.pip_versions():
        with PROVIDING:
            shutil.copy(STANDIN, folder / f"get_pip_{version.replace('.', '_')}.py")
            if not (folder / f"pip-{version}-py3-none-any.whl").exists():
                job.must(job.workshop.python, "-m", "pip", "download", "-qq", "--no-deps", "--dest", folder, f"pip=={version}")
