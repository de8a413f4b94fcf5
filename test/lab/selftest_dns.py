"""The self-test's DNS client and its checks of the lab's DNS server (run on the host side)."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import time
from dataclasses import dataclass, field

import lab_zone
from lab_dns import A, AAAA, CNAME, FORMERR, NOERROR, NXDOMAIN, REFUSED, SERVFAIL
from lab_sockets import recv_exactly
from selftest_check import events, expect, is_equal

TXT = 16
PATIENCE_S = 4.0
ANY_ADDRESS = "44.128.200.200"  # no name leads here, and yet the witness listens


@dataclass
class Reply:
    rcode: int
    is_truncated: bool
    has_edns: bool
    addresses: list[str] = field(default_factory=list)
    aliases: int = 0
    ttls: list[int] = field(default_factory=list)


def question(name: str, qtype: int, edns_size: int = 0) -> bytes:
    labels = b"".join(bytes([len(one)]) + one.encode() for one in name.split("."))
    opt = b"\0" + struct.pack("!HHIH", 41, edns_size, 0, 0) if edns_size else b""
    head = struct.pack("!6H", 0x1234, 0x0100, 1, 0, 0, 1 if opt else 0)
    return head + labels + b"\0" + struct.pack("!HH", qtype, 1) + opt


def read_reply(message: bytes) -> Reply:
    ident, flags, _, answers, _, additional = struct.unpack_from("!6H", message)
    is_equal(ident, 0x1234, "reply id")
    reply = Reply(flags & 15, bool(flags & 0x0200), additional == 1)
    offset = _skip_name(message, 12) + 4
    for _ in range(answers):
        offset = _skip_name(message, offset)
        rtype, _, ttl, size = struct.unpack_from("!HHIH", message, offset)
        offset += 10 + size
        reply.ttls.append(ttl)
        if rtype in (A, AAAA):
            reply.addresses.append(str(ipaddress.ip_address(message[offset - size : offset])))
        reply.aliases += rtype == CNAME
    return reply


def _skip_name(message: bytes, offset: int) -> int:
    while message[offset]:
        offset += 1 + message[offset]
    return offset + 1


def exchange(message: bytes, server: str = lab_zone.NAMESERVER,
             patience_s: float = PATIENCE_S) -> bytes:
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(patience_s)
        sock.connect((server, 53))
        sock.send(message)
        return sock.recv(65535)


def ask(name: str, qtype: int = A, edns_size: int = 0,
        server: str = lab_zone.NAMESERVER) -> Reply:
    return read_reply(exchange(question(name, qtype, edns_size), server))


def ask_tcp(name: str, qtype: int = A) -> Reply:
    message = question(name, qtype)
    with socket.create_connection((lab_zone.NAMESERVER, 53), PATIENCE_S) as sock:
        sock.sendall(struct.pack("!H", len(message)) + message)
        size = struct.unpack("!H", recv_exactly(sock, 2))[0]
        return read_reply(recv_exactly(sock, size))


def every_name_has_the_addresses_of_the_table() -> None:
    for name, known in lab_zone.ZONE.items():
        if known.answer != "records" or known.cname:
            continue
        asked = name.replace("*", "any-label")
        for qtype, version in ((A, 4), (AAAA, 6)):
            reply = ask_tcp(asked, qtype)
            is_equal(reply.rcode, NOERROR, asked)
            wanted = [str(ipaddress.ip_address(one)) for one in known.of_family(version)]
            is_equal(reply.addresses, wanted, asked)


def names_are_found_in_any_case() -> None:
    is_equal(ask("ALLOWED.cell-LAB.net").addresses, ["44.128.1.40"], "mixed case")


def unknown_names_do_not_exist() -> None:
    is_equal(ask("missing.cell-lab.net").rcode, NXDOMAIN, "below a known domain")
    is_equal(ask("nowhere.example.org").rcode, NXDOMAIN, "elsewhere")


def names_without_such_records_are_empty() -> None:
    for name, qtype in (("empty.cell-lab.net", A), ("cell-lab.net", A),
                        ("v4only.cell-lab.net", AAAA), ("allowed.cell-lab.net", TXT)):
        reply = ask(name, qtype)
        is_equal((reply.rcode, reply.addresses), (NOERROR, []), name)


def failures_are_answered_as_said() -> None:
    is_equal(ask("servfail.cell-lab.net").rcode, SERVFAIL, "servfail")
    is_equal(ask("refused.cell-lab.net").rcode, REFUSED, "refused")


def aliases_are_followed() -> None:
    reply = ask("alias.cell-lab.net")
    is_equal((reply.aliases, reply.addresses), (1, ["44.128.1.40"]), "alias")
    is_equal(ask("alias-private.cell-lab.net").addresses, ["10.1.2.3"], "alias-private")
    is_equal(ask("alias-loop.cell-lab.net").addresses, [], "alias-loop")


def a_rebinding_name_flips_at_each_query() -> None:
    seen = []
    for _ in range(4):
        reply = ask("rebind.cell-lab.net")
        is_equal(reply.ttls, [0], "TTL")
        seen += reply.addresses
    is_equal(sorted(set(seen)), ["127.0.0.1", "44.128.1.53"], "both addresses")
    expect(seen[0] != seen[1] and seen[:2] == seen[2:], f"by turns: {seen}")


def long_answers_are_truncated_and_whole_over_tcp() -> None:
    short = ask("big.cell-lab.net")
    is_equal((short.is_truncated, short.addresses), (True, []), "plain UDP")
    whole = len(lab_zone.ZONE["big.cell-lab.net"].addresses)
    is_equal(len(ask_tcp("big.cell-lab.net").addresses), whole, "TCP")
    is_equal(len(ask("big.cell-lab.net", edns_size=65000).addresses), whole, "UDP with EDNS")


def edns_is_answered_in_kind() -> None:
    expect(ask("allowed.cell-lab.net", edns_size=1232).has_edns, "OPT for OPT")
    expect(not ask("allowed.cell-lab.net").has_edns, "no OPT unasked")


def a_silent_name_is_logged_and_never_answered() -> None:
    try:
        exchange(question("silent.cell-lab.net", A), patience_s=0.5)
    except socket.timeout:
        logged = events("LAB_QUERIES", name="silent.cell-lab.net")
        is_equal([one["answer"] for one in logged], ["silent"], "log")
        return
    raise AssertionError("answered")


def a_slow_name_is_answered_late_and_delays_no_other() -> None:
    begun = time.monotonic()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(PATIENCE_S)
        sock.sendto(question("slow.cell-lab.net", A), (lab_zone.NAMESERVER, 53))
        ask("allowed.cell-lab.net")
        between = time.monotonic() - begun
        sock.recv(512)
    took = time.monotonic() - begun
    expect(between < 1.0 < lab_zone.SLOW_ANSWER_S <= took, f"{between:.2f} s, {took:.2f} s")


def malformed_messages_get_formerr() -> None:
    reply = exchange(b"\x12\x34\x01\x00" + bytes(8))
    is_equal(reply[3] & 15, FORMERR, "no question")
    reply = exchange(question("allowed.cell-lab.net", A)[:20])
    is_equal(reply[3] & 15, FORMERR, "cut off")


def every_query_is_logged_with_its_transport() -> None:
    ask("udp-witness.exfil-drop.net", TXT)
    ask_tcp("tcp-witness.exfil-drop.net", AAAA)
    for transport, qtype in (("udp", "TXT"), ("tcp", "AAAA")):
        logged = events("LAB_QUERIES", name=f"{transport}-witness.exfil-drop.net")
        found = [(one["type"], one["transport"], one["client"]) for one in logged]
        is_equal(found, [(qtype, transport, lab_zone.HOST_V4)], transport)


def a_query_to_any_address_is_seen() -> None:
    for server in (ANY_ADDRESS, "2d00:1ab:99::99"):
        ask("round-the-resolver.exfil-drop.net", server=server)
        expect(events("LAB_QUERIES", server=server), f"witness at {server}")


def libc_resolves_through_the_lab() -> None:
    found = {one[4][0] for one in socket.getaddrinfo("dual.cell-lab.net", 443)}
    is_equal(found, {"44.128.1.43", "2d00:1ab:1::43"}, "getaddrinfo")
    with open("/etc/resolv.conf", encoding="utf-8") as file:
        expect(f"nameserver {os.environ['LAB_NAMESERVER']}" in file.read(), "resolv.conf")


CHECKS = (
    every_name_has_the_addresses_of_the_table, names_are_found_in_any_case,
    unknown_names_do_not_exist, names_without_such_records_are_empty, failures_are_answered_as_said,
    aliases_are_followed, a_rebinding_name_flips_at_each_query,
    long_answers_are_truncated_and_whole_over_tcp, edns_is_answered_in_kind,
    a_silent_name_is_logged_and_never_answered, a_slow_name_is_answered_late_and_delays_no_other,
    malformed_messages_get_formerr, every_query_is_logged_with_its_transport,
    a_query_to_any_address_is_seen, libc_resolves_through_the_lab,
)
