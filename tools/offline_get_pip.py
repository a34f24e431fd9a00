# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Replaces the bootstrap script of pip that ansible-test would download.

ansible-test takes ~/.ansible/test/cache/get_pip_<version with _>.py instead when that is there.
This is copied to that name, beside a wheel of pip that came from the ordinary package registry.
Runs on every Python that ansible-test knows.
"""

import os
import runpy
import sys

FOLDER, NAME = os.path.split(os.path.abspath(__file__))
VERSION = os.path.splitext(NAME)[0].replace("get_pip_", "").replace("_", ".")
UNSUPPORTED_OPTIONS = ("--no-setuptools", "--no-wheel")

if __name__ == "__main__":
    sys.path.insert(0, os.path.join(FOLDER, f"pip-{VERSION}-py3-none-any.whl"))
    sys.argv = ["pip", "install"] + [word for word in sys.argv[1:] if word not in UNSUPPORTED_OPTIONS]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
