"""warden-gate by itself: from its first breath to its last, and what it does under pressure."""

import os
import pathlib
import socket
import struct
import time
import unittest

import gate_ipc as ipc
from gate_cell import Gate
from gate_client import (address_of, ask_udp, connect, dial, dns_query, get, is_refused, is_reset, rcode,
                         read_exactly, read_head, read_response, socks)

LAB = True
NAME, OTHER = "allowed.cell-lab.net", "other.cell-lab.net"
ECHO = f"{NAME}:8080"


def status_of(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def wake_ups(pid):
    status = status_of(pid)
    return int(status["voluntary_ctxt_switches"]) + int(status["nonvoluntary_ctxt_switches"])


def cpu_ticks(pid):
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return sum(map(int, stat.rpartition(")")[2].split()[11:13]))


class Life(unittest.TestCase):
    def start(self, *rules, **options):
        gate = Gate(rules or (NAME, ECHO), **options)
        self.addCleanup(gate.stop)
        return gate

    def test_it_is_confined(self):
        gate = self.start()
        status = status_of(gate.pid)
        self.assertEqual((status["Seccomp"], status["NoNewPrivs"]), ("2", "1"))
        for held in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertEqual(int(status[held], 16), 0, held)
        if os.geteuid() == 0 and "0 0 4294967295" in " ".join(
                pathlib.Path("/proc/self/uid_map").read_text(encoding="ascii").split()):
            self.assertEqual(int(status["CapBnd"], 16), 0)
            fds = [os.readlink(f"/proc/{gate.pid}/fd/{n}")
                   for n in os.listdir(f"/proc/{gate.pid}/fd") if int(n) > 2]
            self.assertFalse([fd for fd in fds if fd.startswith("/")])
        else:
            with self.assertRaises(PermissionError):
                os.listdir(f"/proc/{gate.pid}/fd")

    def test_it_ends_with_its_link(self):
        gate = self.start()
        s, _, _ = connect(ECHO)
        gate.close_link()
        self.assertTrue(gate.has_ended(timeout_s=2))
        with self.assertRaises(OSError):
            s.sendall(b"x")
            s.recv(1)
            raise ConnectionResetError  # an orderly end is as good

    def test_it_ends_when_the_monitor_makes_no_sense(self):
        for kind, payload, fds in ((ipc.SETUP, b"", ()), (ipc.VERDICT, b"", ()), (99, b"", ()),
                                   (ipc.RESOLVERS, b"\xff" * 10, ()), (ipc.POLICY, b"", ())):
            with self.subTest(kind=kind):
                gate = self.start()
                ipc.send(gate._link, kind, payload, fds)
                self.assertTrue(gate.has_ended(timeout_s=2))
                gate.stop()

    def test_a_policy_that_is_none_ends_it(self):
        gate = self.start()
        fd = os.memfd_create("policy")
        os.write(fd, b"\0" * 4096)
        ipc.send(gate._link, ipc.POLICY, b"", [fd])
        os.close(fd)
        self.assertTrue(gate.has_ended(timeout_s=2))

    def test_nothing_wakes_it_when_nothing_happens(self):
        gate = self.start()
        s, _, _ = connect(ECHO)
        s.sendall(b"\1x")
        self.assertEqual(read_exactly(s, 2), b"\1x")
        time.sleep(0.2)
        # The descriptor of the connection attempt's ten seconds may still be armed, not more.
        before = wake_ups(gate.pid)
        time.sleep(12)
        self.assertLessEqual(wake_ups(gate.pid) - before, 1)
        before = wake_ups(gate.pid)
        time.sleep(3)
        self.assertEqual(wake_ups(gate.pid), before)

    def test_a_new_policy_opens_and_closes_at_once(self):
        gate = self.start(NAME, ECHO, f"{OTHER}:8080")
        kept, cut = connect(ECHO)[0], connect(f"{OTHER}:8080")[0]
        for s in (kept, cut):
            s.sendall(b"\1x")
            self.assertEqual(read_exactly(s, 2), b"\1x")
        ident = gate.verdict(OTHER)["id"]
        self.assertEqual(connect("dual.cell-lab.net:443")[1], 403)
        gate.set_policy([NAME, ECHO, "dual.cell-lab.net"])
        self.assertTrue(is_reset(cut))
        verdict = gate.verdict(OTHER)
        self.assertEqual((verdict["id"], verdict["outcome"], verdict["reason"]),
                         (ident, "rule", "not-granted"))
        self.assertEqual(gate.closed(ident).bytes_out, 2)
        kept.sendall(b"y")
        self.assertEqual(read_exactly(kept, 1), b"y")
        self.assertEqual(connect("dual.cell-lab.net:443")[1], 200)

    def test_an_address_outlives_its_grant_and_is_of_no_use(self):
        gate = self.start(NAME)
        address = address_of(NAME)
        gate.set_policy([OTHER])
        while rcode(ask_udp(dns_query(OTHER))) != 0:  # the new policy is there
            time.sleep(0.01)
        self.assertTrue(is_refused((address, 443)))
        self.assertEqual(gate.verdict(NAME, way="transparent")["outcome"], "rule")

    def test_new_resolvers_take_over_what_is_under_way(self):
        gate = self.start(NAME, resolver="44.128.0.99")  # swallows packets
        s = dial(first=f"CONNECT {NAME}:80 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        time.sleep(0.3)
        gate.set_resolver(os.environ["LAB_NAMESERVER"])
        self.assertIn(b" 200 ", read_head(s))

    def test_without_a_resolver_it_fails_at_once(self):
        gate = self.start(NAME)
        gate.set_resolver()
        time.sleep(0.1)
        self.assertEqual(connect(f"{NAME}:80")[1], 502)

    def test_every_attempt_is_told_when_the_monitor_is_slow(self):
        gate = self.start(NAME)
        waiting = []
        for i in range(3000):
            s = socket.socket()
            s.setblocking(False)
            try:
                s.connect(("127.0.0.1", 3128))
            except BlockingIOError:
                pass
            waiting.append((f"n{i}.example", s))
            if i % 100 == 99:
                time.sleep(0.005)
        sent = []
        for name, s in waiting:
            try:
                s.send(f"CONNECT {name}:443 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                sent.append(name)
            except OSError:
                pass
        time.sleep(1)
        # It has stopped taking on more, and does not spin about it.
        ticks = cpu_ticks(gate.pid)
        time.sleep(0.5)
        self.assertLessEqual(cpu_ticks(gate.pid) - ticks, 2)
        told = set()
        while len(told) < len(sent):
            told.add(gate.verdict()["name"])
        self.assertEqual(told, set(sent))
        for _, s in waiting:
            s.close()

    def test_without_descriptors_it_waits_and_does_not_spin(self):
        gate = self.start(NAME, ECHO, max_files=160)  # few connections, and the rest for itself
        busy = [dial(first=f"CONNECT {ECHO} HTTP/1.1\r\nHost: x\r\n\r\n".encode()) for _ in range(60)]
        replies = [read_head(s)[9:12] for s in busy]
        self.assertIn(b"200", replies)
        self.assertIn(b"503", replies)
        ticks = cpu_ticks(gate.pid)
        time.sleep(0.5)
        self.assertLessEqual(cpu_ticks(gate.pid) - ticks, 2)
        for s in busy:
            s.close()
        time.sleep(0.2)
        self.assertEqual(connect(ECHO)[1], 200)

    def test_who_begins_and_does_not_go_on_is_cut(self):
        gate = self.start(NAME, ECHO)
        begun = [dial(first=b"CONNECT "), dial(first=b"GET http://x/ HTTP/1.1\r\nA: "),
                 dial(first=b"\5"), connect(f"{NAME}:443", b"\x16\3\1")[0]]
        silent, idle = dial(), connect(f"{NAME}:443")[0]
        for i in range(9):
            time.sleep(1)
            begun[1].sendall(b"b")  # a byte now and then gains no time
        for s in begun:
            s.settimeout(5)
            self.assertTrue(is_reset(s))
            self.assertEqual(gate.verdict()["outcome"], "protocol")
        # Who has not begun may take its time.
        self.assertEqual(get(silent, f"http://{NAME}/")[0], 200)
        idle.sendall(b"x")
        self.assertTrue(is_reset(idle))

    def test_heads_are_bounded(self):
        gate = self.start(NAME)
        s = dial(first=f"GET http://{NAME}/headers HTTP/1.1\r\nHost: x\r\nA: ".encode() +
                 b"a" * 50000 + b"\r\n\r\n")
        status, _, body = read_response(s)
        self.assertEqual(status, 200)
        self.assertIn(b"a" * 50000, body)
        s = dial(first=b"GET http://x/ HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 70000)
        self.assertEqual(read_response(s)[0], 431)
        self.assertLess(int(status_of(gate.pid)["VmRSS"].split()[0]), 8000)

    def test_many_large_heads_are_too_many(self):
        gate = self.start(NAME)
        first = b"GET http://x/ HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 30000
        held = [dial(first=first) for _ in range(64)]
        time.sleep(0.5)
        self.assertEqual(read_response(dial(first=first))[0], 503)
        self.assertEqual(connect(f"{NAME}:80")[1], 200)
        for s in held:
            s.close()
        time.sleep(0.2)
        s = dial(first=first)
        s.sendall(b"\r\n\r\n")
        self.assertEqual(read_response(s)[0], 403)
        self.assertLess(int(status_of(gate.pid)["VmRSS"].split()[0]), 12000)

    def test_an_unread_answer_is_no_burden(self):
        gate = self.start(NAME)
        slow = [dial(first=f"GET http://{NAME}/bytes/50000000 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                for _ in range(20)]
        time.sleep(1.5)
        self.assertLess(int(status_of(gate.pid)["VmRSS"].split()[0]), 12000)
        ticks = cpu_ticks(gate.pid)
        time.sleep(0.5)
        self.assertLessEqual(cpu_ticks(gate.pid) - ticks, 5)
        self.assertEqual(len(read_response(slow[7])[2]), 50000000)

    def test_bytes_of_urgency_do_not_make_it_spin(self):
        gate = self.start(NAME, ECHO)
        s, _, _ = connect(ECHO)
        s.sendall(b"\1x")
        self.assertEqual(read_exactly(s, 2), b"\1x")
        s.send(b"!", socket.MSG_OOB)
        time.sleep(0.2)
        ticks = cpu_ticks(gate.pid)
        time.sleep(0.5)
        self.assertLessEqual(cpu_ticks(gate.pid) - ticks, 2)

    def test_hundreds_of_tunnels_come_and_go(self):
        gate = self.start(NAME, ECHO)
        held = []
        for i in range(400):
            s, status, _ = connect(ECHO)
            self.assertEqual(status, 200)
            s.sendall(b"\1x")
            held.append(s)
            gate.listen()
            if i % 3 == 0:
                held.pop(0).close()
        for s in held:
            self.assertEqual(read_exactly(s, 2), b"\1x")
        for i, s in enumerate(held):
            if i % 2:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
            gate.listen()
        idents = {gate.verdict(NAME)["id"] for _ in range(400)}
        self.assertEqual(len(idents), 400)
        for ident in idents:
            gate.closed(ident)
        self.assertEqual(socks(NAME, 8080)[1], 0)


if __name__ == "__main__":
    unittest.main()
