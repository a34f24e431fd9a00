# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verb `check`: finds mistakes before an event comes. It changes nothing, and runs before the installation too."""

from __future__ import annotations

import os
from typing import Iterator, Sequence

from azure_scheduled_events.policy import AFTER_PREPARE, NOW
from hook_runner.config.settings import (
    DEFAULT_PATH,
    NO_APPROVAL_WARNING,
    ConfigError,
    Settings,
    config_problem,
    load_settings,
)
from hook_runner.hooks.discovery import Hook, discover_hooks
from hook_runner.maintenance.leader import EXTERNAL
from hook_runner.permissions import trusted_owners
from hook_runner.preflight.hook_checks import check_hooks_themselves
from hook_runner.preflight.hook_records import FOLDER, check_hook_records
from hook_runner.preflight.hooks import check_hooks
from hook_runner.preflight.host import check_host
from hook_runner.preflight.imds import check_imds
from hook_runner.preflight.other_handlers import check_other_handlers
from hook_runner.preflight.report import ERROR, INFO, WARNING, Finding, Report
from hook_runner.records import PREPARE, RECOVER


def run_checks(
    config_path: str,
    hooks_directory: str | None = None,
    offline: bool = False,
    root: str = "/",
    ask_hooks: bool = False,
) -> Report:
    """Check configuration, hooks, permissions and IMDS.

    Args:
        config_path: the configuration.
        hooks_directory: hooks of another directory than that of the configuration.
        offline: do not send requests to IMDS. A request switches its Scheduled Events on for this
            VM.
        root: folder below which the files of other programs are.
        ask_hooks: if `offline`, let the hooks check themselves nevertheless, and compare the records of ready hooks
            with the recover hooks. A stopped workload must not prevent a reload, which checks offline.
    """
    owners = trusted_owners()
    findings = [*_check_file(config_path, owners)]
    try:
        settings = load_settings(config_path)
    except ConfigError as error:
        return Report([*findings, *(Finding(ERROR, "configuration", config_path, text) for text in error.problems)])
    directory = hooks_directory or settings.hooks_directory
    hooks, skipped = discover_hooks(directory, settings, owners)
    findings += check_hooks(directory, hooks, skipped, settings)
    findings += (Finding(WARNING, "configuration", config_path, text) for text in settings.warnings)
    warnings = _policy_warnings(settings, hooks[PREPARE])
    findings += (Finding(WARNING, "policy", settings.policy.name, text) for text in warnings)
    findings += check_host(settings, owners)
    # the role and the reload of the daemon check offline, and a daemon may watch beside another owner
    severity = WARNING if offline else ERROR
    findings += check_other_handlers(settings.endpoint, settings.leader != EXTERNAL, severity, root)
    if ask_hooks or not offline:
        findings += check_hooks_themselves([hook for of_stage in hooks.values() for hook in of_stage], settings)
        findings += check_hook_records(os.path.join(root, FOLDER.lstrip("/")), hooks[RECOVER])
    if not offline:
        findings += check_imds(settings)
    return Report(findings)


def _check_file(path: str, owners: frozenset[int]) -> Iterator[Finding]:
    """Report a file that does not exist, or that users who are not trusted could change; it is read nevertheless."""
    if os.path.lexists(path):
        problem = config_problem(path, owners)
        if problem is not None:
            yield Finding(ERROR, "configuration", path, problem)
    elif path == DEFAULT_PATH:
        yield Finding(INFO, "configuration", path, "there is no such file; the defaults hold")


def _policy_warnings(settings: Settings, prepare_hooks: Sequence[Hook]) -> Iterator[str]:
    policy = settings.policy
    if not policy.may_approve():
        yield NO_APPROVAL_WARNING % policy.name
    elif settings.dry_run:
        yield "dry_run is set; nothing is approved"
    if NOW in policy.approval_times() and prepare_hooks:
        yield (
            "the policy has `approve: now` and there are prepare hooks: the approval does not wait for them;"
            " use `approve: after_prepare`"
        )
    if AFTER_PREPARE in policy.approval_times() and not policy.is_preset and not prepare_hooks:
        yield "the policy approves after preparation, but there is no prepare hook: it approves at once"
