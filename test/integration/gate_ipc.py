"""The monitor's side of the link to warden-gate: the structs of src/ipc/ipc.h and src/policy/net.h.

Both ends of the link are one build, so the layouts are the C compiler's; a struct that drifted shows
at once, because gate refuses messages of another size.
"""

import array
import ctypes
import os
import socket

NAME_SIZE = 254
RULES_MAX, PORTS_MAX = 2048, 64
NET_MAGIC = 0x61776E31

EXACT, BELOW, APEX_AND_BELOW = 1, 2, 3
LAYER_USER = 3

SETUP, POLICY, RESOLVERS, READY, VERDICT, CLOSED = 1, 2, 3, 4, 5, 6
PROXY, TRANSPARENT, DNS_UDP, DNS_TCP = 1, 2, 3, 4
WAYS = {1: "connect", 2: "http", 3: "transparent", 4: "dns", 5: "socks"}
OUTCOMES = {1: "allowed", 2: "rule", 3: "address", 4: "sni", 5: "host", 6: "protocol",
            7: "unknown-address", 8: "resolve", 9: "connect", 10: "busy"}
REASONS = {0: "", 1: "granted", 2: "not-granted", 3: "denied", 4: "port-blocked",
           5: "port-not-granted", 6: "literal", 7: "malformed"}


class Rule(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * NAME_SIZE), ("form", ctypes.c_uint8),
                ("layer", ctypes.c_uint8), ("is_denied", ctypes.c_uint8),
                ("may_be_private", ctypes.c_uint8), ("port", ctypes.c_uint16),
                ("reserved", ctypes.c_uint16)]


class Net(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint32), ("size", ctypes.c_uint32),
                ("port_count", ctypes.c_uint16), ("blocked_count", ctypes.c_uint16),
                ("ports", ctypes.c_uint16 * PORTS_MAX), ("blocked", ctypes.c_uint16 * PORTS_MAX),
                ("rule_count", ctypes.c_uint32), ("rules", Rule * RULES_MAX)]


class Addr(ctypes.Structure):
    _fields_ = [("family", ctypes.c_uint8), ("bytes", ctypes.c_uint8 * 16),
                ("port", ctypes.c_uint16)]

    def text(self):
        if self.family == 0:
            return ""
        size = 4 if self.family == socket.AF_INET else 16
        return socket.inet_ntop(self.family, bytes(self.bytes)[:size])


class Resolvers(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint32), ("server", Addr * 8)]


class Host(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * NAME_SIZE), ("addr", Addr)]


class Listener(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint8), ("port", ctypes.c_uint16)]


class GateSetup(ctypes.Structure):
    _fields_ = [("resolvers", Resolvers), ("listener_count", ctypes.c_uint32),
                ("listener", Listener * 66), ("own_count", ctypes.c_uint32), ("own", Addr * 64),
                ("host_count", ctypes.c_uint32), ("host", Host * 64)]


class VerdictMessage(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("way", ctypes.c_uint8), ("outcome", ctypes.c_uint8),
                ("reason", ctypes.c_uint8), ("rule", ctypes.c_int32),
                ("name", ctypes.c_char * NAME_SIZE), ("seen", ctypes.c_char * NAME_SIZE),
                ("method", ctypes.c_char * 16), ("port", ctypes.c_uint16),
                ("dns_type", ctypes.c_uint16), ("addr", Addr), ("repeats", ctypes.c_uint32)]


class ClosedMessage(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("bytes_out", ctypes.c_uint64),
                ("bytes_in", ctypes.c_uint64), ("duration_ns", ctypes.c_uint64)]


class Head(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("len", ctypes.c_uint32)]


def addr(text, port=0):
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    packed = socket.inet_pton(family, text)
    return Addr(family, (ctypes.c_uint8 * 16)(*packed), port)


def rule(text):
    """[!][*.|.]NAME[:PORT][+private] -> a rule; "!" denies."""
    denied = text.startswith("!")
    text = text.lstrip("!")
    private = text.endswith("+private")
    text = text.removesuffix("+private")
    name, _, port = text.partition(":")
    form = BELOW if name.startswith("*.") else APEX_AND_BELOW if name[0] == "." else EXACT
    return Rule(name.removeprefix("*").removeprefix(".").encode(), form, LAYER_USER, denied,
                private, int(port or 0), 0)


def policy_fd(rules, ports=(80, 443), blocked=(25,)):
    """A sealed memfd with a struct aw_net."""
    net = Net(magic=NET_MAGIC, size=ctypes.sizeof(Net), port_count=len(ports),
              blocked_count=len(blocked), rule_count=len(rules))
    net.ports[: len(ports)] = sorted(ports)
    net.blocked[: len(blocked)] = sorted(blocked)
    net.rules[: len(rules)] = [rule(text) for text in rules]
    fd = os.memfd_create("policy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, bytes(net))
    return fd


def send(link, kind, payload=b"", fds=()):
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    link.sendmsg([bytes(Head(kind, len(payload))) + payload], ancillary)


def parse(message):
    """One message of gate's as (type, struct or None)."""
    head = Head.from_buffer_copy(message)
    payload = message[ctypes.sizeof(Head):]
    known = {VERDICT: VerdictMessage, CLOSED: ClosedMessage}
    struct = known[head.type].from_buffer_copy(payload) if head.type in known else None
    return head.type, struct
