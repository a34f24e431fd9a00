# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A VM: a systemd host with its own sshd; each step of a maintenance writes marks on it."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from pathlib import Path
from typing import NamedTuple

from chaos.network_links import NetworkLink
from chaos.plan import Failure
from support.hosts.enter_namespace import HostIsDown
from support.hosts.host import Host, HostFailed

STATE = "/var/lib/chaos"
STEP_COMMAND = "/usr/local/sbin/chaos-step"
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"
# Each step has its effect at its beginning: a process that survives a dead connection changes
# nothing later.
STEP_SCRIPT = f"""#!/bin/sh
step=$1 run=$2
cd {STATE} || exit 1
mark() {{ echo "$(date +%s.%N) $step $1 $run" >>marks; }}
failed() {{ mark failed; echo "$step fails this once" >&2; exit 3; }}
mark begin
if [ -e "fail-before-$step" ]; then rm "fail-before-$step"; failed; fi
case $step in
    drain) touch drained ;;
    join) rm -f drained ;;
esac
[ -e "slow-$step" ] && sleep "$(cat "slow-$step")"
if [ -e "fail-after-$step" ]; then rm "fail-after-$step"; failed; fi
mark ok
"""
# seconds; only a VM that never comes back takes this time
HEAL_TIMEOUT = 60.0


class Mark(NamedTuple):
    """One mark: a step on a VM began, was ok or failed, at a Unix time, in the run of that name."""

    at: float
    vm: str
    step: str
    what: str
    run: str


class Vm:
    """One VM.

    ``folder`` is for its host key; ``key`` is the public key that may log in as root.

    Attributes:
        lock: held while it goes down or comes up.
        host_key: its line of known_hosts.
    """

    def __init__(self, host: Host, link: NetworkLink, folder: Path, key: str) -> None:
        self.host, self.link, self.name = host, link, host.name
        self.lock = threading.RLock()
        self._state = host.file(STATE)
        self._state.mkdir()
        made = folder / ("key-of-" + host.name)
        make_key(made)
        self._install(HOST_KEY, made.read_text(), 0o600)
        public = made.with_suffix(".pub").read_text()
        self._install(HOST_KEY + ".pub", public, 0o644)
        self._install("/root/.ssh/authorized_keys", key, 0o600)
        self._install(STEP_COMMAND, STEP_SCRIPT, 0o755)
        self.host_key = f"{host.address} {public}"
        host.run(["systemctl", "enable", "--now", "ssh.service"])

    def _install(self, path: str, text: str, mode: int) -> None:
        file = self.host.file(path)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.touch(mode=mode)
        file.chmod(mode)
        file.write_text(text)

    def inject_failure(self, failure: Failure) -> None:
        (self._state / (f"fail-{'after' if failure.after_effect else 'before'}-{failure.step}")).touch()

    def slow_down(self, step: str, seconds: float) -> None:
        (self._state / f"slow-{step}").write_text(f"{seconds:.1f}\n")

    def marks(self) -> list[Mark]:
        file = self._state / "marks"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [Mark(float(line[0]), self.name, *line[1:]) for line in lines if len(line) == 4]

    @property
    def is_drained(self) -> bool:
        return (self._state / "drained").exists()

    def crash(self) -> None:
        """Crash the VM; its connections are not closed."""
        with self.lock:
            self.link.cut()
            with contextlib.suppress(HostIsDown):
                self.host.crash()

    def kill_sshd(self, keep_stopped: bool) -> None:
        """Kill the server and all of its sessions; do nothing on a VM that is down.

        With ``keep_stopped`` systemd does not start the server again.
        """
        with self.lock, contextlib.suppress(HostIsDown):
            if keep_stopped:
                self.host.run(["systemctl", "mask", "--runtime", "ssh.service"], check=False)
            self.host.run(["pkill", "-KILL", "sshd"], check=False)

    def heal(self) -> None:
        """Boot the VM if it is down, start its sshd, and restore its link."""
        with self.lock:
            end = time.monotonic() + HEAL_TIMEOUT
            while not self._is_healthy():
                if time.monotonic() > end:
                    raise HostFailed(f"{self.name} does not come back")
                time.sleep(0.1)
            self.link.mend()

    def remove_failures(self) -> None:
        for file in self._state.glob("fail-*"):
            file.unlink()

    def _is_healthy(self) -> bool:
        try:
            if not self.host.is_up:
                self.host.boot()
            self.host.thaw()
            self.host.run(["systemctl", "unmask", "--runtime", "ssh.service"], check=False, limit=10)
            return self.host.run(["systemctl", "start", "ssh.service"], check=False, limit=10).returncode == 0
        except (HostIsDown, HostFailed, OSError, subprocess.TimeoutExpired):
            return False  # it shuts down or boots


def make_key(path: Path) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "chaos", "-f", str(path)], check=True, timeout=30
    )
