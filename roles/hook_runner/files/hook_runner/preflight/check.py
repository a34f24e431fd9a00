# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The verb `check`: finds mistakes before an event comes. It changes nothing, and runs before the installation too."""

from __future__ import annotations

import os

from azure_scheduled_events.policy import AFTER_PREPARE, NOW
from hook_runner.config.settings import (
    DEFAULT_PATH,
    NO_APPROVAL_WARNING,
    ConfigError,
    Settings,
    config_problem,
    load_settings,
)
from hook_runner.hooks.discovery import Hook
from hook_runner.maintenance.leader import EXTERNAL
from hook_runner.permissions import trusted_owners
from hook_runner.preflight.hook_checks import check_hooks_themselves
from hook_runner.preflight.hook_records import FOLDER, check_hook_records
from hook_runner.preflight.hooks import check_hooks
from hook_runner.preflight.host import check_host
from hook_runner.preflight.imds import check_imds
from hook_runner.preflight.other_handlers import check_other_handlers
from hook_runner.preflight.report import ERROR, INFO, WARNING, Report
from hook_runner.records import PREPARE, RECOVER, STAGES


def run_checks(
    config_path: str,
    hooks_directory: str | None = None,
    offline: bool = False,
    owners: frozenset[int] | None = None,
    root: str = "/",
    ask_hooks: bool | None = None,
) -> Report:
    """Check configuration, hooks, permissions and IMDS.

    Args:
        config_path: the configuration.
        hooks_directory: hooks of another directory than that of the configuration.
        offline: do not send requests to IMDS. A request switches its Scheduled Events on for this
            VM.
        owners: uids whose files are trusted; by default those of root and of this process.
        root: folder below which the files of other programs are.
        ask_hooks: whether to run the checks of the hooks themselves, and to compare the records of
            ready hooks with the recover hooks; by default not if `offline`,
            because a stopped workload must not prevent the reload of the daemon.
    """
    report = Report()
    owners = trusted_owners() if owners is None else owners
    settings = _config(config_path, owners, report)
    if settings is None:
        return report
    hooks = check_hooks(hooks_directory or settings.hooks_directory, settings, owners, report)
    for text in settings.warnings:
        report.add(WARNING, "configuration", config_path, text)
    _check_policy(settings, hooks, report)
    check_host(settings, owners, report)
    # the role and the reload of the daemon check offline, and a daemon may watch beside another owner
    severity = WARNING if offline else ERROR
    check_other_handlers(settings.endpoint, settings.leader != EXTERNAL, severity, report, root)
    if ask_hooks or (ask_hooks is None and not offline):
        check_hooks_themselves((hook for stage in STAGES for hook in hooks[stage]), settings, report)
        check_hook_records(os.path.join(root, FOLDER.lstrip("/")), hooks[RECOVER], report)
    if not offline:
        check_imds(settings, report)
    return report


def _config(path: str, owners: frozenset[int], report: Report) -> Settings | None:
    """Return the configuration with which the other checks go on; None if it is not usable.

    One that users who are not trusted could change is an error, and is read nevertheless.
    """
    if not os.path.lexists(path) and path == DEFAULT_PATH:
        report.add(INFO, "configuration", path, "there is no such file; the defaults hold")
    elif os.path.lexists(path):
        problem = config_problem(path, owners)
        if problem is not None:
            report.add(ERROR, "configuration", path, problem)
    try:
        return load_settings(path)
    except ConfigError as error:
        for problem in error.problems:
            report.add(ERROR, "configuration", path, problem)
        return None


def _check_policy(settings: Settings, hooks: dict[str, tuple[Hook, ...]], report: Report) -> None:
    name = settings.policy.name
    if not settings.policy.may_approve():
        report.add(WARNING, "policy", name, NO_APPROVAL_WARNING % name)
    elif settings.dry_run:
        report.add(WARNING, "policy", name, "dry_run is set; nothing is approved")
    if NOW in settings.policy.approval_times() and hooks[PREPARE]:
        text = (
            "the policy has `approve: now` and there are prepare hooks: the approval does not wait for them;"
            " use `approve: after_prepare`"
        )
        report.add(WARNING, "policy", name, text)
    if AFTER_PREPARE in settings.policy.approval_times() and not settings.policy.is_preset and not hooks[PREPARE]:
        report.add(
            WARNING,
            "policy",
            name,
            "the policy approves after preparation, but there is no prepare hook: it approves at once",
        )
