"""The lab's DNS server: answers from the zone table and logs every query it is sent.

It listens on port 53, UDP and TCP, of every address on the internet side: also a query that goes
round the resolver of /etc/resolv.conf is seen.  RFC 1035 messages, EDNS sizes (RFC 6891) honoured,
answers longer than the client's limit truncated.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
import time
from dataclasses import dataclass

import lab_zone
from lab_log import Witness
from lab_sockets import DatagramServer, Reply, recv_exactly, serve_tcp

A, CNAME, SOA, AAAA, OPT = 1, 5, 6, 28, 41
TYPE_NAMES = {1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA",
              33: "SRV", 35: "NAPTR", 43: "DS", 64: "SVCB", 65: "HTTPS", 255: "ANY"}
NOERROR, FORMERR, SERVFAIL, NXDOMAIN, REFUSED = 0, 1, 2, 3, 5
RCODE_NAMES = {1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 5: "REFUSED"}
IN = 1
HEADER_SIZE = 12
PLAIN_UDP_SIZE = 512
CNAME_HOPS = 4
FAILURES = {"servfail": SERVFAIL, "refused": REFUSED}


@dataclass
class Query:
    ident: int
    flags: int
    name: str  # as sent, without the final dot
    qtype: int
    question: bytes  # the question section as sent
    udp_size: int
    has_edns: bool


@dataclass
class Answer:
    rcode: int
    records: list[bytes]
    summary: list[str]


def parse_query(message: bytes) -> Query:
    """Read a query of one question.  Raises ValueError for anything else."""
    if len(message) < HEADER_SIZE:
        raise ValueError("short header")
    ident, flags, questions, answers, authority, additional = struct.unpack_from("!6H", message)
    if flags & 0x8000 or questions != 1:
        raise ValueError("not a query of one question")
    name, offset = _read_name(message, HEADER_SIZE)
    if offset + 4 > len(message):
        raise ValueError("short question")
    qtype = struct.unpack_from("!H", message, offset)[0]
    question = message[HEADER_SIZE : offset + 4]
    udp_size = _edns_size(message, offset + 4) if additional and not answers + authority else 0
    limit = max(udp_size, PLAIN_UDP_SIZE)
    return Query(ident, flags, name, qtype, question, limit, udp_size > 0)


def _read_name(message: bytes, offset: int) -> tuple[str, int]:
    labels: list[str] = []
    while True:
        if offset >= len(message):
            raise ValueError("name runs out of the message")
        length = message[offset]
        offset += 1
        if length == 0:
            return ".".join(labels), offset
        if length > 63 or offset + length > len(message):
            raise ValueError("bad label")
        labels.append(_printable(message[offset : offset + length]))
        offset += length


def _printable(label: bytes) -> str:
    """Write a label as RFC 4343 does: dots and unprintable bytes as \\DDD."""
    return "".join(
        chr(byte) if 0x21 <= byte <= 0x7E and byte not in b".\\" else f"\\{byte:03d}"
        for byte in label
    )


def _edns_size(message: bytes, offset: int) -> int:
    """The UDP size of an OPT record at `offset`, 0 if there is none."""
    if message[offset : offset + 3] != b"\0" + struct.pack("!H", OPT):
        return 0
    if offset + 5 > len(message):
        raise ValueError("short OPT")
    return int(struct.unpack_from("!H", message, offset + 3)[0])


def _wire_name(name: str) -> bytes:
    labels = [label.encode() for label in name.split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _record(owner: str, rtype: int, ttl: int, data: bytes) -> bytes:
    return _wire_name(owner) + struct.pack("!HHIH", rtype, IN, ttl, len(data)) + data


def _soa() -> bytes:
    data = _wire_name("ns.cell-lab.net") + _wire_name("root.cell-lab.net")
    return _record("", SOA, lab_zone.TTL, data + struct.pack("!5I", 1, 3600, 600, 86400, 60))


class Zone:
    """Turns a question into an answer.  The only state is whose turn it is at a flipping name."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}
        self._lock = threading.Lock()

    def answer(self, name: str, qtype: int) -> Answer:
        records: list[bytes] = []
        summary: list[str] = []
        for _ in range(CNAME_HOPS):
            known = lab_zone.lookup(name)
            if known is None or not known.cname:
                break
            records.append(_record(name, CNAME, lab_zone.TTL, _wire_name(known.cname)))
            summary.append("CNAME " + known.cname)
            name = known.cname
        if known is None:
            rcode = NOERROR if lab_zone.has_children(name) or records else NXDOMAIN
            return Answer(rcode, records, summary)
        if known.answer in FAILURES:
            return Answer(FAILURES[known.answer], records, summary)
        for address in self._addresses(name, known, qtype):
            ttl = 0 if known.answer == "flip" else lab_zone.TTL
            records.append(_record(name, qtype, ttl, ipaddress.ip_address(address).packed))
            summary.append(address)
        return Answer(NOERROR, records, summary)

    def _addresses(self, name: str, known: lab_zone.Name, qtype: int) -> tuple[str, ...]:
        if qtype not in (A, AAAA):
            return ()
        addresses = known.of_family(4 if qtype == A else 6)
        if known.answer != "flip" or not addresses:
            return addresses
        with self._lock:
            turn = self._turns.get(name, 0)
            self._turns[name] = turn + 1
        return (addresses[turn % len(addresses)],)


def build_reply(query: Query, answer: Answer, limit: int) -> bytes:
    """Write the reply; one longer than `limit` bytes carries the question and TC alone."""
    flags = 0x8480 | (query.flags & 0x0100) | answer.rcode  # QR, AA, RA; RD as asked
    opt = b"\0" + struct.pack("!HHIH", OPT, 1232, 0, 0) if query.has_edns else b""
    authority = [] if answer.records else [_soa()]
    counts = (1, len(answer.records), len(authority), 1 if opt else 0)
    head = struct.pack("!6H", query.ident, flags, *counts)
    message = head + query.question + b"".join(answer.records + authority) + opt
    if len(message) <= limit:
        return message
    head = struct.pack("!6H", query.ident, flags | 0x0200, 1, 0, 0, 1 if opt else 0)
    return head + query.question + opt


class DnsServer:
    """Answers and logs; `start` must run in the namespace that it shall serve."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._zone = Zone()

    def start(self) -> None:
        for family in (socket.AF_INET, socket.AF_INET6):
            DatagramServer(family, 53, self._on_datagram).start()
        serve_tcp(53, self._on_connection)

    def _on_datagram(self, message: bytes, client: str, server: str, reply: Reply) -> None:
        self._handle(message, "udp", client, server, reply)

    def _on_connection(self, conn: socket.socket, client: str, server: str) -> None:
        def reply(message: bytes) -> None:
            conn.sendall(struct.pack("!H", len(message)) + message)

        while True:
            size = recv_exactly(conn, 2)
            message = recv_exactly(conn, struct.unpack("!H", size)[0])
            self._handle(message, "tcp", client, server, reply)

    def _handle(self, message: bytes, transport: str, client: str, server: str,
                reply: Reply) -> None:
        where = {"transport": transport, "client": client, "server": server}
        try:
            query = parse_query(message)
        except ValueError as problem:
            self._witness.note(name=None, type=None, **where, answer=f"FORMERR ({problem})",
                               bytes=message.hex())
            return self._refuse_malformed(message, reply)
        name = query.name.lower()
        known = lab_zone.lookup(name)
        behaviour = known.answer if known else "records"
        answer = self._zone.answer(name, query.qtype)
        summary = " ".join(answer.summary) or RCODE_NAMES.get(answer.rcode, "NODATA")
        type_name = TYPE_NAMES.get(query.qtype, f"TYPE{query.qtype}")
        self._witness.note(name=query.name, type=type_name, **where,
                           answer="silent" if behaviour == "silent" else summary)
        if behaviour == "silent":
            return None
        whole = build_reply(query, answer, query.udp_size if transport == "udp" else 65535)
        if behaviour == "slow":
            time.sleep(lab_zone.SLOW_ANSWER_S)
        return reply(whole)

    @staticmethod
    def _refuse_malformed(message: bytes, reply: Reply) -> None:
        is_reply = len(message) >= 3 and message[2] & 0x80
        if len(message) >= HEADER_SIZE and not is_reply:
            reply(message[:2] + struct.pack("!5H", 0x8000 | FORMERR, 0, 0, 0, 0))
