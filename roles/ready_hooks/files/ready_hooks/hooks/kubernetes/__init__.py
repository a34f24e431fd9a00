# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The hook kubernetes: cordon and drain a node by kubectl."""

from ready_hooks.hooks.kubernetes.kubernetes_hook import Kubernetes

HOOK = Kubernetes
