"""The lab's two network namespaces and what the host side sees in /etc.

The process that calls these functions is already in a network and a mount namespace of its own (the
host side).  The internet side is a second network namespace, joined by one veth pair and nothing
else.  Its routing table takes every address there is as its own, so that a server can be reached,
and a leak be seen, at any address that the host side sends to; there is no further way out.
"""

from __future__ import annotations

import ctypes
import os
import subprocess

import lab_zone
from lab_certs import system_bundles

CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000
NSSWITCH = "/etc/nsswitch.conf"
RESOLV_CONF = "/etc/resolv.conf"
HOSTS_LINE = "hosts: files dns"
# Resolver daemons of the real host that libc would ask in spite of resolv.conf, by unix socket.
RESOLVER_SOCKETS = ("/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket")

# `table local`: its routes are looked up before all others, the longest prefix first.
INTERNET_SIDE = f"""
link add lab0 type veth peer name eth0 netns {{host_pid}}
link set lo up
link set lab0 up
addr add {lab_zone.GATEWAY_V4}/32 dev lab0
addr add {lab_zone.GATEWAY_V6}/128 dev lab0 nodad
route add {lab_zone.HOST_V4}/32 dev lab0 table local
route add {lab_zone.HOST_V6}/128 dev lab0 table local
route add blackhole {lab_zone.BLACKHOLE}/32 table local
route add local 0.0.0.0/0 dev lo table local
route add local ::/0 dev lo table local
"""
HOST_SIDE = f"""
link set lo up
link set eth0 up
addr add {lab_zone.HOST_V4}/24 dev eth0
addr add {lab_zone.HOST_V6}/64 dev eth0 nodad
route add 0.0.0.0/0 via {lab_zone.GATEWAY_V4}
route add ::/0 via {lab_zone.GATEWAY_V6}
"""


LIBC = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _run_ip(batch: str) -> None:
    done = subprocess.run(["ip", "-batch", "-"], input=batch, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"ip -batch: {done.stderr.strip()}")


def become_internet_side(host_pid: int) -> None:
    """Move the calling process into a new network namespace and join it to that of `host_pid`."""
    _check(LIBC.unshare(CLONE_NEWNET), "unshare the internet side")
    _run_ip(INTERNET_SIDE.format(host_pid=host_pid))


def set_up_host_side() -> None:
    """Address and route this side's end of the veth pair.  After become_internet_side."""
    _run_ip(HOST_SIDE)


def lay_files(lab_dir: str, ca_path: str) -> str:
    """Give this mount namespace the lab's resolver and trust; return the CA bundle's path."""
    text = f"nameserver {lab_zone.NAMESERVER}\noptions timeout:2 attempts:2\n"
    _lay_over(RESOLV_CONF, _write(lab_dir, "resolv.conf", text))
    if os.path.exists(NSSWITCH):
        _lay_over(NSSWITCH, _write(lab_dir, "nsswitch.conf", _nsswitch()))
    for path in filter(os.path.exists, RESOLVER_SOCKETS):
        _lay_over(path, "/dev/null")
    bundle = ca_path
    for path in system_bundles():
        _lay_over(path, _extended_bundle(lab_dir, path, ca_path))
        bundle = path
    return bundle


def _nsswitch() -> str:
    with open(NSSWITCH, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return "\n".join(HOSTS_LINE if line.startswith("hosts:") else line for line in lines) + "\n"


def _extended_bundle(lab_dir: str, path: str, ca_path: str) -> str:
    with open(path, encoding="utf-8") as system, open(ca_path, encoding="utf-8") as ca:
        return _write(lab_dir, path.strip("/").replace("/", "_"), system.read() + ca.read())


def _write(lab_dir: str, name: str, text: str) -> str:
    path = os.path.join(lab_dir, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _lay_over(path: str, source: str) -> None:
    target = os.path.realpath(path)
    if not os.path.exists(target):
        raise RuntimeError(f"{path} is not there: nothing to mount the lab's over")
    # Not mount(8), which refuses whoever is not uid 0 whatever his capabilities.
    result = LIBC.mount(source.encode(), target.encode(), None, MS_BIND, None)
    _check(result, f"mount over {target}")
