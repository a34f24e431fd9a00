# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Lets plain pytest import the collection by its full name, as Ansible does.

That name needs folders of that name, so pytest gets a copy of the checkout in them. ansible-test
works in such a copy already. The code refuses folders that other users can change; therefore the
tests make none, whichever umask the user has.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

os.umask(0o022)

if "ansible_collections" not in REPOSITORY.parts:
    from tools.repository.collection_tree import copy_tree

    COLLECTIONS = REPOSITORY / ".cache" / "trees" / "pytest"
    copy_tree(REPOSITORY, COLLECTIONS)
    sys.path.append(str(COLLECTIONS))
