"""The lab's internet as a table: which names exist, where they point, how they behave.

Every address outside the host namespace reaches the lab's servers (see lab_net.py), so an address
is written here only because the *name* has to resolve to it.  The public ones are taken from space
that is public for every classifier and yet routed nowhere: 44.128.0.0/16 (the test block of the
amateur radio network) and 2d00::/8 (global unicast, handed to no registry).
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

HOST_V4 = "44.128.77.2"  # the host side's own addresses, public as on a cloud machine
HOST_V6 = "2d00:1ab:77::2"
GATEWAY_V4 = "44.128.77.1"
GATEWAY_V6 = "2d00:1ab:77::1"
NAMESERVER = "10.77.0.53"  # private, as a site's resolver usually is
BLACKHOLE = "44.128.0.99"  # swallows packets: a connection to it times out

TTL = 60
SLOW_ANSWER_S = 1.5
BIG_ANSWER_RECORDS = 100


@dataclass(frozen=True)
class Name:
    """One name.  `answer` is how DNS treats it, `cert` which certificate TLS shows for it."""

    note: str
    addresses: tuple[str, ...] = ()
    cname: str = ""
    answer: str = "records"  # records | flip | slow | silent | servfail | refused
    cert: str = "good"  # good | wrong-name | untrusted
    model: bool = False  # also answers as a model API

    def of_family(self, version: int) -> tuple[str, ...]:
        return tuple(a for a in self.addresses if ipaddress.ip_address(a).version == version)


def _at(note: str, *addresses: str, **rest: str) -> Name:
    return Name(note, addresses, **rest)  # type: ignore[arg-type]


def _site(number: int, note: str = "ordinary site", model: bool = False) -> Name:
    return Name(note, (f"44.128.1.{number}", f"2d00:1ab:1::{number}"), model=model)


def _model(number: int, note: str) -> Name:
    return _site(number, note, model=True)


ZONE: dict[str, Name] = {
    # What an agent and its toolchains talk to.
    "api.anthropic.com": _model(10, "model API: Anthropic messages"),
    "api.openai.com": _model(11, "model API: OpenAI responses and chat completions"),
    "generativelanguage.googleapis.com": _model(12, "model API: Gemini generateContent"),
    "registry.npmjs.org": _site(20),
    "pypi.org": _site(21),
    "files.pythonhosted.org": _site(22),
    "github.com": _site(23),
    "api.github.com": _site(24),
    "codeload.github.com": _site(25),
    "raw.githubusercontent.com": _site(26),
    "index.crates.io": _site(27),
    "static.crates.io": _site(28),
    "proxy.golang.org": _site(29),
    "deb.debian.org": _site(30),
    "models.dev": _site(31),
    "chatgpt.com": _site(32),
    # For the tests to grant or not.
    "allowed.cell-lab.net": _site(40, "ordinary site, for tests to grant"),
    "other.cell-lab.net": _site(41, "ordinary site, for tests not to grant"),
    "*.wild.cell-lab.net": _site(42, "any label below exists: sub-domain grants, DNS exfiltration"),
    "exfil-drop.net": _site(66, "the attacker's site"),
    "*.exfil-drop.net": _site(67, "any label below exists: the attacker reads them"),
    "dual.cell-lab.net": _site(43, "A and AAAA"),
    "v4only.cell-lab.net": _at("A only", "44.128.1.44"),
    "v6only.cell-lab.net": _at("AAAA only", "2d00:1ab:1::45"),
    "many.cell-lab.net": _at("three A", "44.128.1.46", "44.128.1.47", "44.128.1.48"),
    "blackhole.cell-lab.net": _at("connections time out", BLACKHOLE),
    "failover.cell-lab.net": _at("a dead A first, then a good one", BLACKHOLE, "44.128.1.49"),
    "wrong-cert.cell-lab.net": _at("certificate of another name", "44.128.1.50", cert="wrong-name"),
    "untrusted.cell-lab.net": _at("certificate of a foreign CA", "44.128.1.51", cert="untrusted"),
    # Answers that a resolver has to survive.
    "alias.cell-lab.net": Name("CNAME to allowed", cname="allowed.cell-lab.net"),
    "alias-private.cell-lab.net": Name("CNAME to private10", cname="private10.cell-lab.net"),
    "alias-loop.cell-lab.net": Name("CNAME to itself", cname="alias-loop.cell-lab.net"),
    "empty.cell-lab.net": Name("exists, has no address"),
    "big.cell-lab.net": _at(
        "too many A for UDP: truncated, whole over TCP",
        *(f"44.128.2.{n}" for n in range(1, BIG_ANSWER_RECORDS + 1)),
    ),
    "slow.cell-lab.net": _at("answered after 1.5 s", "44.128.1.52", answer="slow"),
    "silent.cell-lab.net": Name("never answered", answer="silent"),
    "servfail.cell-lab.net": Name("SERVFAIL", answer="servfail"),
    "refused.cell-lab.net": Name("REFUSED", answer="refused"),
    # Names that lead where no agent may go.
    "rebind.cell-lab.net": _at(
        "public and loopback by turns, TTL 0", "44.128.1.53", "127.0.0.1", answer="flip"
    ),
    "mixed.cell-lab.net": _at("public and private in one set", "44.128.1.54", "10.1.2.3"),
    "loopback.cell-lab.net": _at("loopback", "127.0.0.1"),
    "loopback6.cell-lab.net": _at("loopback", "::1"),
    "zero.cell-lab.net": _at("unspecified: Linux connects to itself", "0.0.0.0"),
    "zero6.cell-lab.net": _at("unspecified", "::"),
    "metadata.cell-lab.net": _at("cloud metadata", "169.254.169.254"),
    "metadata6.cell-lab.net": _at("cloud metadata", "fd00:ec2::254"),
    "linklocal6.cell-lab.net": _at("link-local", "fe80::1"),
    "private10.cell-lab.net": _at("RFC 1918", "10.1.2.3"),
    "private172.cell-lab.net": _at("RFC 1918", "172.16.1.2"),
    "private192.cell-lab.net": _at("RFC 1918", "192.168.1.2"),
    "cgnat.cell-lab.net": _at("shared address space", "100.64.1.2"),
    "ula.cell-lab.net": _at("unique local", "fd12:3456::1"),
    "doc.cell-lab.net": _at("documentation", "192.0.2.1", "2001:db8::1"),
    "bench.cell-lab.net": _at("benchmarking range", "198.18.0.1"),
    "multicast.cell-lab.net": _at("multicast", "224.0.0.1", "ff02::1"),
    "broadcast.cell-lab.net": _at("limited broadcast", "255.255.255.255"),
    "reserved.cell-lab.net": _at("class E", "240.0.0.1"),
    "mapped.cell-lab.net": _at("IPv4-mapped loopback", "::ffff:127.0.0.1"),
    "mapped-metadata.cell-lab.net": _at("IPv4-mapped metadata", "::ffff:169.254.169.254"),
    "nat64.cell-lab.net": _at("NAT64 of loopback", "64:ff9b::7f00:1"),
    "nat64-metadata.cell-lab.net": _at("NAT64 of metadata", "64:ff9b::a9fe:a9fe"),
    "nat64-local.cell-lab.net": _at("local-use NAT64 of 10.1.2.3", "64:ff9b:1::a01:203"),
    "compat.cell-lab.net": _at("IPv4-compatible loopback", "::127.0.0.1"),
    "sixtofour.cell-lab.net": _at("6to4 of loopback", "2002:7f00:1::"),
    "teredo.cell-lab.net": _at("Teredo", "2001:0:7f00:1::1"),
    "own.cell-lab.net": _at("the host's own public addresses", HOST_V4, HOST_V6),
    "resolver.cell-lab.net": _at("the site's own resolver", NAMESERVER),
}


def lookup(name: str) -> Name | None:
    """Find `name` (lower case, no final dot): as written, else by the nearest wildcard."""
    if name in ZONE:
        return ZONE[name]
    labels = name.split(".")
    for start in range(1, len(labels)):
        found = ZONE.get("*." + ".".join(labels[start:]))
        if found is not None:
            return found
    return None


def has_children(name: str) -> bool:
    """Whether names exist below `name`: it then exists itself, without records (RFC 8020)."""
    return any(known.endswith("." + name) for known in ZONE)


def is_model_api(host: str) -> bool:
    known = lookup(host)
    return known is not None and known.model
