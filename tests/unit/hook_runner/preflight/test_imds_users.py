# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""`check --imds-users` names who has connections to IMDS."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from hook_runner.preflight.imds_users import check_imds_users
from hook_runner.preflight.report import INFO, WARNING, Report

NOBODY = 65534
CONNECT = """
import encodings.idna, os, socket, sys
os.setuid(%d)
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print('there', flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("family, address", [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::ffff:127.0.0.1")])
def test_a_user_with_a_connection_is_named_and_root_is_not(family: int, address: str) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        imds = server.getsockname()
        with socket.socket(family) as own:
            own.connect((address, imds[1]))
            report = Report()
            check_imds_users(0, report, imds)
            assert [each.severity for each in report.findings] == [INFO] and "no user but root" in report.findings[
                0
            ].text
            words = [sys.executable, "-c", CONNECT % NOBODY, address, str(imds[1])]
            with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/") as child:
                assert child.stdout is not None and child.stdout.readline() == b"there\n"
                report = Report()
                check_imds_users(0, report, imds)
                child.communicate()
            (found,) = report.findings
            assert (found.severity, found.what) == (WARNING, "imds-users")
            assert (
                "(%d) connected to %s:%d (1 connections)" % (NOBODY, *imds) in found.text
                and "managed-identity tokens" in found.text
            )
