"""A warden-gate at work, with the calling process as its monitor and as the cell's clients.

The calling process moves into a network namespace that has nothing but lo (the cell). A launcher that
was forked before stays where it was, in the lab's host side, and starts the gates there.
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import resource
import select
import signal
import socket
import struct
import time

import gate_ipc as ipc

TREE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("WARDEN", TREE / "build/warden")).with_name("warden-gate")
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK = 0x8914, 0x8916, 0x891C
IFF_UP = 1
SYNTHETIC, SYNTHETIC_MASK = "198.18.0.1", "255.254.0.0"
LIBC = ctypes.CDLL(None, use_errno=True)
WAIT_S = 20


def enter_cell():
    """Move this process into a network of its own, as root of a user namespace if need be."""
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNET | (0 if uid == 0 else CLONE_NEWUSER)
    if LIBC.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    if uid != 0:
        for file, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                           ("gid_map", f"0 {gid} 1")):
            pathlib.Path("/proc/self", file).write_text(text, encoding="ascii")
    _bring_up_lo()


def _bring_up_lo():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
        for request, address in ((SIOCSIFADDR, SYNTHETIC), (SIOCSIFNETMASK, SYNTHETIC_MASK)):
            packed = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(s, request, struct.pack("16s16s", b"lo:1", packed))


class Launcher:
    """A process outside the cell that starts gates."""

    _one = None

    def __init__(self):
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            self._ours.close()
            self._serve(theirs)
        theirs.close()

    @classmethod
    def start(cls, link, max_files):
        """Start a gate with this end of its link; returns its pid."""
        if cls._one is None:
            cls._one = cls()
            enter_cell()
        socket.send_fds(cls._one._ours, [struct.pack("i", max_files)], [link.fileno()])
        return struct.unpack("i", cls._one._ours.recv(4))[0]

    @staticmethod
    def _serve(requests):
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a gate that ended is gone at once
        while True:
            request, fds, _, _ = socket.recv_fds(requests, 4, 1)
            if not request:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                Launcher._become_gate(fds[0], struct.unpack("i", request)[0])
            os.close(fds[0])
            requests.send(struct.pack("i", pid))

    @staticmethod
    def _become_gate(link, max_files):
        os.dup2(link, 3)
        if max_files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))
        os.execv(PROGRAM, ["warden-gate"])


class Gate:
    """Started, set up and ready: `with Gate(rules) as gate: ...`"""

    def __init__(self, rules, ports=(80, 443), blocked=(25,), hosts=(), listen=(80, 443), own=None,
                 resolver=None, max_files=0):
        self._events = []
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = Launcher.start(theirs, max_files)
        self._pidfd = os.pidfd_open(self.pid)
        theirs.close()
        self._listeners = [self._listen(socket.SOCK_STREAM, ipc.PROXY, "127.0.0.1", 3128),
                           self._listen(socket.SOCK_DGRAM, ipc.DNS_UDP, "127.0.0.1", 53),
                           self._listen(socket.SOCK_STREAM, ipc.DNS_TCP, "127.0.0.1", 53)]
        for port in listen:
            self._listeners.append(self._listen(socket.SOCK_STREAM, ipc.TRANSPARENT, "", port))
        own = (os.environ["LAB_HOST_V4"], os.environ["LAB_HOST_V6"]) if own is None else own
        self._set_up(rules, ports, blocked, hosts, own, resolver or os.environ["LAB_NAMESERVER"])
        self.wait_for(lambda kind, _: kind == ipc.READY)

    @staticmethod
    def _listen(kind, gate_kind, address, port):
        s = socket.socket(socket.AF_INET, kind)
        # Of the tests alone, so that one gate's connections do not keep the next from its port.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, kind == socket.SOCK_STREAM)
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen(512)
        return gate_kind, s

    def _set_up(self, rules, ports, blocked, hosts, own, resolver):
        setup = ipc.GateSetup(listener_count=len(self._listeners), own_count=len(own),
                              host_count=len(hosts))
        setup.resolvers.count = 1
        setup.resolvers.server[0] = ipc.addr(resolver)
        for i, (kind, s) in enumerate(self._listeners):
            setup.listener[i] = ipc.Listener(kind, s.getsockname()[1])
        for i, text in enumerate(own):
            setup.own[i] = ipc.addr(text)
        for i, (name, text) in enumerate(hosts):
            setup.host[i] = ipc.Host(name.encode(), ipc.addr(text))
        policy = ipc.policy_fd(rules, ports, blocked)
        ipc.send(self._link, ipc.SETUP, bytes(setup),
                 [policy, *(s.fileno() for _, s in self._listeners)])
        os.close(policy)
        for _, s in self._listeners:
            s.close()

    def set_policy(self, rules, ports=(80, 443), blocked=(25,)):
        policy = ipc.policy_fd(rules, ports, blocked)
        ipc.send(self._link, ipc.POLICY, b"", [policy])
        os.close(policy)

    def set_resolver(self, *addresses):
        resolvers = ipc.Resolvers(count=len(addresses))
        for i, text in enumerate(addresses):
            resolvers.server[i] = ipc.addr(text)
        ipc.send(self._link, ipc.RESOLVERS, bytes(resolvers))

    def wait_for(self, is_it, timeout_s=WAIT_S):
        """The first message, in order of arrival and not handed out before, that is it."""
        end = time.monotonic() + timeout_s
        while True:
            for i, (kind, message) in enumerate(self._events):
                if is_it(kind, message):
                    del self._events[i]
                    return message
            if not select.select([self._link], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"not told; there is {[e[0] for e in self._events]}")
            data = self._link.recv(200000)
            if not data:
                raise EOFError("gate ended")
            self._events.append(ipc.parse(data))

    def verdict(self, name=None, timeout_s=WAIT_S, way=None):
        """The next verdict about `name`, as a dictionary of words."""
        found = self.wait_for(
            lambda kind, v: kind == ipc.VERDICT and (name is None or v.name.decode() == name)
            and (way is None or ipc.WAYS[v.way] == way), timeout_s)
        return {"id": found.id, "way": ipc.WAYS[found.way], "outcome": ipc.OUTCOMES[found.outcome],
                "reason": ipc.REASONS[found.reason], "rule": found.rule,
                "name": found.name.decode(), "seen": found.seen.decode(),
                "method": found.method.decode(), "port": found.port, "addr": found.addr.text(),
                "type": found.dns_type, "repeats": found.repeats}

    def closed(self, ident, timeout_s=WAIT_S):
        return self.wait_for(lambda kind, c: kind == ipc.CLOSED and c.id == ident, timeout_s)

    def listen(self):
        """Take what was told off the link, as a monitor does all the while; it stays to be asked for."""
        with contextlib.suppress(TimeoutError):
            self.wait_for(lambda *_: False, timeout_s=0)

    def forget(self):
        self.listen()
        self._events = []

    def close_link(self):
        self._link.close()

    def has_ended(self, timeout_s):
        return bool(select.select([self._pidfd], [], [], timeout_s)[0])

    def stop(self):
        if self._pidfd is None:
            return
        self._link.close()
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self.has_ended(WAIT_S)
        os.close(self._pidfd)
        self._pidfd = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
