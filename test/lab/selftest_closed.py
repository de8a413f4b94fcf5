"""The self-test's checks that the host side is closed and the command is who it should be."""

from __future__ import annotations

import os
import socket
import subprocess

import lab_zone
from selftest_check import expect, is_equal

# Set by the self-test: what the lab's command must find, and where it must find nobody.
EXPECTED_IDENTITY = "SELFTEST_IDENTITY"
OUTER_PORT = "SELFTEST_OUTER_PORT"
SENTINEL_PROXY = "http://127.0.0.1:1"


def identity() -> str:
    """Who this process is: "UID CAPS" with CAPS full or none, or the mask if neither."""
    with open("/proc/self/status", encoding="utf-8") as file:
        fields = dict(line.split(":", 1) for line in file)
    effective, bounding = (int(fields[one], 16) for one in ("CapEff", "CapBnd"))
    caps = {0: "none", bounding: "full"}.get(effective, hex(effective))
    return f"{os.getuid()} {caps}"


def the_command_is_who_it_should_be() -> None:
    is_equal(identity(), os.environ[EXPECTED_IDENTITY], "uid and capabilities")


def the_only_ways_are_loopback_and_the_lab() -> None:
    is_equal(sorted(name for _, name in socket.if_nameindex()), ["eth0", "lo"], "interfaces")
    for family, gateway in (("-4", lab_zone.GATEWAY_V4), ("-6", lab_zone.GATEWAY_V6)):
        routes = subprocess.run(["ip", family, "route"], capture_output=True, text=True, check=True)
        defaults = [one for one in routes.stdout.splitlines() if one.startswith("default")]
        is_equal(len(defaults), 1, "default routes")
        expect(f"via {gateway} dev eth0" in defaults[0], defaults[0])


def a_listener_of_the_real_host_is_out_of_reach() -> None:
    port = int(os.environ[OUTER_PORT])
    try:
        socket.create_connection(("127.0.0.1", port), 2).close()
    except ConnectionRefusedError:
        return
    raise AssertionError("connected")


def variables_that_lead_past_the_lab_are_gone() -> None:
    left = [name for name in os.environ if name.upper().endswith("_PROXY")]
    is_equal(left, [], "proxy variables")
    expect("RES_OPTIONS" not in os.environ, "RES_OPTIONS")


def the_exports_are_there_and_readable() -> None:
    for name in ("LAB_CA", "LAB_BUNDLE", "LAB_QUERIES", "LAB_REQUESTS", "LAB_MODEL_COMMAND"):
        expect(os.access(os.environ[name], os.R_OK), name)
    expect(os.path.isdir(os.environ["LAB_DIR"]), "LAB_DIR")
    expect(os.path.exists(f"/proc/{os.environ['LAB_NET_PID']}"), "LAB_NET_PID")
    expect(not os.access(os.path.join(os.environ["LAB_DIR"], "certs", "ca.key"), os.R_OK)
           or os.getuid() == os.stat(os.environ["LAB_DIR"]).st_uid, "the CA's key is private")


CHECKS = (
    the_command_is_who_it_should_be, the_only_ways_are_loopback_and_the_lab,
    a_listener_of_the_real_host_is_out_of_reach, variables_that_lead_past_the_lab_are_gone,
    the_exports_are_there_and_readable,
)
