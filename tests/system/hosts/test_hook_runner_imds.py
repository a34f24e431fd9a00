# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The option hook_runner_restrict_imds on a real host: which users reach IMDS, also after a reboot and a reload."""

from __future__ import annotations

import pytest

from support.hosts.role_host import Azure, RoleHost
from support.recipes.printed import printed_in
from support.wait import wait_until

pytestmark = pytest.mark.all

# the host of test_hook_runner_role.py, which removes the restriction by the removal of all
VM = "role"
UNIT = "azure-scheduled-events-imds.service"
TABLE = "inet azure_scheduled_events"
ASK = """
import http.client, sys, time
began = time.monotonic()
try:
    imds = http.client.HTTPConnection("169.254.169.254", timeout=10)
    imds.request("GET", "/metadata/instance?api-version=2021-02-01", headers={"Metadata": "true"})
    print(imds.getresponse().status)
except ConnectionRefusedError:
    print("refused" if time.monotonic() - began < 5 else "slow")
"""
# many hosts have such a file, whose first line removes all other tables
HOSTS_RULES = """#!/usr/sbin/nft -f
flush ruleset
table inet own {
    chain input {
        type filter hook input priority filter;
    }
}
"""


@pytest.fixture(scope="module", autouse=True)
def users(installed: RoleHost) -> None:
    installed.host.run(["sh", "-c", "useradd --no-create-home named; useradd --no-create-home other"])


def answers(site: RoleHost) -> dict[str, str]:
    """Return the answer of IMDS to each user."""
    return {
        user: site.host.run(["runuser", "-u", user, "--", "python3", "-c", ASK]).stdout.strip()
        for user in ("root", "named", "other")
    }


ALL = {"root": "200", "named": "200", "other": "200"}
RESTRICTED = {**ALL, "other": "refused"}


def test_unrestricted_imds_answers_any_user(site: RoleHost) -> None:
    assert answers(site) == ALL
    assert site.host.run(["systemctl", "cat", UNIT], check=False).returncode != 0


def test_printed_command_names_the_user_whom_a_restriction_would_block(site: RoleHost) -> None:
    (printed,) = [found.name for found in printed_in("roles/hook_runner/README.md") if " ss " in found.name]
    loop = "import http.client\nwhile True:\n    imds = http.client.HTTPConnection('169.254.169.254', timeout=10)\n"
    loop += "    imds.request('GET', '/metadata/instance?api-version=2021-02-01', headers={'Metadata': 'true'})\n"
    loop += "    imds.getresponse().read()\n"
    requests = f'runuser -u other -- timeout 10 python3 -c "{loop}" >/dev/null 2>&1'
    said = site.host.run(["bash", "-c", f"{requests} & {printed.replace('60', '3', 1)}; kill $!"], check=False).stdout
    user = site.host.run(["id", "--user", "other"]).stdout.strip()
    assert [line.split()[1] for line in said.splitlines()] == [f"uid:{user}"], said


def test_restricted_imds_answers_only_root_and_the_named_user(site: RoleHost, azure: Azure) -> None:
    check = site.apply("--check", "--diff", restrict_imds=True, imds_users=["named"])
    assert check.status == 0 and answers(site) == ALL, check.text
    applied = site.must_apply(restrict_imds=True, imds_users=["named"])
    assert answers(site) == RESTRICTED, applied.text
    again = site.apply(restrict_imds=True, imds_users=["named"])
    assert (again.status, again.changed_tasks, again.changed) == (0, [], 0), again.text
    # the daemon still works
    event = azure.announce("Reboot", site.host.name, hold=True)
    azure.wait_for_approval(event, site)


def test_unknown_imds_user_is_refused(site: RoleHost) -> None:
    assert site.apply(restrict_imds=True, imds_users=["no-such-user"]).status != 0
    assert answers(site) == RESTRICTED


def test_restriction_survives_reload_and_restart_of_nftables(site: RoleHost) -> None:
    site.host.file("/etc/nftables.conf").write_text(HOSTS_RULES, encoding="utf-8")
    for verb in ("start", "reload", "restart", "stop", "start"):
        site.host.run(["systemctl", verb, "nftables.service"])
        assert answers(site) == RESTRICTED, verb
        assert ("table inet own" in site.host.run(["nft", "list", "tables"]).stdout) == (verb != "stop")


def test_restriction_survives_a_reboot(site: RoleHost) -> None:
    site.host.run(["systemctl", "enable", "nftables.service"])
    site.host.reboot()
    wait_until(site.watches, "the daemon polls", site.log)
    assert answers(site) == RESTRICTED
    assert site.host.run(["systemctl", "is-system-running"], check=False).stdout == "running\n"


def test_restriction_is_removed_when_disabled(site: RoleHost) -> None:
    site.must_apply()
    assert answers(site) == ALL
    left = site.host.run(["find", "/etc", "-name", "azure-scheduled-events-imds*", "-o", "-name", "nftables.service.d"])
    assert left.stdout == "" and TABLE not in site.host.run(["nft", "list", "tables"]).stdout
    assert site.host.run(["systemctl", "is-system-running"], check=False).stdout == "running\n"
