# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The root file systems of the hosts: small Debians, each created once in the cache that all checkouts share.

python -m support.hosts.rootfs [SUITE...] creates those that are missing, and prints their folders.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from support.hosts.namespaces import WITH_ITS_PARENT
from support.shared_cache import entry, only_one, shared_cache

SUITE = "bookworm"
OTHER_SUITES = ("bullseye", "trixie")
# the same Debian with the workloads of all ready hooks; only tests with the mark `all` need it
WORKLOADS = "workloads"
# the CRIU of Debian 12 does not work with new kernels
CRIU_SUITE = "trixie"

BUILD_LIMIT = 600
ARCHIVE_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# Hosts have no access to archives; therefore the root has all packages that the roles install.
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "iproute2", "nftables", "openssh-server", "procps", "python3", "python3-apt"),
    *("python3-aiohttp", "python3-click", "python3-prometheus-client", "python3-requests", "python3-yaml"),
)
# the workloads of tests/labs/demo
DEMO_UNITS = ("haproxy", "postgresql")
DEMO_PACKAGES = (*DEMO_UNITS, "python3-psycopg2")
WORKLOAD_PACKAGES = (
    *("haproxy", "nginx-light", "keepalived", "curl", "postgresql", "patroni", "etcd-server", "etcd-client"),
    *("redis-server", "redis-sentinel", "redis-tools", "corosync", "pacemaker", "pcs", "crmsh", "pgbouncer"),
    *("slurmctld", "slurmd", "slurm-client", "munge", "kubernetes-client", "apprise", "prometheus"),
)
WORKLOAD_UNITS = (
    *("haproxy", "nginx", "keepalived", "postgresql", "patroni", "etcd", "redis-server", "redis-sentinel", "corosync"),
    *("pacemaker", "pcsd", "pcsd-ruby", "pgbouncer", "logd", "slurmctld", "slurmd", "munge", "prometheus"),
)
# Units that a host does not need that boots in half a second and runs for a minute.
MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"),
    *(
        "systemd-firstboot.service",
        "systemd-networkd-wait-online.service",
        "console-getty.service",
        "getty@tty1.service",
    ),
)
UNREAD = ("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*")
RECIPE = (
    "--variant=apt",
    "--include=" + ",".join(PACKAGES),
    *("--dpkgopt=path-exclude=" + path for path in UNREAD),
    '--customize-hook=rm -f "$1/etc/hostname"; : >"$1/etc/machine-id"',
    '--customize-hook=chroot "$1" systemctl --quiet mask ' + " ".join(MASKED),
    # tests/labs/chaos creates separate keys for each host, and starts the service
    '--customize-hook=rm -f "$1"/etc/ssh/ssh_host_*; chroot "$1" systemctl disable --quiet ssh.service',
)
# Debian's packages enable their units; a test starts those that it needs
DISABLE = '--customize-hook=for unit in {}; do chroot "$1" systemctl disable --quiet "$unit.service"; done'
# A killed mmdebstrap would leave mounts and processes in the half-made root.
SEPARATELY = (*WITH_ITS_PARENT, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")


class RootFailed(Exception):
    """A root could not be made."""


def recipe(suite: str) -> tuple[str, ...]:
    """Return the options of mmdebstrap for this suite."""
    packages, units = {SUITE: (DEMO_PACKAGES, DEMO_UNITS), WORKLOADS: (WORKLOAD_PACKAGES, WORKLOAD_UNITS)}.get(
        suite, (("criu",) if suite == CRIU_SUITE else (), ())
    )
    return (
        *RECIPE,
        *(["--include=" + ",".join(packages)] if packages else []),
        *([DISABLE.format(" ".join(units))] if units else []),
    )


def location(suite: str = SUITE) -> Path:
    """Return the folder of the root of this suite; its name depends on the recipe."""
    return entry(f"root-{suite}", recipe(suite))


def made(suite: str = SUITE) -> Path:
    """Return the folder of the root; hosts use this, because their namespaces have no network to make one.

    Raises:
        RootFailed: it is missing.
    """
    root = location(suite)
    if not root.is_dir():
        raise RootFailed(f"root {suite}: {root} is missing; make it by `python -m support.hosts.rootfs {suite}`")
    return root


def ensure(suite: str = SUITE) -> Path:
    """Create the root if it is missing. Needs root's rights and an archive of Debian.

    Raises:
        RootFailed: mmdebstrap is missing or failed; no half-made root stays behind.
    """
    root = location(suite)
    if root.is_dir():
        return root
    with only_one(f"root-{suite}"):
        if not root.is_dir():
            half_made = root.with_suffix(".new")
            shutil.rmtree(half_made, ignore_errors=True)
            try:
                make(suite, half_made)
                half_made.rename(root)
            finally:
                shutil.rmtree(half_made, ignore_errors=True)
    return root


def make(suite: str, folder: Path) -> None:
    """Let mmdebstrap make the root in this folder."""
    release = SUITE if suite == WORKLOADS else suite
    if not shutil.which("mmdebstrap"):
        raise RootFailed(f"root {suite}: needs the program mmdebstrap; run `apt-get install mmdebstrap`")
    try:
        with only_one("apt"):
            archives = sources(release)
    except subprocess.SubprocessError as error:
        raise RootFailed(f"root {suite}: apt-get does not answer; see what `apt-get update` says") from error
    command = [*SEPARATELY, "mmdebstrap", "--quiet", "--format=directory", *recipe(suite)]
    command += [release, str(folder), *archives]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True, timeout=BUILD_LIMIT)
    except subprocess.SubprocessError as error:
        free = shutil.disk_usage(folder.parent).free // 10**6
        raise RootFailed(
            f"root {suite}: mmdebstrap failed or took more than {BUILD_LIMIT} s, its messages are above; see that "
            f"{folder.parent} has space ({free} MB are free, 1500 are enough) and that apt-get can download"
        ) from error


def sources(suite: str) -> list[str]:
    """Return the machine's apt sources for this suite.

    Empty if the machine is not a Debian; mmdebstrap then uses its default.
    """
    if not shutil.which("apt-get"):
        return []
    subprocess.run(["apt-get", "-qq", "update"], check=False, timeout=BUILD_LIMIT)
    question = [
        "apt-get",
        "indextargets",
        "--format",
        "$(ORIGIN) $(SITE) $(RELEASE) $(COMPONENT)",
        "Created-By: Packages",
    ]
    answer = subprocess.run(question, check=True, capture_output=True, text=True, timeout=60).stdout
    targets = [line.split() for line in answer.splitlines()]
    own = own_suite()
    lines = [
        f"deb [signed-by={ARCHIVE_KEYRING}] {site} {release.replace(own, suite, 1)} main"
        for origin, site, release, component in (target for target in targets if len(target) == 4)
        if origin == "Debian" and component == "main" and own and release.startswith(own)
    ]
    return list(dict.fromkeys(lines))


def own_suite() -> str:
    release = Path("/etc/os-release").read_text(encoding="utf-8") if os.path.exists("/etc/os-release") else ""
    settings = dict(line.split("=", 1) for line in release.splitlines() if "=" in line)
    return settings.get("VERSION_CODENAME", "").strip('"')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", default=[SUITE], metavar="SUITE")
    suites = parser.parse_args().suites
    # ends as Ctrl-C does, so that no half-made root stays behind
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        for suite in suites:
            print(ensure(suite))
    except RootFailed as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{error.filename or shared_cache()}: {error.strerror}; name a folder with space in XDG_CACHE_HOME")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
