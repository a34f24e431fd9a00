# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Commands in a network of their own, in which 169.254.169.254 is the simulator."""

from __future__ import annotations

import subprocess
import sys

import pytest


def _can_create_namespaces() -> bool:
    program = "import os; os.unshare(os.CLONE_NEWNET)" if sys.version_info >= (3, 12) else None
    command = [sys.executable, "-c", program] if program else ["unshare", "--user", "--net", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


NEEDS_NAMESPACES = pytest.mark.skipif(not _can_create_namespaces(), reason="the kernel permits no namespace here")
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
# prints "up", and for each line of its input the name of the VM at the true address, or that of the error
ANSWER_PER_LINE = """
import sys, urllib.request
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
url = "http://169.254.169.254/metadata/instance/compute/name?api-version=2021-02-01&format=text"
request = urllib.request.Request(url, headers={"Metadata": "true"})
print("up", flush=True)
for _line in sys.stdin:
    try:
        print(direct.open(request, timeout=60).read().decode(), flush=True)
    except OSError as error:
        print(type(getattr(error, "reason", error)).__name__, flush=True)
"""


def next_answer(process: subprocess.Popen[str]) -> str:
    """Return the next answer of ``ANSWER_PER_LINE``."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().rstrip("\n")
