# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""Secret files: their permissions, their content, and the headers as the receiver verifies them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from pathlib import Path

import pytest

from hook_runner.config.settings import Settings
from hook_runner.permissions import trusted_owners
from hook_runner.push.credentials import UnusableSecret, credentials, read_secret, secret_problems

OWNERS = trusted_owners()


def secret(folder: Path, content: bytes = b"s3cret\n", mode: int = 0o600) -> str:
    path = folder / "token"
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("content", [b"s3cret", b"s3cret\n", b"s3cret\r\n"])
def test_a_secret_is_the_only_line(tmp_path: Path, content: bytes) -> None:
    assert read_secret(secret(tmp_path, content), OWNERS) == "s3cret"


@pytest.mark.parametrize("content", [b"", b"\n", b"two words\n", b"a\nb\n", b"x" * 4097, b"\xc3\xa4\n", b"a\0b"])
def test_other_content_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UnusableSecret) as raised:
        read_secret(secret(tmp_path, content), OWNERS)
    assert str(raised.value).startswith(f"{tmp_path}/token: expected one line") and "two words" not in str(raised.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_secret_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(UnusableSecret, match=r"other users can read it \(mode 06"):
        read_secret(secret(tmp_path, mode=mode), OWNERS)


def test_a_secret_that_others_can_replace_is_refused(tmp_path: Path) -> None:
    path = secret(tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(UnusableSecret, match="it is refused"):
        read_secret(path, OWNERS)
    tmp_path.chmod(0o700)
    with pytest.raises(UnusableSecret, match="belongs to user"):
        read_secret(path, frozenset({os.geteuid() + 12345}))


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    settings = Settings(push_token_file=str(tmp_path / "none"), push_hmac_file=str(tmp_path))
    first, second = secret_problems(settings, OWNERS)
    assert first.startswith(f"push_token_file: {tmp_path}/none") and second.startswith("push_hmac_file: ")


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512", "sha1"])
@pytest.mark.parametrize("form", ["hex", "base64"])
def test_headers_have_the_token_and_the_signature_of_the_body(tmp_path: Path, algorithm: str, form: str) -> None:
    path = secret(tmp_path)
    settings = Settings(
        push_token_file=path,
        push_hmac_file=path,
        push_hmac_algorithm=algorithm,
        push_hmac_format=form,
        push_hmac_header="X-Sig",
    )
    made = hmac.new(b"s3cret", b"{}", getattr(hashlib, algorithm))
    digest = made.hexdigest() if form == "hex" else base64.b64encode(made.digest()).decode()
    assert credentials(settings, b"{}", OWNERS) == {"Authorization": "Bearer s3cret", "X-Sig": f"{algorithm}={digest}"}
    assert credentials(Settings(), b"{}", OWNERS) == {}
