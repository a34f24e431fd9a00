# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Turn changelogs/fragments into a release of the changelog.

It runs in a copy: antsibull-changelog copies the whole folder, and .cache contains root file systems.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.repository.collection_tree import copy_tree

REPOSITORY = Path(__file__).resolve().parents[1]
RELEASE = ("release", "--update-existing", "--reload-plugins", "--refresh-plugins", "prevent-removal")


def release(repository: Path) -> int:
    """Run antsibull-changelog and return its exit status.

    If it is 0, the changelog is replaced and the fragments are removed.
    """
    copy = copy_tree(repository, repository / ".cache" / "trees" / "release")
    programs = Path(sys.executable).parent
    # it runs ansible-doc
    environment = {**os.environ, "PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}
    status = subprocess.run(
        [programs / "antsibull-changelog", *RELEASE], cwd=copy, env=environment, check=False
    ).returncode
    if status == 0:
        for name in ("CHANGELOG.rst", "changelogs/changelog.yaml"):
            shutil.copyfile(copy / name, repository / name)
        for fragment in (repository / "changelogs" / "fragments").glob("*.y*ml"):
            if not (copy / "changelogs" / "fragments" / fragment.name).exists():
                fragment.unlink()
    return status


if __name__ == "__main__":
    sys.exit(release(REPOSITORY))
