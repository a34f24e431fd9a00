# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A port for a server that a test starts later."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port of the loopback interface that no program used a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
