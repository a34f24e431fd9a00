# Copyright: Contributors to the azure_imds.scheduled_events collection
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The receipts of a Windows host, which are on the controller, and its policy file, which is on the host."""

from __future__ import annotations

import os
import tempfile
import typing as t

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ...module_utils._event_tasks.event_task import InvalidOptions
from ...module_utils.azure_scheduled_events.policy import Policy
from ...module_utils.azure_scheduled_events.receipts import default_folder
from .._host_folder import folder_of_host


def receipts_of_host(folder: str | None, host: str) -> str:
    """Return the path of the folder on the controller for the receipts of a host.

    ``folder`` is for the receipts of all hosts; None for the default folder of the user. ``host`` is its name in the
    inventory.
    """
    return folder_of_host(folder or default_folder(), host)


def policy_of_host(path: str, fetch: t.Callable[[str, str], object]) -> Policy:
    """Return the policy in a file on the host, which ``fetch`` copies to a path on the controller.

    Raises:
        InvalidOptions: the file cannot be read, is not YAML, or is not a policy.
        AnsibleConnectionFailure: the host cannot be reached.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "policy")
        try:
            fetch(path, copy)
            with open(copy, encoding="utf-8") as file:
                return Policy.from_yaml(file.read(), path)
        except AnsibleConnectionFailure:
            raise
        except (AnsibleError, OSError, UnicodeDecodeError) as error:
            raise InvalidOptions(f"policy_file: {path} on the host cannot be read: {error}") from error
        except ValueError as error:
            raise InvalidOptions(str(error)) from error
