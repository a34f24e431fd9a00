# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""The links below salt/azure_events/hooks to the ready hooks: python -m tools.repository.hook_links makes them.

Only files are links: gitfs does not follow links to folders. The launcher of each hook is a link to a
regular file.
"""

from __future__ import annotations

import os
from pathlib import Path

from tools.repository.collection_tree import tracked_or_new

SOURCE = Path("roles", "ready_hooks", "files")
LINKS = Path("salt", "azure_events", "hooks")


def wanted_links(repository: Path) -> dict[Path, str]:
    """Return the path and the target of each link that belongs there."""
    return {
        LINKS / name.relative_to(SOURCE): _target(repository, name)
        for name in tracked_or_new(repository)
        if SOURCE in name.parents and name.suffix != ".draft"
    }


def present_links(repository: Path) -> dict[Path, str]:
    """Return the path and the target of each file below the folder of links; "" for a regular file."""
    found = [path for path in (repository / LINKS).rglob("*") if path.is_symlink() or path.is_file()]
    return {path.relative_to(repository): os.readlink(path) if path.is_symlink() else "" for path in found}


def make_links(repository: Path) -> list[Path]:
    """Make missing links, correct wrong ones, remove those without a file; return the changed paths."""
    wanted, present = wanted_links(repository), present_links(repository)
    changed = sorted(path for path in {*wanted, *present} if wanted.get(path) != present.get(path))
    for path in changed:
        link = repository / path
        link.unlink(missing_ok=True)
        if path in wanted:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(wanted[path])
    return changed


def _target(repository: Path, name: Path) -> str:
    file = (repository / name).resolve().relative_to(repository.resolve())
    return os.path.relpath(file, (LINKS / name.relative_to(SOURCE)).parent)


if __name__ == "__main__":
    for changed_path in make_links(Path(__file__).resolve().parents[2]):
        print(changed_path)
