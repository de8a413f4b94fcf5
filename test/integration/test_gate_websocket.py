"""warden-gate by itself: a websocket through the plain proxy, which stays the relay of each request.

The lab's own servers speak no websocket, so one is started on the internet side: root only.
"""

import ctypes
import os
import signal
import socket
import time
import unittest

from gate_cell import CLONE_NEWNET, LIBC, Gate
from gate_client import dial, get, read_all, read_exactly, read_head, read_response

LAB = True
AS = ["root"]
NAME, PORT = "allowed.cell-lab.net", 8097
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"


def serve(listener):
    """Accepts upgrades to /yes and then echoes; refuses others and stays on HTTP."""
    while True:
        s, _ = listener.accept()
        if os.fork():
            s.close()
            continue
        while True:
            head = read_head(s)
            if not head:
                os._exit(0)
            if head.startswith(b"GET /yes"):
                s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                          b"Upgrade: websocket\r\n\r\nhello")
                break
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain")
        while data := s.recv(65536):
            s.sendall(data)
        os._exit(0)


def start_server():
    """A server in the internet side's network; returns its pid."""
    ready_read, ready_write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(ready_write)
        assert os.read(ready_read, 1) == b"r"
        os.close(ready_read)
        return pid
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    fd = os.open(f"/proc/{os.environ['LAB_NET_PID']}/ns/net", os.O_RDONLY)
    if LIBC.setns(fd, CLONE_NEWNET) != 0:
        os.write(2, f"setns: {os.strerror(ctypes.get_errno())}\n".encode())
        os._exit(1)
    listener = socket.create_server(("::", PORT), family=socket.AF_INET6, dualstack_ipv6=True)
    os.write(ready_write, b"r")
    serve(listener)


class WebSocket(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = start_server()
        cls.addClassCleanup(os.waitpid, cls.server, 0)
        cls.addClassCleanup(os.kill, cls.server, signal.SIGKILL)
        cls.gate = Gate([f"{NAME}:{PORT}"])
        cls.addClassCleanup(cls.gate.stop)

    def setUp(self):
        self.gate.forget()

    def upgrade(self, path):
        url = f"http://{NAME}:{PORT}{path}"
        return dial(first=f"GET {url} HTTP/1.1\r\nHost: x\r\n".encode() + UPGRADE + b"\r\n")

    def test_an_accepted_upgrade_is_a_tunnel(self):
        s = self.upgrade("/yes")
        head = read_head(s)
        self.assertTrue(head.startswith(b"HTTP/1.1 101"), head)
        self.assertIn(b"websocket", head.lower())
        self.assertEqual(read_exactly(s, 5), b"hello")
        data = os.urandom(300000)
        s.sendall(data[:1000])
        self.assertEqual(read_exactly(s, 1000), data[:1000])
        time.sleep(0.1)
        s.settimeout(20)
        sent = 1000
        while sent < len(data):
            s.sendall(data[sent:sent + 50000])
            self.assertEqual(read_exactly(s, len(data[sent:sent + 50000])),
                             data[sent:sent + 50000])
            sent += 50000
        s.shutdown(1)
        self.assertEqual(read_all(s), b"")
        verdict = self.gate.verdict(NAME)
        self.assertEqual((verdict["way"], verdict["outcome"]), ("http", "allowed"))
        self.assertGreater(self.gate.closed(verdict["id"]).bytes_out, 300000)

    def test_a_refused_upgrade_is_an_answer_like_any_other(self):
        s = self.upgrade("/no")
        self.assertEqual(read_response(s)[2], b"plain")
        # What follows is a request again, and decided.
        self.assertEqual(get(s, f"http://{NAME}:{PORT}/")[2], b"plain")
        self.assertEqual(get(s, "http://other.cell-lab.net/")[0], 403)


if __name__ == "__main__":
    unittest.main()
