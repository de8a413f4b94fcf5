"""Listening on every address of a namespace, IPv4 and IPv6, one thread per conversation."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
import threading
from typing import Callable

Reply = Callable[[bytes], None]
OnDatagram = Callable[[bytes, str, str, Reply], None]
OnConnection = Callable[[socket.socket, str, str], None]

IP_PKTINFO = 8  # linux/in.h; the socket module of Python 3.11 names neither
IPV6_FREEBIND = 78  # linux/in6.h
BACKLOG = 512
DATAGRAM_MAX = 65535


def plain_address(text: str) -> str:
    """An address as a person writes it: IPv4 also where a dual-stack socket says ::ffff:."""
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def recv_exactly(conn: socket.socket, size: int) -> bytes:
    """Read `size` bytes.  Raises ConnectionError at an earlier end."""
    data = b""
    while len(data) < size:
        piece = conn.recv(size - len(data))
        if not piece:
            raise ConnectionError("the peer ended early")
        data += piece
    return data


def spawn(work: Callable[..., None], *args: object) -> None:
    threading.Thread(target=work, args=args, daemon=True).start()


def serve_tcp(port: int, handle: OnConnection) -> None:
    """Accept on `port` of every address; `handle(socket, client, server)` gets a thread each."""
    listener = socket.create_server(
        ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
    )
    spawn(_accept_forever, listener, handle)


def _accept_forever(listener: socket.socket, handle: OnConnection) -> None:
    while True:
        conn, peer = listener.accept()
        spawn(_converse, conn, peer[0], handle)


def _converse(conn: socket.socket, peer: str, handle: OnConnection) -> None:
    # OSError (and ssl.SSLError, which is one): the client left or broke TLS; its own business.
    with conn, contextlib.suppress(OSError):
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        handle(conn, plain_address(peer), plain_address(conn.getsockname()[0]))


class DatagramServer:
    """UDP on `port` of every address; a reply leaves from the address that was asked."""

    def __init__(self, family: socket.AddressFamily, port: int, handle: OnDatagram) -> None:
        self._handle = handle
        self._is_v4 = family == socket.AF_INET
        self._sock = socket.socket(family, socket.SOCK_DGRAM)
        if self._is_v4:
            self._sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        else:
            self._sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self._sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            # Without it IPv6, unlike IPv4, sends only from addresses of an interface.
            self._sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
        self._sock.bind(("", port))

    def start(self) -> None:
        spawn(self._receive_forever)

    def _receive_forever(self) -> None:
        while True:
            message, ancillary, _, peer = self._sock.recvmsg(DATAGRAM_MAX, socket.CMSG_SPACE(64))
            spawn(self._converse, message, ancillary[0][2], peer)

    def _converse(self, message: bytes, info: bytes, peer: tuple[str, int]) -> None:
        def reply(answer: bytes) -> None:
            with contextlib.suppress(OSError):  # the client is gone
                self._sock.sendmsg([answer], [source], 0, peer)

        # struct in_pktinfo: ifindex, spec_dst, addr.  struct in6_pktinfo: addr, ifindex.
        if self._is_v4:
            address = info[8:12]
            packed = struct.pack("=i4s4s", 0, address, bytes(4))
            source = (socket.IPPROTO_IP, IP_PKTINFO, packed)
        else:
            address = info[:16]
            packed = address + struct.pack("=i", 0)
            source = (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, packed)
        server = str(ipaddress.ip_address(address))
        self._handle(message, plain_address(peer[0]), server, reply)
