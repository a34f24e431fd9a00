# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The file of metrics, read as node_exporter reads it."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]

PREFIX = "azure_scheduled_events_"


def read(file: Path) -> Samples:
    """(name without prefix, labels) to value."""
    if not file.exists():
        return {}
    found: Samples = {}
    for family in text_string_to_metric_families(file.read_text()):
        assert family.name.startswith(PREFIX) and family.documentation
        for sample in family.samples:
            found[sample.name[len(PREFIX) :], tuple(sorted(sample.labels.items()))] = sample.value
    return found
