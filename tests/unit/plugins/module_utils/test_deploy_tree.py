# Copyright: Contributors to the azure_imds.scheduled_events collection
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and folders of a role become equal to their source, with a list of the differences."""

from __future__ import annotations

import io
import json
import os

import pytest
from ansible_collections.azure_imds.scheduled_events.plugins.module_utils._deploy_tree import deploy, main

TREE = {"main.py": "main", "inner/part.py": "part"}


@pytest.fixture(name="source")
def source_fixture(tmp_path):
    for name, text in TREE.items():
        file = tmp_path / "source" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "source"


@pytest.fixture(name="deployed")
def deployed_fixture(source, tmp_path):
    deploy(source, tmp_path / "deployed")
    return tmp_path / "deployed"


def names(paths, folder):
    return sorted(str(path.relative_to(folder)) for path in paths)


def test_deploy_missing_folder_creates_it_and_second_run_changes_nothing(source, tmp_path):
    destination = tmp_path / "new" / "deployed"
    changed = deploy(source, destination)
    assert names(changed, destination) == [".", "inner", "inner/part.py", "main.py"]
    assert {name: (destination / name).read_text() for name in TREE} == TREE
    assert deploy(source, destination) == []


def test_deploy_check_lists_differences_and_changes_nothing(source, deployed, tmp_path):
    (deployed / "main.py").write_text("spoilt")
    (deployed / "extra").mkdir()
    assert names(deploy(source, deployed, check=True), deployed) == ["extra", "main.py"]
    assert (deployed / "main.py").read_text() == "spoilt" and (deployed / "extra").exists()
    assert len(deploy(source, tmp_path / "absent", check=True)) == 4 and not (tmp_path / "absent").exists()


def test_deploy_restores_content_mode_kind_and_removes_extra_files(source, deployed):
    (deployed / "main.py").unlink()
    (deployed / "main.py").mkdir()
    (deployed / "inner").chmod(0o700)
    (deployed / "inner" / "part.py").chmod(0o600)
    (deployed / "inner" / "extra.py").write_text("")
    assert names(deploy(source, deployed), deployed) == ["inner", "inner/extra.py", "inner/part.py", "main.py"]
    assert deploy(source, deployed) == []
    assert not (deployed / "inner" / "extra.py").exists()


def test_deploy_changed_file_replaces_the_file_instead_of_writing_into_it(source, deployed):
    with open(str(deployed / "main.py")) as reader:
        (source / "main.py").write_text("newer")
        deploy(source, deployed)
        assert reader.read() == "main"
    assert (deployed / "main.py").read_text() == "newer"


def test_deploy_link_copies_the_link(source, deployed):
    (source / "link").symlink_to("no-such-file")
    assert names(deploy(source, deployed), deployed) == ["link"]
    assert os.readlink(str(deployed / "link")) == "no-such-file"
    assert deploy(source, deployed) == []


def test_deploy_keeps_compiled_files_until_a_file_beside_them_changes(source, deployed):
    compiled = deployed / "__pycache__"
    compiled.mkdir()
    assert deploy(source, deployed) == [] and compiled.exists()
    (source / "main.py").write_text("newer")
    assert names(deploy(source, deployed), deployed) == ["main.py"] and not compiled.exists()


def test_main_deploys_texts_from_standard_input_and_files(tmp_path, monkeypatch, capsys):
    file, bundle = tmp_path / "file", tmp_path / "bundle"
    (tmp_path / "other").write_text("other")
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({**TREE, "run": "#!/bin/sh\n"})))
    before = os.umask(0o077)
    try:
        main(["-", str(bundle), str(tmp_path / "other"), str(file)])
    finally:
        os.umask(before)
    assert capsys.readouterr().out.splitlines() == [
        str(path)
        for path in (bundle, bundle / "inner", bundle / "inner/part.py", bundle / "main.py", bundle / "run", file)
    ]
    modes = [(path.stat().st_mode & 0o777) for path in (bundle, bundle / "inner/part.py", bundle / "run")]
    assert modes == [0o755, 0o644, 0o755] and file.read_text() == "other"
