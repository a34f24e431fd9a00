# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection
"""Commands in a network of their own, in which 169.254.169.254 is the simulator."""

from __future__ import annotations

import subprocess

import pytest


def _can_create_namespaces() -> bool:
    # root may need no user namespace, others do
    script = "unshare --net true || unshare --user --net true"
    return subprocess.run(script, shell=True, capture_output=True, check=False).returncode == 0


NEEDS_NAMESPACES = pytest.mark.skipif(not _can_create_namespaces(), reason="the kernel permits no namespace here")
# asks the VMs for their names by the addresses in the environment, asks the control API, and describes the process
CLIENT = """
import json, os, urllib.request
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
def get(url):
    return json.load(direct.open(urllib.request.Request(url, headers={"Metadata": "true"}), timeout=60))
def name(url):
    return get(url + "/metadata/instance/compute?api-version=2021-02-01")["name"]
open("made", "w").close()
print(json.dumps({
    "variables": sorted(name for name in os.environ if name.startswith("IMDS_SIMULATOR_")),
    "endpoint": os.environ["IMDS_SIMULATOR_ENDPOINT"],
    "vm": name(os.environ["IMDS_SIMULATOR_ENDPOINT"]),
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
