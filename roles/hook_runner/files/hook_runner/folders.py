# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The folders that the daemon works in: nobody else may write there, and who else may read the journal."""

from __future__ import annotations

import os
from typing import Optional

from hook_runner.configuration import ConfigError, Settings
from hook_runner.trust import untrusted


def refuse_foreign(settings: Settings, owners: frozenset[int]) -> None:
    """Refuse folders in which others than `owners` could put files; one that is not there will be ours. Raises ConfigError."""
    for key, folder in (("run_directory", settings.run_directory), ("journal", os.path.dirname(settings.journal))):
        reason = untrusted(folder, folder, owners) if os.path.lexists(folder) else None
        if reason is not None:
            raise ConfigError("%s: the service does not work in the folder %s: %s" % (key, folder, reason))


def share_journal(journal: str, group: Optional[int]) -> None:
    """Let a group read the journal, and no other one; the daemon's own group where it is None. Raises OSError.

    A folder that holds anything else is not ours to give to a group, and its group may be somebody's intention; unless it is
    the one that systemd made for this service.
    """
    folder, name = os.path.split(journal)
    made_for_us = folder in os.environ.get("STATE_DIRECTORY", "").split(":")
    is_ours = made_for_us or all(entry.startswith(name) for entry in os.listdir(folder))
    if group is None and not is_ours:
        return
    wanted = os.getegid() if group is None else group
    for path in ([folder] if is_ours else []) + [journal, journal + "-wal", journal + "-shm"]:
        try:
            if os.stat(path).st_gid != wanted:
                os.chown(path, -1, wanted)
        except FileNotFoundError:
            pass  # SQLite makes it when it needs it, for the journal's own group
    found = os.stat(folder)
    if found.st_gid != wanted and found.st_mode & 0o005 != 0o005:
        raise PermissionError("the folder %s holds other files too, and is left as it is" % folder)
