# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The three handlings of events that the demonstration compares."""

from __future__ import annotations

from pathlib import Path

from demo.run import Handling
from demo.topology import HERE, Topology, install_unit

SAMPLE_UNIT = """\
[Unit]
Description=Handling of the documentation's sample
[Service]
ExecStart=/usr/bin/python3 /srv/sample_script.py
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
"""


def install_nothing(topology: Topology, folder: Path) -> None:
    """Leave the hosts as they are."""


def install_sample(topology: Topology, folder: Path) -> None:
    """Run the equivalent of the documentation's sample on each host."""
    for host in topology.managed.values():
        text = (HERE / "sample_script.py").read_text(encoding="utf-8")
        host.file("/srv/sample_script.py").write_text(text, encoding="utf-8")
        install_unit(host, "sample-script", SAMPLE_UNIT)


def no_logs(topology: Topology) -> str:
    return ""


HANDLINGS = {
    "nothing": Handling("nothing installed", install_nothing, no_logs),
    "sample": Handling("documentation's sample", install_sample, no_logs),
}
OURS = "ours"
