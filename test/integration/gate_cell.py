"""A warden-gate at work, with the calling process as its monitor and as the cell's clients.

The calling process moves into a network namespace that has nothing but lo (the cell); the gate
stays where it was: in the lab's host side, whose network is the lab's internet.
"""

import ctypes
import fcntl
import os
import pathlib
import select
import signal
import socket
import struct
import time

import gate_ipc as ipc

TREE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("WARDEN_BUILD_DIR", TREE / "build")) / "warden-gate"
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


class Gate:
    """Start with `with Gate(rules): ...`; only the first in a process makes the cell's network."""

    _is_in_cell = False

    def __init__(self, rules, ports=(80, 443), blocked=(25,), hosts=(), listen=(80, 443), own=None,
                 resolver=None, max_files=None):
        self._events = []
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = self._spawn(theirs, max_files)
        theirs.close()
        self._listeners = [self._listen(socket.SOCK_STREAM, ipc.PROXY, "127.0.0.1", 3128),
                           self._listen(socket.SOCK_DGRAM, ipc.DNS_UDP, "127.0.0.1", 53),
                           self._listen(socket.SOCK_STREAM, ipc.DNS_TCP, "127.0.0.1", 53)]
        for port in listen:
            self._listeners.append(self._listen(socket.SOCK_STREAM, ipc.TRANSPARENT, "", port))
        own = (os.environ["LAB_HOST_V4"], os.environ["LAB_HOST_V6"]) if own is None else own
        self._set_up(rules, ports, blocked, hosts, own, resolver or os.environ["LAB_NAMESERVER"])
        self.wait_for(lambda kind, _: kind == ipc.READY)

    def _spawn(self, link, max_files):
        """The process stays outside the cell: it is forked before this one moves in."""
        go_read, go_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go_write)
            os.read(go_read, 1)
            os.dup2(link.fileno(), 3)
            if max_files:
                import resource
                resource.setrlimit(resource.RLIMIT_NOFILE, (max_files, max_files))
            os.execv(PROGRAM, ["warden-gate"])
        os.close(go_read)
        if not Gate._is_in_cell:
            enter_cell()
            Gate._is_in_cell = True
        os.close(go_write)
        return pid

    @staticmethod
    def _listen(kind, gate_kind, address, port):
        s = socket.socket(socket.AF_INET, kind)
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

    def close_link(self):
        self._link.close()

    def wait_end(self, timeout_s=5):
        """The exit status, once the link is closed; TimeoutError if it does not end."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = None
                return status
            time.sleep(0.01)
        raise TimeoutError("gate did not end")

    def stop(self):
        self._link.close()
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
