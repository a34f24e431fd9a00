# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The root file systems of the hosts: small Debians, each created once below .cache/hosts."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from support.repository import REPOSITORY

CACHE = REPOSITORY / ".cache" / "hosts"
SUITE = "bookworm"
OTHER_SUITES = ("bullseye", "trixie")
# the same Debian with the workloads of the ready hooks, which are installed and disabled
WORKLOADS = "workloads"
# the CRIU of Debian 12 does not work with new kernels
CRIU_SUITE = "trixie"

BUILD_LIMIT = 600
ARCHIVE_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# Hosts have no access to archives; therefore the root has all packages that the roles install.
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "iproute2", "nftables", "openssh-server", "procps", "python3", "python3-apt"),
    *("python3-aiohttp", "python3-jsonschema", "python3-prometheus-client", "python3-requests", "python3-yaml"),
)
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
    '--customize-hook=chroot "$1" systemctl mask ' + " ".join(MASKED),
    # tests/labs/chaos creates separate keys for each host, and starts the service
    '--customize-hook=rm -f "$1"/etc/ssh/ssh_host_*; chroot "$1" systemctl disable ssh.service',
)
WORKLOAD_RECIPE = (
    *RECIPE,
    "--include=" + ",".join(WORKLOAD_PACKAGES),
    # the packages enable their units
    "--customize-hook=for unit in "
    + " ".join(WORKLOAD_UNITS)
    + '; do chroot "$1" systemctl disable --quiet "$unit.service"; done',
)


def recipe(suite: str) -> tuple[str, ...]:
    """Return the options of mmdebstrap for this suite."""
    if suite == CRIU_SUITE:
        return (*RECIPE, "--include=criu")
    return WORKLOAD_RECIPE if suite == WORKLOADS else RECIPE


def location(suite: str = SUITE, cache: Path = CACHE) -> Path:
    """Return the folder of the root of this suite; its name depends on the recipe."""
    return cache / f"root-{suite}-{hashlib.sha256(json.dumps(recipe(suite)).encode()).hexdigest()[:12]}"


def ensure(suite: str = SUITE, cache: Path = CACHE) -> Path:
    """Create the root if it is missing. Needs root's rights and an archive of Debian."""
    root = location(suite, cache)
    release = SUITE if suite == WORKLOADS else suite
    with only_one(cache, suite):
        if not root.is_dir():
            half_made = root.with_suffix(".new")
            shutil.rmtree(half_made, ignore_errors=True)
            with only_one(cache, "apt"):
                subprocess.run(["apt-get", "-qq", "update"], check=False, timeout=BUILD_LIMIT)
                archives = sources(release)
            command = ["mmdebstrap", "--quiet", "--format=directory", *recipe(suite)]
            command += [release, str(half_made), *archives]
            subprocess.run(command, check=True, timeout=BUILD_LIMIT)
            half_made.rename(root)
    return root


@contextlib.contextmanager
def only_one(cache: Path, what: str) -> Iterator[None]:
    """Hold a lock, so that no two processes create the same root or use apt-get at the same time."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sources(suite: str) -> list[str]:
    """Return the machine's apt sources for this suite.

    Empty if the machine is not a Debian; mmdebstrap then uses its default.
    """
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
    for suite in parser.parse_args().suites:
        print(ensure(suite))


if __name__ == "__main__":
    main()
