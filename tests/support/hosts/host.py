# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""A real systemd host: systemd-nspawn on an overlay of the shared root, with its changes in memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.hosts.bridge import NAMESPACES
from support.hosts.control_groups import JOIN, remove_group
from support.hosts.enter_namespace import HostIsDown, first_process, way_in

BOOT_LIMIT = 30.0
STOP_LIMIT = 30.0
COMMAND_LIMIT = 60.0
MAX_BOOTS = 100
UP = ("running", "degraded")
REBOOT_STATUS = 133
# mount point of the temporary disk in Azure's images
EPHEMERAL = "/mnt/resource"


class HostFailed(Exception):
    """The host did not come up or go down; the text has the end of its console."""


class Host:
    """One host; `run` works while it is up.

    Args:
        name: its name, and that of its network namespace.
        address: its address on the bridge.
        folder: an empty folder on a tmpfs, because the changes of an overlay cannot be on an overlay.
        root: the shared root.
        groups: paths for control groups of its own, one in each hierarchy.
    """

    def __init__(self, name: str, address: str, folder: Path, root: Path, groups: Sequence[Path]) -> None:
        self.name, self.address = name, address
        self.keeper = folder / "keeper"
        self.console = folder / "console.log"
        self._machine_id = uuid.uuid4().hex
        self._merged = folder / "merged"
        self._groups = groups
        self._boots = 0
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._run: threading.Thread | None = None
        changes, work = folder / "changes", folder / "work"
        self._ephemeral = folder / "ephemeral"
        for new in (changes / "etc", work, self._merged, self._ephemeral):
            new.mkdir(parents=True)
        (changes / "etc" / "hostname").write_text(name + "\n", encoding="utf-8")
        (changes / "etc" / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {name}\n", encoding="utf-8")
        (changes / "etc" / "machine-id").write_text(
            self._machine_id + "\n", encoding="utf-8"
        )  # without it the first boot asks questions
        layers = f"lowerdir={root},upperdir={changes},workdir={work}"
        subprocess.run(["mount", "-t", "overlay", name, "-o", layers, str(self._merged)], check=True, timeout=30)

    def run(
        self, command: Sequence[str], *, check: bool = True, given: str | None = None, limit: float = COMMAND_LIMIT
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the host, as root in a bare environment.

        Raises:
            HostIsDown: the host is down.
            subprocess.CalledProcessError: the command failed, with `check`.
        """
        return subprocess.run(
            [*way_in(self.keeper), *command],
            input=given,
            stdin=None if given is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit,
            check=check,
        )

    def file(self, path: str) -> Path:
        """Return the path of a file of the host on this machine, whether the host is up or not.

        Not for file systems that the host mounts itself, such as /run.
        """
        return self._merged / path.lstrip("/")

    @contextlib.contextmanager
    def full_run(self) -> Iterator[None]:
        """Leave no room in /run of the host."""
        # a service of the host may write there before its size is set
        size = "mount -o remount,size=$(df --output=used -B1 /run | tail -1) /run"
        self.run(["sh", "-c", f"for _try in $(seq 100); do {size} && exit; done; exit 1"])
        try:
            yield
        finally:
            self.run(["mount", "-o", "remount,size=20%", "/run"])

    @property
    def is_up(self) -> bool:
        return first_process(self.keeper) is not None

    @property
    def boot_id(self) -> str:
        return self.run(["cat", "/proc/sys/kernel/random/boot_id"]).stdout.strip()

    def boot(self) -> None:
        """Switch the host on, and wait until systemd has started all units."""
        if self._run is not None and self._run.is_alive():
            raise HostFailed(f"{self.name} is on already")
        before = self._boots
        self._run = threading.Thread(target=self._keep, name=f"keeper of {self.name}", daemon=True)
        self._run.start()
        self._wait_for_boot(before)

    def reboot(self) -> None:
        """Restart the host in an orderly way; files stay."""
        before = self._boots
        self._ask("reboot")
        self._wait_for_boot(before)

    def power_off(self) -> None:
        """Switch the host off in an orderly way; `boot` switches it on again."""
        self._ask("poweroff")
        self._wait_for_end()

    def crash(self) -> None:
        """Kill all processes at once, as a power cut; files stay, and `boot` switches the host on again."""
        leader = first_process(self.keeper)
        if leader is None:
            raise HostIsDown(f"{self.name} does not run")
        os.kill(leader, signal.SIGKILL)
        with contextlib.suppress(HostFailed):
            self.thaw()  # systemd-nspawn is frozen, too, and could not exit
        self._wait_for_end()

    def redeploy(self) -> None:
        """Switch the host off and on again without its files in EPHEMERAL, as on another machine."""
        self.power_off()
        self.empty_ephemeral()
        self.boot()

    def empty_ephemeral(self) -> None:
        """Remove the files in EPHEMERAL, while the host is off."""
        shutil.rmtree(self._ephemeral)
        self._ephemeral.mkdir()

    def freeze(self) -> None:
        """Stop all processes, as a live migration does; `thaw` continues them."""
        self._freezer("cgroup.freeze").write_text("1", encoding="ascii")

    def thaw(self) -> None:
        self._freezer("cgroup.freeze").write_text("0", encoding="ascii")

    @property
    def is_frozen(self) -> bool:
        return "frozen 1" in self._freezer("cgroup.events").read_text(encoding="ascii")

    def _freezer(self, name: str) -> Path:
        for group in self._groups:
            if (group / "cgroup.freeze").exists():
                return group / name
        raise HostFailed(f"{self.name} cannot be frozen: there is no cgroup.freeze")

    def remove(self) -> None:
        """Crash the host if it is up, and remove its mounts and control groups."""
        with contextlib.suppress(HostIsDown):
            self.crash()
        if self._nspawn is not None:
            self._nspawn.kill()  # it may have failed before the host had started
            self._wait_for_end()
        subprocess.run(["umount", str(self._merged)], check=True, timeout=30)
        for group in self._groups:
            remove_group(group)

    def _ask(self, verb: str) -> None:
        self.run(["systemctl", "--no-wall", verb], check=False)  # the host may be gone before systemctl is

    def _keep(self) -> None:
        """Run systemd-nspawn until the host is switched off. systemd-nspawn also exits at a reboot."""
        for group in self._groups:
            group.mkdir(exist_ok=True)
        options = [
            *(
                "--quiet",
                "--boot",
                "--register=no",
                "--keep-unit",
                f"--directory={self._merged}",
                f"--machine={self.name}",
            ),
            *(
                f"--uuid={self._machine_id}",
                f"--network-namespace-path={NAMESPACES / self.name}",
                "--capability=CAP_NET_ADMIN",
            ),
            *(
                "--resolv-conf=off",
                "--timezone=off",
                "--link-journal=no",
                "--console=read-only",
                f"--bind={self._ephemeral}:{EPHEMERAL}",
            ),
            "--system-call-filter=bpf",  # or IPAddressDeny of units inside does nothing
        ]
        command = ["sh", "-c", JOIN, "join", *map(str, self._groups), "--", "systemd-nspawn", *options]
        for _boot in range(MAX_BOOTS):
            with self.console.open("ab") as console:
                self._nspawn = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=console,
                    stderr=console,
                    start_new_session=True,
                    env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
                )
            self.keeper.write_text(str(self._nspawn.pid), encoding="utf-8")
            self._boots += 1
            if self._nspawn.wait() != REBOOT_STATUS:
                break
        self.keeper.unlink()

    def _wait_for_boot(self, boots_before: int) -> None:
        end = time.monotonic() + BOOT_LIMIT
        while time.monotonic() < end:
            if self._boots > boots_before and self._state() in UP:
                return
            if self._run is None or not self._run.is_alive():
                break
            time.sleep(0.05)
        raise HostFailed(f"{self.name} did not come up:\n{self._end_of_console()}")

    def _state(self) -> str:
        try:
            return self.run(["systemctl", "is-system-running"], check=False, limit=10).stdout.strip()
        except (HostIsDown, subprocess.TimeoutExpired):
            return ""

    def _wait_for_end(self) -> None:
        if self._run is not None:
            self._run.join(STOP_LIMIT)
            if self._run.is_alive():
                raise HostFailed(f"{self.name} did not end:\n{self._end_of_console()}")

    def _end_of_console(self) -> str:
        return self.console.read_text(encoding="utf-8", errors="replace")[-3000:]
