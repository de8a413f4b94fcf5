"""Which server listens on which port; starts them as threads of the calling process.

    53 udp+tcp   DNS                                              internet side only
    80, 443      HTTP, HTTP over TLS                              both sides
    22           TCP echo behind an SSH-like banner               internet side only
    8080, 8443   TCP echo                                         internet side only
    443 udp      UDP echo (where QUIC would be)                   internet side only

The host side's two stand for what a developer's machine serves to itself: they listen on its
loopback and its own addresses, and prove that a forbidden address would have answered.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from dataclasses import dataclass

import lab_http
from lab_certs import Authority
from lab_dns import DnsServer
from lab_http import Peer
from lab_log import Witness
from lab_sockets import DatagramServer, Reply, serve_tcp

SSH_BANNER = b"SSH-2.0-cell-lab\r\n"
ECHO_GREETINGS = {22: SSH_BANNER, 8080: b"", 8443: b""}


@dataclass
class Servers:
    """The servers of one side of the lab ("net" or "host")."""

    side: str
    authority: Authority
    queries: Witness
    requests: Witness
    model_command: str

    def start_internet(self) -> None:
        DnsServer(self.queries).start()
        for port, greeting in ECHO_GREETINGS.items():
            self._serve_echo(port, greeting)
        for family in (socket.AF_INET, socket.AF_INET6):
            DatagramServer(family, 443, self._on_datagram).start()
        self.start_web()

    def start_web(self) -> None:
        self._serve_http(80)
        self._serve_https(443)

    def _greet(self, client: str, server: str, port: int) -> Peer:
        peer = Peer(client, server, port, side=self.side)
        self.requests.note(event="connect", **peer.ends())
        return peer

    def _serve_http(self, port: int) -> None:
        def converse(conn: socket.socket, client: str, server: str) -> None:
            peer = self._greet(client, server, port)
            lab_http.serve(conn, peer, self.requests, self.model_command)

        serve_tcp(port, converse)

    def _serve_https(self, port: int) -> None:
        context = self.authority.context_for(None)
        context.sni_callback = self._choose_certificate

        def converse(conn: socket.socket, client: str, server: str) -> None:
            peer = self._greet(client, server, port)
            peer.is_tls = True
            with self._handshake(context, conn, peer) as tls:
                lab_http.serve(tls, peer, self.requests, self.model_command)

        serve_tcp(port, converse)

    def _choose_certificate(self, conn: ssl.SSLObject, sni: str | None,
                            _: ssl.SSLContext) -> None:
        conn.lab_sni = sni  # type: ignore[attr-defined]
        conn.context = self.authority.context_for(sni)

    def _handshake(self, context: ssl.SSLContext, conn: socket.socket, peer: Peer) -> ssl.SSLSocket:
        tls = context.wrap_socket(conn, server_side=True, do_handshake_on_connect=False)
        try:
            tls.do_handshake()
        except OSError as problem:
            peer.sni = getattr(tls, "lab_sni", None)
            self.requests.note(event="tls-failed", **peer.fields(), problem=str(problem))
            tls.close()
            raise
        peer.sni = getattr(tls, "lab_sni", None)
        self.requests.note(event="tls", **peer.fields(), alpn=tls.selected_alpn_protocol(),
                           version=tls.version())
        return tls

    def _serve_echo(self, port: int, greeting: bytes) -> None:
        def converse(conn: socket.socket, client: str, server: str) -> None:
            self._greet(client, server, port)
            conn.sendall(greeting)
            while data := conn.recv(65536):
                conn.sendall(data)

        serve_tcp(port, converse)

    def _on_datagram(self, message: bytes, client: str, server: str, reply: Reply) -> None:
        self.requests.note(event="datagram", **Peer(client, server, 443, side=self.side).ends(),
                           body_bytes=len(message), body_sha256=hashlib.sha256(message).hexdigest())
        reply(message)
