# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: BSD-2-Clause
"""The hook notify: a web hook by itself, every other service through apprise."""

from ready_hooks.hooks.notify.notify_hook import Notify

HOOK = Notify
