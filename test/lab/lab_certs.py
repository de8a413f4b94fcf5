"""The lab's certificates: one test CA per run, leaf certificates made when first asked for.

All leaves share one EC key; a TLS context is kept per name.  The names come from a client's SNI and
so from anyone: what is not a plain host name is shown the default certificate.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import threading

import lab_zone

PLAIN_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"
                        r"(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)+")
COMMON_NAME_MAX = 64
DEFAULT_NAME = "default.cell-lab.net"  # what a client without SNI is shown
NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
CA_EXTENSIONS = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
# Where distributions keep the bundle of trusted CAs.
SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def _openssl(*args: str) -> None:
    done = subprocess.run(["openssl", *args], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]}: {done.stderr.strip()}")


class Authority:
    """The test CA and a foreign CA that nobody trusts, in `directory` (private but for ca.pem)."""

    def __init__(self, directory: str, ca_path: str) -> None:
        self._dir = directory
        self.ca_path = ca_path
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._lock = threading.Lock()

    def create(self) -> None:
        """Make the CA and the leaves' key.  Once per run, before any server is forked."""
        os.mkdir(self._dir, 0o700)
        self._make_ca("ca", "Cell lab test CA")
        shutil.copyfile(self._path("ca.pem"), self.ca_path)
        _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout",
                 "-out", self._path("leaf.key"))

    def _path(self, name: str) -> str:
        return os.path.join(self._dir, name)

    def _make_ca(self, stem: str, common_name: str) -> None:
        _openssl("req", "-x509", *NEW_KEY, "-days", "30", "-subj", f"/CN={common_name}",
                 *CA_EXTENSIONS, "-keyout", self._path(stem + ".key"),
                 "-out", self._path(stem + ".pem"))

    def context_for(self, sni: str | None) -> ssl.SSLContext:
        """The server context for a name, made on first use."""
        name = (sni or "").lower()
        if not PLAIN_NAME.fullmatch(name):
            name = DEFAULT_NAME
        with self._lock:
            if name not in self._contexts:
                self._contexts[name] = self._make_context(name)
            return self._contexts[name]

    def _make_context(self, name: str) -> ssl.SSLContext:
        known = lab_zone.lookup(name)
        behaviour = known.cert if known else "good"
        issuer = "foreign" if behaviour == "untrusted" else "ca"
        if not os.path.exists(self._path(issuer + ".pem")):
            self._make_ca(issuer, "Foreign CA")
        shown = "somebody-else.cell-lab.net" if behaviour == "wrong-name" else name
        # The file name holds the process id because two server processes share the directory.
        leaf = self._path(f"{name}.{os.getpid()}.pem")
        _openssl("req", "-x509", "-new", "-key", self._path("leaf.key"), "-days", "30",
                 "-CA", self._path(issuer + ".pem"), "-CAkey", self._path(issuer + ".key"),
                 "-subj", f"/CN={shown[:COMMON_NAME_MAX]}",
                 "-addext", f"subjectAltName=DNS:{shown}",
                 "-addext", "basicConstraints=critical,CA:FALSE",
                 "-addext", "extendedKeyUsage=serverAuth", "-out", leaf)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(leaf, self._path("leaf.key"))
        context.set_alpn_protocols(["http/1.1"])
        # A client that half-closes with a bare FIN still gets its answer.
        context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
        return context


def system_bundles() -> list[str]:
    """The CA bundles of this machine, each real file once."""
    found = {os.path.realpath(path) for path in SYSTEM_BUNDLES if os.path.isfile(path)}
    return sorted(found)
