#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

# Check the direction of imports by the contracts in pyproject.toml, with import-linter.
# The collection's own imports need a folder of its full name: a link to the checkout.
set -eu
cd "$(dirname "$0")/.."
link=.cache/import-linter/ansible_collections/azure_imds
mkdir -p "$link"
ln -sfn ../../../.. "$link/scheduled_events"
PYTHONPATH=plugins/module_utils:roles/hook_runner/files:roles/imds_simulator/files:roles/ready_hooks/files:salt/_utils:salt:.cache/import-linter \
    exec .venv/bin/lint-imports --cache-dir .cache/import-linter/cache "$@"
