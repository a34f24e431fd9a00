# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""``exec --imds-address``: a command in a network in which 169.254.169.254 is the simulator."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from imds_simulator.namespace.messages import Failure, Step
from imds_simulator.namespace.refusal import refused_namespace
from imds_simulator.scenario.groups import Address
from imds_simulator.server.bind_advice import bind_advice
from support import simulator_process
from support.other_user import AS_USER, USER, folder_for_user, python_for_user

# reads the document of the VM at the true address, the control API, and describes the process
CLIENT = """
import json, os, sys, urllib.request, urllib.error
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def get(url):
    try:
        return json.load(direct.open(urllib.request.Request(url, headers={"Metadata": "true"}), timeout=60))
    except urllib.error.URLError as error:
        return error.reason.errno
def name(url):
    return get(url + "/metadata/instance/compute?api-version=2021-02-01")["name"]
open("made", "w").close()
print(json.dumps({
    "vm": name("http://169.254.169.254"),
    "endpoints": {vm: name(url) for vm, url in json.loads(os.environ["IMDS_SIMULATOR_ENDPOINTS"]).items()},
    "control": get(os.environ["IMDS_SIMULATOR_CONTROL"] + "/health")["ok"],
    "user": os.getuid(),
    "networks": os.listdir("/proc/self/net/dev_snmp6") if os.path.exists("/proc/self/net/dev_snmp6") else ["lo"],
    "address": [word for word in open("/proc/self/net/fib_trie").read().split() if word.startswith("169.254")],
}))
"""


def can_create_namespaces() -> bool:
    program = "import os; os.unshare(os.CLONE_NEWNET)" if sys.version_info >= (3, 12) else None
    command = [sys.executable, "-c", program] if program else ["unshare", "--user", "--net", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_create_namespaces(), reason="the kernel permits no namespace here")


def execute(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "imds_simulator", "exec", "--quiet", *arguments]
    environment = simulator_process.environment()
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False, **options)


def test_command_reaches_the_chosen_vm_at_the_true_address_and_the_others_as_outside(tmp_path: Path) -> None:
    options = ("--imds-address", "--scenario", "live-migration", "--imds-vm", "vm2")
    done = execute(*options, "--", sys.executable, "-c", CLIENT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["vm"] == "vm2"
    assert found["endpoints"] == {"vm1": "vm1", "vm2": "vm2"}
    assert (found["control"], found["user"], found["networks"]) == (True, os.getuid(), ["lo"])
    assert "169.254.169.254" in found["address"]


@pytest.fixture
def as_user(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Arguments of subprocess.run for a user without rights, who has the simulator in a separate folder."""
    python = python_for_user(f"sys.version_info[:2] == {sys.version_info[:2]}")
    if python is None:
        pytest.skip(f"no Python {sys.version_info[0]}.{sys.version_info[1]} on PATH that another user can run")
    spec = importlib.util.find_spec("aiohttp")
    assert spec is not None and spec.origin is not None
    libraries = Path(spec.origin).parent.parent
    with folder_for_user() as folder:
        shutil.copytree(simulator_process.PACKAGE_ROOT / "imds_simulator", folder / "sources" / "imds_simulator")
        own = folder / "own"
        own.mkdir()
        os.chown(own, USER, -1)
        environment = {
            "PATH": os.environ["PATH"], "PYTHONPATH": f"{folder / 'sources'}:{libraries}", "HOME": str(own),
        }  # fmt: skip
        tried = subprocess.run(
            [python, "-c", "import aiohttp"], env=environment, cwd=own, capture_output=True, check=False, **AS_USER
        )
        if tried.returncode:
            pytest.skip(f"another user cannot read {libraries}")
        yield {"python": python, "env": environment, "cwd": own, **AS_USER}


def test_a_user_needs_no_rights_and_keeps_the_own_id_and_files(as_user: dict[str, Any]) -> None:
    python, folder = as_user.pop("python"), as_user["cwd"]
    command = [python, "-m", "imds_simulator", "exec", "--imds-address", "--quiet"]

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *words], **as_user, capture_output=True, text=True, timeout=300, check=False)

    done = call("--", python, "-c", CLIENT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["vm"], found["user"], found["control"]) == ("vm1", USER, True)
    assert (folder / "made").stat().st_uid == USER
    assert call("--as-root", "--", "id", "-u").stdout == "0\n"
    # a simulator inside the namespace has a namespace of its own
    inner = [python, "-m", "imds_simulator", "exec", "--imds-address", "--quiet", "--vm", "inner"]
    assert json.loads(call("--", *inner, "--", python, "-c", CLIENT).stdout)["vm"] == "inner"
    # root in a user namespace of its own may change addresses there
    kept = call("--keep-network", "--", "true")
    assert kept.returncode == 2
    assert "--keep-network: cannot add 169.254.169.254 to lo" in kept.stderr


def test_exit_codes_and_signals_are_those_of_the_command(tmp_path: Path) -> None:
    def code(*command: str) -> int:
        return execute("--imds-address", "--", *command, cwd=tmp_path).returncode

    assert code("sh", "-c", "kill -KILL $$") == 137
    assert code("there-is-no-such-program") == 127
    # a closed pipe ends a program
    ignored = execute("--imds-address", "--", "sh", "-c", "grep SigIgn /proc/self/status").stdout.split()[1]
    assert int(ignored, 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_signals_reach_the_command(tmp_path: Path) -> None:
    script = "trap 'echo ended; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
    command = [sys.executable, "-m", "imds_simulator", "exec", "--imds-address", "--quiet", "--"]
    with subprocess.Popen(
        [*command, "sh", "-c", script], env=simulator_process.environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.stdout.readline() == "ended\n"
        assert process.wait(timeout=60) == 5


def test_a_refused_connection_is_refused_inside_and_accepted_again() -> None:
    script = """
import json, os, subprocess, sys, urllib.request
def verb(*words):
    subprocess.run([sys.executable, "-m", "imds_simulator", *words], check=True, stdout=subprocess.DEVNULL)
def get():
    request = urllib.request.Request("http://169.254.169.254/metadata/versions", headers={"Metadata": "true"})
    try:
        return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60).status
    except urllib.error.URLError as error:
        return type(error.reason).__name__
found = [get()]
for _ in range(2):
    verb("fault", "inject", "refuse")
    found.append(get())
    verb("fault", "clear")
    found.append(get())
print(json.dumps(found))
"""
    done = execute("--imds-address", "--", sys.executable, "-c", script)
    assert json.loads(done.stdout) == [200, "ConnectionRefusedError", 200, "ConnectionRefusedError", 200], done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to forbid namespaces inside a namespace")
def test_a_refused_namespace_is_explained() -> None:
    words = [sys.executable, "-m", "imds_simulator", "exec", "--imds-address", "--quiet", "--", "true"]
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh", *words],
        env=simulator_process.environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "/proc/sys/user/max_user_namespaces is 0" in done.stderr
    assert "IMDS_SIMULATOR_ENDPOINT" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_settings_that_forbid_a_namespace_are_named() -> None:
    settings = {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}
    failure = Failure(Step.MAP_USER.value, 1, "Operation not permitted")
    assert "apparmor_restrict_unprivileged_userns is 1" in str(refused_namespace(failure, settings.get))
    assert "seccomp" in str(refused_namespace(failure, {}.get))


def test_an_unknown_vm_is_named_with_its_neighbour() -> None:
    done = execute("--imds-address", "--scenario", "live-migration", "--imds-vm", "vm22", "--", "true")
    assert done.returncode == 2
    assert done.stderr.startswith("imds_simulator: --imds-vm: there is no VM vm22 (did you mean vm2?)")


def test_an_address_that_cannot_be_used_comes_with_advice() -> None:
    assert "ip_unprivileged_port_start=80" in bind_advice(Address("127.0.0.1", 80), 13)
    assert "ip address add fd00::1/128 dev lo" in bind_advice(Address("fd00::1", 80), 99)
