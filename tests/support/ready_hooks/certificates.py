# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: Contributors to the azure_imds.scheduled_events collection

"""An authority for certificates, and a server certificate for one address, made by openssl."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


class Certificates:
    """The files, in an existing folder, of an authority and of one server with an IP address."""

    def __init__(self, folder: Path, address: str) -> None:
        self.authority = folder / "authority.pem"
        self._certificate, self._key = folder / "server.pem", folder / "server.key"
        request, extensions, authority_key = folder / "server.csr", folder / "server.ext", folder / "authority.key"
        extensions.write_text(f"subjectAltName=IP:{address}\n", encoding="ascii")
        files = ("-keyout", str(authority_key), "-out", str(self.authority))
        _openssl("req", "-x509", *_KEY, "-subj", "/CN=authority of the tests", *files)
        _openssl("req", *_KEY, "-subj", f"/CN={address}", "-keyout", str(self._key), "-out", str(request))
        signed_by = ("-CA", str(self.authority), "-CAkey", str(authority_key), "-CAcreateserial", "-days", "2")
        signed = ("-in", str(request), "-out", str(self._certificate), "-extfile", str(extensions))
        _openssl("x509", "-req", *signed_by, *signed)

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate, self._key)
        return context


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)
