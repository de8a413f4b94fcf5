"""warden-gate by itself: the explicit proxy, request by request."""

import json
import os
import struct
import unittest

from gate_cell import Gate
from gate_client import (address_of, connect, dial, get, is_reset, read_all, read_exactly, read_head,
                         read_response, socks, tls)

LAB = True
NAME = "allowed.cell-lab.net"
RULES = (NAME, "*.wild.cell-lab.net", "github.com:22", "dual.cell-lab.net:8080", "nowhere.cell-lab.net",
         "dual.cell-lab.net:81", "blackhole.cell-lab.net", "failover.cell-lab.net",
         "servfail.cell-lab.net", "private10.cell-lab.net", "private172.cell-lab.net+private",
         "loopback.cell-lab.net+private", "hosts.example", "big.cell-lab.net", "slow.cell-lab.net")


class Proxy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gate = Gate(RULES, hosts=[("hosts.example", "44.128.1.40")])
        cls.addClassCleanup(cls.gate.stop)

    def setUp(self):
        self.gate.forget()

    def assert_verdict(self, name, **expected):
        verdict = self.gate.verdict(name)
        self.assertEqual(expected, {key: verdict[key] for key in expected})
        return verdict

    def test_a_tunnel_is_reported_with_its_bytes(self):
        s, status, _ = connect(f"{NAME}:443")
        self.assertEqual(status, 200)
        with tls(s, NAME) as t:
            t.sendall(f"GET /bytes/300000 HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode())
            self.assertEqual(len(read_response(t)[2]), 300000)
        verdict = self.assert_verdict(NAME, outcome="allowed", way="connect", rule=0, port=443)
        closed = self.gate.closed(verdict["id"])
        self.assertGreater(closed.bytes_in, 300000)
        self.assertGreater(closed.bytes_out, 100)
        self.assertGreater(closed.duration_ns, 0)

    def test_bytes_right_behind_the_connect_are_not_lost(self):
        s, status, _ = connect("dual.cell-lab.net:8080", b"\1early")
        self.assertEqual(status, 200)
        self.assertEqual(read_exactly(s, 6), b"\1early")

    def test_a_server_may_speak_first(self):
        s, _, _ = connect("github.com:22")
        self.assertTrue(read_exactly(s, 8).startswith(b"SSH-2.0-"))
        self.assert_verdict("github.com", outcome="allowed", port=22)

    def test_each_request_of_a_connection_is_decided_by_itself(self):
        s = dial()
        for host in (NAME, NAME, "a.wild.cell-lab.net", "b.wild.cell-lab.net", NAME):
            status, _, body = get(s, f"http://{host}/")
            self.assertEqual((status, body), (200, host.encode() + b"\n"))
            self.assert_verdict(host, outcome="allowed", way="http", method="GET", port=80)
        status, _, body = get(s, "http://other.cell-lab.net/", host=NAME)
        self.assertEqual(status, 403)
        self.assertIn(b"warden allowlist add other.cell-lab.net\n", body)
        self.assert_verdict("other.cell-lab.net", outcome="rule", reason="not-granted")

    def test_a_server_is_kept_for_the_next_request_to_it(self):
        s = dial()
        first = [get(s, f"http://{NAME}/") and self.gate.verdict(NAME)["id"] for _ in range(3)]
        self.assertEqual(len(set(first)), 1)
        get(s, "http://a.wild.cell-lab.net/")
        self.assertNotEqual(self.gate.verdict("a.wild.cell-lab.net")["id"], first[0])
        self.gate.closed(first[0])

    def test_bodies_of_every_framing_arrive_whole(self):
        s = dial()
        size, data = 700000, os.urandom(700000)
        head = f"POST http://{NAME}/ HTTP/1.1\r\nHost: x\r\n".encode()
        s.sendall(head + b"Content-Length: %d\r\n\r\n" % size + data)
        self.assertEqual(read_response(s)[2].split()[0], b"%d" % size)
        chunks = b"".join(b"%x\r\n" % 7000 + data[i:i + 7000] + b"\r\n" for i in range(0, size, 7000))
        # The next request lies right behind the last chunk.
        s.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n" +
                  f"GET http://{NAME}/chunked?n=50 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertEqual(read_response(s)[2].split()[0], b"%d" % size)
        self.assertEqual(read_response(s)[2].count(b"chunk"), 50)
        self.assertEqual(len(get(s, f"http://{NAME}/bytes/2000000")[2]), 2000000)

    def test_a_head_alone_has_no_body(self):
        s = dial()
        s.sendall(f"HEAD http://{NAME}/bytes/100 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertTrue(read_head(s).startswith(b"HTTP/1.1 200"))
        self.assertEqual(get(s, f"http://{NAME}/")[2], NAME.encode() + b"\n")

    def test_an_old_client_gets_the_end_of_the_stream(self):
        s = dial(first=f"GET http://{NAME}/ HTTP/1.0\r\n\r\n".encode())
        self.assertTrue(read_all(s).endswith(NAME.encode() + b"\n"))

    def test_the_url_names_the_host_whatever_the_field_says(self):
        s = dial()
        headers = get(s, f"http://{NAME}/headers", host="evil.example",
                      extra=b"Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\n")[2]
        self.assertIn(f"host: {NAME}".encode(), headers.lower())
        self.assertNotIn(b"evil", headers)
        self.assertNotIn(b"proxy-", headers.lower())

    def test_what_is_no_request_is_a_400(self):
        for first in (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"NONSENSE\r\n\r\n",
                      b"GET http://a b/ HTTP/1.1\r\n\r\n", b"CONNECT nowhere HTTP/1.1\r\n\r\n",
                      b"GET https://allowed.cell-lab.net/ HTTP/1.1\r\nHost: x\r\n\r\n"):
            with self.subTest(first):
                s = dial(first=first)
                self.assertEqual(read_response(s)[0], 400)
                self.assertEqual(read_all(s), b"")
                self.assertEqual(self.gate.verdict()["outcome"], "protocol")

    def test_what_cannot_be_reached_is_a_502_with_the_reason(self):
        for host, words, outcome in (("nowhere.cell-lab.net:443", b"not found", "resolve"),
                                     ("servfail.cell-lab.net:443", b"server", "resolve"),
                                     ("dual.cell-lab.net:81", b"refused", "connect")):
            with self.subTest(host):
                s, status, _ = connect(host)
                self.assertEqual(status, 502)
                self.assertIn(words, read_all(s))
                self.assert_verdict(host.partition(":")[0], outcome=outcome)

    def test_a_dead_address_costs_a_quarter_of_a_second(self):
        s, status, _ = connect("failover.cell-lab.net:443")
        self.assertEqual(status, 200)
        with tls(s, "failover.cell-lab.net"):
            self.assert_verdict("failover.cell-lab.net", outcome="allowed", addr="44.128.1.49")

    def test_a_connection_that_nobody_answers_ends(self):
        _, status, _ = connect("blackhole.cell-lab.net:443")
        self.assertEqual(status, 502)
        self.assert_verdict("blackhole.cell-lab.net", outcome="connect", addr="44.128.0.99")

    def test_private_answers_need_a_grant_of_their_own(self):
        self.assertEqual(connect("private10.cell-lab.net:80")[1], 403)
        self.assert_verdict("private10.cell-lab.net", outcome="address", addr="10.1.2.3")
        self.assertEqual(connect("private172.cell-lab.net:80")[1], 200)
        self.assertEqual(connect("loopback.cell-lab.net:80")[1], 403)
        self.assert_verdict("loopback.cell-lab.net", outcome="address", addr="127.0.0.1")

    def test_names_of_the_hosts_file_are_not_asked_for(self):
        self.assertEqual(connect("hosts.example:80")[1], 200)
        with open(os.environ["LAB_QUERIES"], encoding="utf-8") as file:
            self.assertNotIn("hosts.example", [json.loads(line)["name"] for line in file])

    def test_a_set_that_is_too_long_for_a_datagram_is_asked_for_by_tcp(self):
        self.assertEqual(connect("big.cell-lab.net:80")[1], 200)

    def test_socks_speaks_the_same_policy(self):
        s, reply = socks(NAME, 443)
        self.assertEqual(reply, 0)
        with tls(s, NAME) as t:
            self.assertEqual(get(t, "/", host=NAME)[0], 200)
        self.assert_verdict(NAME, outcome="allowed", way="socks")
        self.assertEqual(socks("other.cell-lab.net", 443)[1], 2)
        self.assert_verdict("other.cell-lab.net", outcome="rule", way="socks")
        self.assertEqual(socks("nowhere.cell-lab.net", 443)[1], 4)
        self.assertEqual(socks("127.0.0.1", 443)[1], 2)

    def test_socks_by_address_or_for_another_command_is_refused(self):
        for request, reply in ((b"\5\1\0\1\x2c\x80\1\x28\1\xbb", 2),  # an IPv4 address
                               (b"\5\2\0\3\4name\1\xbb", None)):  # BIND
            s = dial(first=b"\5\1\0" + request)
            self.assertEqual(read_exactly(s, 2), b"\5\0")
            answer = read_exactly(s, 10)
            self.assertNotEqual(answer[1], 0)
            if reply:
                self.assertEqual(answer[1], reply)

    def test_socks_with_a_password_alone_is_refused(self):
        self.assertEqual(read_exactly(dial(first=b"\5\1\2"), 2), b"\5\xff")


class Tunnel(unittest.TestCase):
    """What is inside a tunnel, by CONNECT and by synthetic address."""

    @classmethod
    def setUpClass(cls):
        cls.gate = Gate([NAME, f"{NAME}:8080"], listen=(80, 443, 8080))
        cls.addClassCleanup(cls.gate.stop)

    def setUp(self):
        self.gate.forget()

    def both_ways(self, port):
        s, status, _ = connect(f"{NAME}:{port}")
        self.assertEqual(status, 200)
        return s, dial((address_of(NAME), port))

    def test_every_request_inside_has_to_name_the_granted_host(self):
        for s in self.both_ways(80):
            self.assertEqual(get(s, "/", host=NAME)[0], 200)
            self.assertEqual(get(s, "/chunked?n=3", host=NAME.upper() + ":80")[0], 200)
            self.assertEqual(self.gate.verdict(NAME)["outcome"], "allowed")
            status, _, body = get(s, "/", host="other.cell-lab.net")
            self.assertEqual(status, 403)
            self.assertIn(b"other.cell-lab.net", body)
            verdict = self.gate.verdict(NAME)
            self.assertEqual((verdict["outcome"], verdict["seen"]), ("host", "other.cell-lab.net"))

    def test_http_on_another_port_is_no_way_round(self):
        for s in self.both_ways(8080):
            s.sendall(b"GET / HTTP/1.1\r\nHost: other.cell-lab.net\r\n\r\n")
            self.assertEqual(read_response(s)[0], 403)

    def test_a_head_in_pieces_is_held_until_it_is_whole(self):
        for s in self.both_ways(8080):
            for piece in (b"G", b"E", b"T", b" ", b"/ HTTP/1.1\r\nHo", b"st: evil.example\r\n\r\n"):
                s.sendall(piece)
            self.assertEqual(read_response(s)[0], 403)

    def test_plain_text_on_443_is_reset(self):
        for s in self.both_ways(443):
            s.sendall(b"GET / HTTP/1.1\r\nHost: allowed.cell-lab.net\r\n\r\n")
            self.assertTrue(is_reset(s))
            self.assertEqual(self.gate.verdict(NAME)["outcome"], "protocol")

    def test_half_a_hello_is_not_sent_on(self):
        for s in self.both_ways(443):
            s.sendall(b"\x16\3\1\0\x20\1\0")
            s.shutdown(1)
            self.assertTrue(is_reset(s))
            self.assertEqual(self.gate.verdict(NAME)["outcome"], "protocol")

    def test_each_direction_ends_by_itself(self):
        for s in self.both_ways(8080):
            s.sendall(b"\1half\n")
            s.shutdown(1)
            self.assertEqual(read_all(s), b"\1half\n")

    def test_a_reset_of_the_client_is_the_end(self):
        for s in self.both_ways(8080):
            s.sendall(b"\1x")
            self.assertEqual(read_exactly(s, 2), b"\1x")
            ident = self.gate.verdict(NAME)["id"]
            s.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER
            s.close()
            self.assertEqual(self.gate.closed(ident).bytes_out, 2)


if __name__ == "__main__":
    unittest.main()
