"""What the lab's web servers answer: HTTP/1.1, the same over plain TCP and over TLS.

    GET /                     200, the Host name
    GET /bytes/N              N bytes
    GET /chunked?n=N          N chunks
    GET /slow?every=S&n=N     one byte each S seconds, N times
    GET /redirect?to=URL      302
    GET /headers              the request's header lines (credentials as digests)
    POST, PUT anything        the body's size
    Upgrade: lab-echo         101, then each byte comes back
    Upgrade: lab-count        101, then read to the end of input, answer "N bytes", close

A host that the zone table marks as a model API is first offered to lab_model.
"""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import socket
import ssl
import time
import urllib.parse
import zlib
from dataclasses import dataclass

import lab_model
import lab_zone
from lab_log import Witness

BLOCK = b"0123456789abcdef" * 4096
CREDENTIAL_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key",
                      "proxy-authorization", "cookie")
UPGRADES = ("lab-echo", "lab-count")
DIGEST_CHARS = 16
MAX_BYTES = 1 << 40
MAX_STEPS = 1_000_000
SHUTDOWN_GRACE_S = 5


@dataclass
class Peer:
    """How a connection came in: what the request log says of it."""

    client: str
    server: str
    port: int
    sni: str | None = None
    is_tls: bool = False
    side: str = "net"  # net | host: where the server that was reached stands

    def ends(self) -> dict[str, object]:
        return {"side": self.side, "client": self.client, "server": self.server,
                "port": self.port}

    def fields(self) -> dict[str, object]:
        return {**self.ends(), "tls": self.is_tls, "sni": self.sni}


def digest(value: str) -> str:
    """A credential as the log may hold it: recognisable to who knows the value, useless else."""
    return "sha256:" + hashlib.sha256(value.encode("latin-1")).hexdigest()[:DIGEST_CHARS]


def bare_host(header: str | None) -> str:
    """The host name of a Host header: lower case, without port and final dot."""
    text = (header or "").strip().lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0].rstrip(".")


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers the requests of one connection; the constructor returns when it is through."""

    protocol_version = "HTTP/1.1"
    server_version = "cell-lab"
    sys_version = ""

    def __init__(self, conn: socket.socket, peer: Peer, witness: Witness,
                 model_command: str) -> None:
        self.peer = peer
        self.witness = witness
        self.model_command = model_command
        super().__init__(conn, (peer.client, 0), None)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr: the request log says it."""

    def _answer_any(self) -> None:
        body = self._read_body()
        host = bare_host(self.headers.get("host"))
        url = urllib.parse.urlsplit(self.path)
        model_reply = None
        if lab_zone.is_model_api(host):
            model_reply = lab_model.answer(self.command, self.path, body, self.model_command)
        self._note(host, body, model_reply)
        if model_reply is not None:
            self._send_model_reply(model_reply)
        elif self.headers.get("upgrade"):
            self._upgrade(self.headers["upgrade"].lower())
        elif self.command in ("POST", "PUT", "PATCH"):
            self._send_text(200, f"{len(body)}\n")
        else:
            self._route(host, url)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer_any

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            raw = self._read_chunks()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding", "").lower() in ("gzip", "deflate"):
            return zlib.decompress(raw, zlib.MAX_WBITS | 32)
        return raw

    def _read_chunks(self) -> bytes:
        body = io.BytesIO()
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body.write(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return body.getvalue()

    def _note(self, host: str, body: bytes, model_reply: lab_model.Reply | None) -> None:
        credentials = {name.lower(): digest(value) for name, value in self.headers.items()
                       if name.lower() in CREDENTIAL_HEADERS}
        fields: dict[str, object] = {
            "event": "request", **self.peer.fields(), "method": self.command, "path": self.path,
            "host": host, "headers": sorted(name.lower() for name in self.headers),
            "user_agent": self.headers.get("user-agent"), "credentials": credentials,
            "body_bytes": len(body), "body_sha256": hashlib.sha256(body).hexdigest(),
        }
        if model_reply is not None:
            fields["model"] = model_reply.note
        self.witness.note(**fields)

    def _route(self, host: str, url: urllib.parse.SplitResult) -> None:
        query = dict(urllib.parse.parse_qsl(url.query))
        head, _, rest = url.path.strip("/").partition("/")
        try:
            if head == "":
                self._send_text(200, host + "\n")
            elif head == "bytes":
                self._send_bytes(_bounded(rest, MAX_BYTES))
            elif head == "chunked":
                self._send_chunks(_bounded(query.get("n", "3"), MAX_STEPS))
            elif head == "slow":
                steps = _bounded(query.get("n", "3"), MAX_STEPS)
                self._send_slowly(float(query.get("every", "1")), steps)
            elif head == "redirect":
                self._send_redirect(query.get("to", "/"))
            elif head == "headers":
                self._send_headers_back()
            else:
                self._send_text(404, "no such page in the lab\n")
        except ValueError as problem:
            self._send_text(400, f"{problem}\n")

    def _send_head(self, status: int, content_type: str, length: int | None) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        if length is not None:
            self.send_header("content-length", str(length))
        self.end_headers()

    def _send_text(self, status: int, text: str) -> None:
        self._send_body(status, "text/plain", text.encode("utf-8", "replace"))

    def _send_body(self, status: int, content_type: str, body: bytes) -> None:
        self._send_head(status, content_type, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _send_bytes(self, count: int) -> None:
        self._send_head(200, "application/octet-stream", count)
        left = 0 if self.command == "HEAD" else count
        while left > 0:
            self.wfile.write(BLOCK[:left] if left < len(BLOCK) else BLOCK)
            left -= len(BLOCK)

    def _start_chunks(self, content_type: str) -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _send_chunks(self, count: int) -> None:
        self._start_chunks("text/plain")
        if self.command == "HEAD":
            return
        for number in range(count):
            self._send_chunk(b"chunk %d\n" % number)
        self._send_chunk(b"")

    def _send_slowly(self, every_s: float, count: int) -> None:
        self._send_head(200, "text/plain", count)
        for _ in range(0 if self.command == "HEAD" else count):
            time.sleep(every_s)
            self.wfile.write(b".")

    def _send_redirect(self, target: str) -> None:
        if any(char in target for char in "\r\n"):
            raise ValueError("a line break in the target")
        self.send_response(302)
        self.send_header("location", target)
        self.send_header("content-length", "0")
        self.end_headers()

    def _send_headers_back(self) -> None:
        lines = [f"{name}: {digest(value) if name.lower() in CREDENTIAL_HEADERS else value}\n"
                 for name, value in self.headers.items()]
        self._send_text(200, "".join(lines))

    def _send_model_reply(self, reply: lab_model.Reply) -> None:
        if reply.events is None:
            body = json.dumps(reply.body).encode()
            self._send_body(reply.status, "application/json", body)
            return
        self._start_chunks("text/event-stream")
        for event in reply.events:
            self._send_chunk(event)
        self._send_chunk(b"")

    def _upgrade(self, protocol: str) -> None:
        self.close_connection = True
        if protocol not in UPGRADES:
            # Clients that prefer WebSocket fall back to plain HTTP on a 4xx.
            self._send_text(426, "no such protocol in the lab\n")
            return
        self.send_response(101)
        self.send_header("upgrade", protocol)
        self.send_header("connection", "upgrade")
        self.end_headers()
        total = 0
        while data := self.rfile.read1(65536):  # type: ignore[attr-defined]
            total += len(data)
            if protocol == "lab-echo":
                self.wfile.write(data)
        if protocol == "lab-count":
            self.wfile.write(b"%d bytes\n" % total)


def _bounded(text: str, limit: int) -> int:
    number = int(text)
    if not 0 <= number <= limit:
        raise ValueError(f"not within 0..{limit}")
    return number


def serve(conn: socket.socket, peer: Peer, witness: Witness, model_command: str) -> None:
    """Answer the requests of one connection until it ends."""
    try:
        Handler(conn, peer, witness, model_command)
    except (ValueError, zlib.error):
        return  # the client's framing is broken: the connection is closed
    _end_politely(conn)


def _end_politely(conn: socket.socket) -> None:
    """Say that this is all (close_notify, FIN); a plain close may reset what is in flight."""
    conn.settimeout(SHUTDOWN_GRACE_S)
    if isinstance(conn, ssl.SSLSocket):
        conn = conn.unwrap()
    conn.shutdown(socket.SHUT_WR)
    while conn.recv(65536):
        pass
