"""warden-gate by itself: the name server of the cell."""

import json
import os
import socket
import struct
import unittest

from gate_cell import Gate
from gate_client import (A, AAAA, HTTPS, PTR, TXT, address_of, answers, ask_udp, dial, dns_query,
                         is_refused, rcode, read_exactly)

LAB = True
NAME = "allowed.cell-lab.net"
NXDOMAIN, FORMERR = 3, 1


def extended_error(answer):
    """(code, text) of RFC 8914 in the answer's OPT record, which is its last."""
    at = answer.rindex(b"\0" + struct.pack("!H", 41))
    data = answer[at + 11:]
    option, size, code = struct.unpack_from("!3H", data)
    assert option == 15, data
    return code, data[6:4 + size].decode()


class NameServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gate = Gate([NAME, "*.wild.cell-lab.net", "github.com:22", "!no.wild.cell-lab.net"])
        cls.addClassCleanup(cls.gate.stop)

    def setUp(self):
        self.gate.forget()

    def test_a_granted_name_has_an_address_of_the_synthetic_range(self):
        first = address_of(NAME)
        self.assertIn(first.rpartition(".")[0].rpartition(".")[0], ("198.18", "198.19"))
        self.assertEqual(address_of(NAME.upper()), first)
        self.assertNotEqual(address_of("a.wild.cell-lab.net"), first)
        self.assertNotEqual(address_of("github.com"), first)

    def test_it_has_nothing_else(self):
        for kind in (AAAA, HTTPS, TXT, 64, 255):
            answer = ask_udp(dns_query(NAME, kind))
            self.assertEqual((rcode(answer), answers(answer)), (0, 0))

    def test_the_address_has_the_name(self):
        reverse = ".".join(reversed(address_of(NAME).split("."))) + ".in-addr.arpa"
        answer = ask_udp(dns_query(reverse, PTR))
        self.assertEqual(answers(answer), 1)
        self.assertIn(b"\x07allowed\x08cell-lab\x03net", answer[-60:])
        self.assertEqual(rcode(ask_udp(dns_query("9.9.19.198.in-addr.arpa", PTR))), NXDOMAIN)

    def test_what_is_not_granted_does_not_exist_and_it_is_said_why(self):
        for name in ("other.cell-lab.net", "wild.cell-lab.net", "no.wild.cell-lab.net", "x", "8.8.8.8"):
            answer = ask_udp(dns_query(name))
            self.assertEqual((rcode(answer), answers(answer)), (NXDOMAIN, 0))
            self.assertEqual(extended_error(answer), (15, "not granted by the policy"))
            verdict = self.gate.verdict(name)
            self.assertEqual((verdict["way"], verdict["outcome"], verdict["type"]), ("dns", "rule", A))

    def test_localhost_is_known(self):
        for name in ("localhost", "foo.localhost"):
            answer = ask_udp(dns_query(name, has_edns=False))
            self.assertEqual(answer[-4:], socket.inet_aton("127.0.0.1"))
        self.assertEqual(answers(ask_udp(dns_query("localhost", AAAA))), 0)

    def test_nothing_is_asked_of_anyone(self):
        for i in range(50):
            ask_udp(dns_query(f"secret{i}.exfil-drop.net", TXT))
            ask_udp(dns_query(f"secret{i}.wild.cell-lab.net"))
        with open(os.environ["LAB_QUERIES"], encoding="utf-8") as file:
            names = [json.loads(line)["name"] for line in file]
        self.assertFalse([name for name in names if name and name.startswith("secret")])

    def test_tcp_answers_as_many_questions_as_are_asked(self):
        s = dial(("127.0.0.1", 53))
        queries = [dns_query(NAME, ident=i) for i in range(20)]
        data = b"".join(struct.pack("!H", len(q)) + q for q in queries)
        s.sendall(data[:70])
        s.sendall(data[70:])
        for i in range(20):
            size = struct.unpack("!H", read_exactly(s, 2))[0]
            answer = read_exactly(s, size)
            self.assertEqual((struct.unpack_from("!H", answer)[0], answers(answer)), (i, 1))

    def test_what_is_no_query_is_refused_or_left_alone(self):
        self.assertEqual(rcode(ask_udp(dns_query(NAME) + b"trailing")), FORMERR)
        self.assertEqual(self.gate.verdict()["outcome"], "protocol")
        response = bytearray(dns_query(NAME))
        response[2] |= 0x80
        with self.assertRaises(TimeoutError):
            ask_udp(bytes(response), timeout_s=0.3)
        s = dial(("127.0.0.1", 53), struct.pack("!H", 5) + b"short")
        self.assertEqual(s.recv(10), b"")

    def test_identical_refusals_are_counted(self):
        for _ in range(40):
            ask_udp(dns_query("again.example"))
        self.assertEqual(self.gate.verdict("again.example")["repeats"], 0)
        # 39 more: one event that stands for itself and 38 others.
        self.assertEqual(self.gate.verdict("again.example")["repeats"], 38)
        with self.assertRaises(TimeoutError):
            self.gate.verdict("again.example", timeout_s=0.5)

    def test_different_refusals_are_each_told(self):
        for i in range(100):
            ask_udp(dns_query(f"n{i}.example"))
        for i in range(100):
            self.assertEqual(self.gate.verdict(f"n{i}.example")["repeats"], 0)

    def test_an_address_that_stands_for_nothing_is_reset(self):
        for address in ("198.18.77.77", "198.18.0.1", "198.19.255.254"):
            self.assertTrue(is_refused((address, 443)))
            verdict = self.gate.verdict()
            self.assertEqual((verdict["outcome"], verdict["addr"], verdict["port"]),
                             ("unknown-address", address, 443))


if __name__ == "__main__":
    unittest.main()
