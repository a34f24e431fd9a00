# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""A policy from a YAML file, with errors that name file, line and key."""

from __future__ import annotations

from .policy import Policy
from .yaml_lines import load_with_lines, read_text

# bytes
_LONGEST = 64 * 1024


def load_policy(path: str) -> Policy:
    """Return the policy in a file.

    Raises:
        ValueError: the file cannot be read, or ``parse_policy`` raised it.
    """
    return parse_policy(read_text(path, "policy file"), path)


def parse_policy(text: str, name: str) -> Policy:
    """Return the policy in YAML text; ``name`` is that of the file, for error texts.

    Raises:
        ValueError: the text is longer than 64 KiB, is not YAML, or is not a policy.
    """
    if len(text.encode("utf-8", "replace")) > _LONGEST:
        raise ValueError(f"{name}: a policy of more than 64 KiB; divide it, or remove rules")
    data, location = load_with_lines(text, name, "policy file")
    if not location.lines:
        raise ValueError(f"{name}:1: the policy is empty")
    return Policy.from_mapping(data, location)
