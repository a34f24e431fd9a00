# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A connection plugin for hosts of the lab, without a daemon, keys or sockets."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

from support.hosts.enter_namespace import HostIsDown, way_in

DOCUMENTATION = """
name: nsenter
short_description: enters the namespaces of a host
description: Runs commands in a host of the lab.
author: Contributors to the azure_imds.scheduled_events collection
options:
  keeper:
    description: File with the PID of the systemd-nspawn of the host.
    type: path
    vars:
      - name: ansible_nsenter_keeper
"""
LIMIT = 120


class Connection(ConnectionBase):  # type: ignore[misc]  # ansible says nothing of its types
    transport = "nsenter"
    has_pipelining = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        return self._run(["/bin/sh", "-c", cmd], in_data or b"")

    def put_file(self, in_path: str, out_path: str) -> None:
        super().put_file(in_path, out_path)
        self._must(["/bin/sh", "-c", 'cat >"$1"', "put", out_path], Path(in_path).read_bytes())

    def fetch_file(self, in_path: str, out_path: str) -> None:
        super().fetch_file(in_path, out_path)
        Path(out_path).write_bytes(self._must(["cat", in_path]))

    def reset(self) -> None:
        self.close()

    def close(self) -> None:
        self._connected = False

    def _must(self, command: list[str], given: bytes = b"") -> bytes:
        status, output, errors = self._run(command, given)
        if status:
            raise AnsibleConnectionFailure(f"{command}: {errors.decode(errors='replace')}")
        return output

    def _run(self, command: list[str], given: bytes) -> tuple[int, bytes, bytes]:
        try:
            words = [*way_in(Path(self.get_option("keeper"))), *command]
            done = subprocess.run(words, input=given, capture_output=True, check=False, timeout=LIMIT)
        except (HostIsDown, subprocess.TimeoutExpired) as error:
            raise AnsibleConnectionFailure(str(error)) from error
        return done.returncode, done.stdout, done.stderr
