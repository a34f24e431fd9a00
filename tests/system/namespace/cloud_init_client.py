# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Prints what cloud-init's Azure data source makes of the instance metadata at 169.254.169.254.

test_cloud_init.py runs this program with cloud-init in PYTHONPATH; its argument is an empty folder.
"""

from __future__ import annotations

import json
import sys
import time

from cloudinit import helpers
from cloudinit.sources import DataSourceAzure as azure

folder = sys.argv[1]
paths = helpers.Paths({"cloud_dir": f"{folder}/cloud", "run_dir": f"{folder}/run"})
source = azure.DataSourceAzure({}, None, paths)
try:
    from cloudinit.sources.azure import imds
except ImportError:
    # older versions
    metadata = source.get_imds_data_with_api_fallback(retries=3)
else:
    metadata = imds.fetch_metadata_with_api_fallback(retry_deadline=time.time() + 30)
source.metadata = {"imds": metadata}
made = {
    "ssh_keys": source.get_public_ssh_keys(),
    "user": azure._username_from_imds(metadata),
    "host_name": azure._hostname_from_imds(metadata),
    "user_data": azure._userdata_from_imds(metadata),
    "disable_password": azure._disable_password_from_imds(metadata),
    "mac": azure.normalize_mac_address(metadata["network"]["interface"][0]["macAddress"]),
    "compute": metadata["compute"],
}
print(json.dumps(made))
