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
    return parse(file.read_text()) if file.exists() else {}


def parse(text: str) -> Samples:
    """Return the samples of a text in the format of Prometheus, as `read` does."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        assert family.name.startswith(PREFIX) and family.documentation
        for sample in family.samples:
            found[sample.name[len(PREFIX) :], tuple(sorted(sample.labels.items()))] = sample.value
    return found
