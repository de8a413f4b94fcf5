"""The self-test's checks of the lab's web, TCP and UDP servers (run on the host side)."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import time

import lab_zone
from selftest_check import curl, events, expect, is_equal

SITE = "allowed.cell-lab.net"
PATIENCE_S = 5.0
CURL_REFUSED, CURL_TIMEOUT, CURL_UNTRUSTED = 7, 28, 60
PAYLOAD = b"0123456789" * 20_000


def sites_answer_with_their_name_over_http_and_tls() -> None:
    for name, known in lab_zone.ZONE.items():
        if not name.startswith("*") and known.note.startswith(("ordinary", "model")):
            is_equal(curl(f"https://{name}/"), (0, name + "\n"), "https " + name)
    is_equal(curl(f"http://{SITE}/"), (0, SITE + "\n"), "http")
    is_equal(curl(f"https://any-label.wild.{SITE.partition('.')[2]}/")[0], 0, "wildcard")


def the_test_ca_alone_is_enough() -> None:
    is_equal(curl("--cacert", os.environ["LAB_CA"], f"https://{SITE}/")[0], 0, "LAB_CA")
    context = ssl.create_default_context(cafile=os.environ["LAB_BUNDLE"])
    with _connect(SITE, 443) as sock, context.wrap_socket(sock, server_hostname=SITE) as tls:
        is_equal(tls.version(), "TLSv1.3", "LAB_BUNDLE")


def bad_certificates_are_bad() -> None:
    for name in ("wrong-cert.cell-lab.net", "untrusted.cell-lab.net"):
        is_equal(curl(f"https://{name}/")[0], CURL_UNTRUSTED, name)
        is_equal(curl("-k", f"https://{name}/")[0], 0, name + " unchecked")


def both_families_are_served() -> None:
    is_equal(curl("-4", f"https://{SITE}/")[0], 0, "IPv4")
    is_equal(curl("-6", f"https://{SITE}/")[0], 0, "IPv6")
    is_equal(curl("https://v4only.cell-lab.net/")[0], 0, "v4only")
    is_equal(curl("https://v6only.cell-lab.net/")[0], 0, "v6only")
    expect(curl("-6", "https://v4only.cell-lab.net/")[0] != 0, "v4only over IPv6")


def bodies_have_the_size_asked_for() -> None:
    out = ("-o", "/dev/null", "-w", "%{size_download}")
    is_equal(curl(*out, f"https://{SITE}/bytes/5000000"), (0, "5000000"), "/bytes")
    is_equal(curl(*out, f"http://{SITE}/bytes/0"), (0, "0"), "/bytes/0")
    code = curl(*out[:3], "%{http_code}", f"http://{SITE}/bytes/-1")
    is_equal(code, (0, "400"), "/bytes/-1")
    is_equal(curl(f"https://{SITE}/chunked?n=3"), (0, "chunk 0\nchunk 1\nchunk 2\n"), "/chunked")


def head_has_no_body() -> None:
    status, head = curl("-I", f"https://{SITE}/bytes/1000")
    expect(status == 0 and "content-length: 1000" in head.lower(), head)


def posts_are_measured() -> None:
    url = f"https://{SITE}/anything"
    is_equal(curl("--data-binary", "x" * 1000, url), (0, "1000\n"), "POST")
    chunked = ("-H", "Transfer-Encoding: chunked", "--data-binary", "@-")
    is_equal(curl(*chunked, url, text="y" * 300_000), (0, "300000\n"), "chunked")
    is_equal(curl("-X", "PUT", "-d", "abc", url), (0, "3\n"), "PUT")
    logged = events("LAB_REQUESTS", event="request", method="PUT", body_bytes=3)
    is_equal(logged[0]["body_sha256"], hashlib.sha256(b"abc").hexdigest(), "digest")


def slow_bytes_come_one_by_one() -> None:
    begun = time.monotonic()
    is_equal(curl(f"https://{SITE}/slow?every=0.2&n=3"), (0, "..."), "/slow")
    took = time.monotonic() - begun
    expect(0.6 <= took < 2, f"took {took:.2f} s")


def redirects_point_where_told() -> None:
    status, text = curl("-L", f"https://{SITE}/redirect?to=https://exfil-drop.net/")
    is_equal((status, text), (0, "exfil-drop.net\n"), "followed")


def connections_are_kept_and_unknown_pages_missing() -> None:
    url = f"http://{SITE}/"
    before = len(events("LAB_REQUESTS", event="connect"))
    is_equal(curl("-w", "%{http_code}", url, url + "none"),
             (0, SITE + "\n200no such page in the lab\n404"), "pages")
    is_equal(len(events("LAB_REQUESTS", event="connect")) - before, 1, "connections")


def credentials_are_logged_as_digests() -> None:
    secret = "sk-selftest-very-secret"
    curl("-H", f"X-Api-Key: {secret}", "-H", "Authorization: Bearer other-secret",
         f"https://{SITE}/headers?selftest")
    logged = events("LAB_REQUESTS", event="request", path="/headers?selftest")[0]
    wanted = "sha256:" + hashlib.sha256(secret.encode()).hexdigest()[:16]
    is_equal(logged["credentials"]["x-api-key"], wanted, "x-api-key")
    is_equal(sorted(logged["credentials"]), ["authorization", "x-api-key"], "names")
    with open(os.environ["LAB_REQUESTS"], encoding="utf-8") as file:
        expect("very-secret" not in file.read(), "the value is in the log")


def sni_and_host_are_logged_apart() -> None:
    curl("-H", "Host: exfil-drop.net", f"https://{SITE}/fronted")
    logged = events("LAB_REQUESTS", event="request", path="/fronted")[0]
    is_equal((logged["sni"], logged["host"], logged["tls"]), (SITE, "exfil-drop.net", True), "log")


def a_half_closed_upload_is_answered() -> None:
    for is_tls in (False, True):
        with _connect(SITE, 443 if is_tls else 80) as sock:
            conn = _trusting().wrap_socket(sock, server_hostname=SITE) if is_tls else sock
            _upgrade(conn, "lab-count")
            conn.sendall(PAYLOAD)
            with socket.socket(fileno=os.dup(conn.fileno())) as same:  # below TLS: a bare FIN
                same.shutdown(socket.SHUT_WR)
            is_equal(_read_all(conn), b"%d bytes\n" % len(PAYLOAD), f"TLS {is_tls}")


def an_upgraded_connection_echoes() -> None:
    with _connect(SITE, 443) as sock, _trusting().wrap_socket(sock, server_hostname=SITE) as tls:
        _upgrade(tls, "lab-echo")
        tls.sendall(b"ping")
        is_equal(tls.recv(100), b"ping", "echo")


def raw_ports_echo() -> None:
    with _connect(SITE, 22) as sock:
        expect(sock.recv(100).startswith(b"SSH-2.0-"), "banner")
        is_equal(_ping(sock), b"ping", "22")
    for port in (8080, 8443):
        with _connect(SITE, port) as sock:
            is_equal(_ping(sock), b"ping", str(port))
    expect(events("LAB_REQUESTS", event="connect", port=22), "22 is in the log")


def datagrams_echo_from_the_address_asked() -> None:
    for address in ("44.128.1.40", "2d00:1ab:1::40"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.settimeout(PATIENCE_S)
            sock.connect((address, 443))
            is_equal(_ping(sock), b"ping", address)


def dead_ends_are_dead() -> None:
    is_equal(curl("-m", "0.5", "http://blackhole.cell-lab.net/")[0], CURL_TIMEOUT, "blackhole")
    for family in ("-4", "-6"):
        is_equal(curl(family, f"http://{SITE}:81/")[0], CURL_REFUSED, "closed port " + family)
    is_equal(curl("--connect-timeout", "3", "http://failover.cell-lab.net/")[0], 0, "failover")


def forbidden_addresses_would_answer() -> None:
    """Controls: what refuses these must be the tool under test, not the lab."""
    elsewhere = ("metadata", "metadata6", "private10", "private172", "private192", "cgnat", "ula",
                 "doc", "bench", "nat64", "nat64-metadata", "nat64-local", "compat", "sixtofour",
                 "teredo", "alias-private")
    at_home = ("loopback", "loopback6", "zero", "zero6", "mapped", "own")
    for side, names in (("net", elsewhere), ("host", at_home)):
        for name in names:
            host = f"{name}.cell-lab.net"
            is_equal(curl(f"http://{host}/control")[0], 0, host)
            logged = events("LAB_REQUESTS", event="request", host=host, path="/control")
            is_equal([one["side"] for one in logged], [side], host)


def _connect(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), PATIENCE_S)


def _trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=os.environ["LAB_CA"])


def _ping(sock: socket.socket) -> bytes:
    sock.sendall(b"ping")
    return sock.recv(100)


def _upgrade(conn: socket.socket, protocol: str) -> None:
    head = f"GET /up HTTP/1.1\r\nhost: {SITE}\r\nconnection: upgrade\r\nupgrade: {protocol}\r\n\r\n"
    conn.sendall(head.encode())
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += conn.recv(1)
    expect(answer.startswith(b"HTTP/1.1 101 "), answer.decode())


def _read_all(conn: socket.socket) -> bytes:
    data = b""
    while piece := conn.recv(65536):
        data += piece
    return data


CHECKS = (
    sites_answer_with_their_name_over_http_and_tls, the_test_ca_alone_is_enough,
    bad_certificates_are_bad, both_families_are_served, bodies_have_the_size_asked_for,
    head_has_no_body, posts_are_measured, slow_bytes_come_one_by_one, redirects_point_where_told,
    connections_are_kept_and_unknown_pages_missing, credentials_are_logged_as_digests,
    sni_and_host_are_logged_apart, a_half_closed_upload_is_answered, an_upgraded_connection_echoes,
    raw_ports_echo, datagrams_echo_from_the_address_asked, dead_ends_are_dead,
    forbidden_addresses_would_answer,
)
