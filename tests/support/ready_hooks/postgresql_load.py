# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Writers that insert numbers into whichever server is the primary, and note each acknowledged one."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from support.ready_hooks.postgresql_pair import ask
from support.ready_hooks.workload_host import WorkloadHost
from support.wait import wait_until

_WRITERS = 2
_MOST = 1_000_000
_FOLDER = "/var/lib/load"
_SCRIPT = """
number=$(($1 * {most}))
while [ -e {folder}/run ]; do
    number=$((number + 1))
    if timeout 20 psql -XAtq -d "{target}" -c "INSERT INTO acknowledged VALUES ($number)" 2>/dev/null; then
        echo $number >> {folder}/acknowledged
    fi
done
"""


class Load:
    """The writers, which run on the host ``client``; the context manager starts and ends them."""

    def __init__(self, client: WorkloadHost, servers: Sequence[WorkloadHost], port: int = 5432) -> None:
        self._client, self._servers, self._port = client, servers, port
        self._units = [f"writer-{number}" for number in range(_WRITERS)]

    def __enter__(self) -> Load:
        hosts = ",".join(host.host.address for host in self._servers)
        target = f"host={hosts} port={self._port} user=postgres dbname=postgres"
        target += " target_session_attrs=read-write connect_timeout=2"
        script = _SCRIPT.format(most=_MOST, folder=_FOLDER, target=target)
        self._client.shell(f"rm -rf {_FOLDER}; mkdir {_FOLDER}; touch {_FOLDER}/run {_FOLDER}/acknowledged")
        self._client.write(f"{_FOLDER}/write", script)
        for number, unit in enumerate(self._units):
            self._client.start(unit, "sh", f"{_FOLDER}/write", str(number))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.run("rm", f"{_FOLDER}/run")
        if error is None:
            is_active = ("systemctl", "is-active", "--quiet", *self._units)
            wait_until(lambda: self._client.run(*is_active, check=False).returncode != 0, "the writers end")
        else:
            self._client.run("systemctl", "kill", "--signal=KILL", *self._units, check=False)

    def acknowledged(self) -> set[int]:
        """Return the numbers whose insertion a server acknowledged."""
        return {int(line) for line in self._client.shell(f"cat {_FOLDER}/acknowledged").split()}

    def wait_for_more(self) -> None:
        """Wait until writes are acknowledged after now."""
        before = len(self.acknowledged())
        wait_until(lambda: len(self.acknowledged()) >= before + 5, "writes are acknowledged", pause=0.1)

    def lost(self, host: WorkloadHost) -> set[int]:
        """Return the acknowledged numbers that the server of a host does not have."""
        acknowledged = self.acknowledged()
        assert acknowledged
        found = ask(host, "SELECT number FROM acknowledged", self._port)
        return acknowledged - {int(line) for line in found.split()}
