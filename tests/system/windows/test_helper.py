# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The helper on Windows: DHCP option 245 as Windows notes it in the registry, and receipts in the default folder."""

from __future__ import annotations

import shutil
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from support import simulator_process
from support.network import at_imds_address
from support.windows.wine import PYTHON, Wine

pytestmark = pytest.mark.all

# of Azure, in networks without the usual address
LEASED = "168.63.129.16"
INTERFACE = r"HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\{6d3f1f4e-7c0a-4a29-9a52-0f6f3a1c2b11}"
DISCOVERY = """
import sys
sys.path.insert(0, sys.argv[1])
from azure_scheduled_events.errors import ImdsUnreachable
from azure_scheduled_events.imds import Imds
imds = Imds("auto")
try:
    print(imds.instance()["compute"]["name"], imds.endpoint)
except ImdsUnreachable:
    print("unreachable")
"""


@pytest.fixture
def leased() -> Iterator[None]:
    """An IMDS at an address that only DHCP names."""
    with at_imds_address(LEASED), simulator_process.start(args=["--vms", "vm245"], listen=f"{LEASED}:80"):
        yield


@pytest.mark.usefixtures("leased")
def test_address_of_option_245_in_the_registry_is_used(wine: Wine, helper: str) -> None:
    assert wine.run(PYTHON, "-c", DISCOVERY, helper).split() == ["unreachable"]
    option = struct.pack("<5I", 245, 0, 4, 0, int(time.time()) + 3600) + socket.inet_aton(LEASED)
    value = ("/v", "DhcpInterfaceOptions", "/t", "REG_BINARY", "/d", option.hex())
    wine.run("reg.exe", "add", INTERFACE, *value, "/f")
    try:
        assert wine.run(PYTHON, "-c", DISCOVERY, helper).split() == ["vm245", f"http://{LEASED}"]
    finally:
        wine.run("reg.exe", "delete", INTERFACE, "/f")


FOLDER = r"C:\ProgramData\azure-scheduled-events\approvals"
RECEIPTS = """
import sys
sys.path.insert(0, sys.argv[1])
from azure_scheduled_events.receipts import Receipts, default_folder
receipts = Receipts(default_folder(), "http://169.254.169.254")
if sys.argv[2] == "write":
    receipts.write("A", "2026-01-01T00:00:00Z")
print(receipts.find("a"))
"""


def test_receipts_hold_in_all_processes_of_a_boot(wine: Wine, helper: str) -> None:
    folder = wine.inside(FOLDER)
    shutil.rmtree(folder, ignore_errors=True)

    def ask(action: str) -> str:
        return wine.run(PYTHON, "-c", RECEIPTS, helper, action).strip()

    assert ask("find") == "None"
    assert [ask(action) for action in ("write", "find")] == ["2026-01-01T00:00:00Z"] * 2
    wine.end()
    wine.boot()
    assert ask("find") == "None"
    assert [ask(action) for action in ("write", "find")] == ["2026-01-01T00:00:00Z"] * 2
    assert [path.name for path in folder.iterdir()] == ["receipts.json"]
