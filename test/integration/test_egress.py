"""What is granted is reached, whatever way a program takes; and the journal says so."""

import json
import os

from support import Case, read_lines, wait_for

LAB = True

NAME = "allowed.cell-lab.net"
TRUST = "export SSL_CERT_FILE=$BUNDLE NODE_EXTRA_CA_CERTS=$BUNDLE; "
CODE = "-sS -o /dev/null -w '%{http_code}' --max-time 15"
NO_ENV = "env -u HTTP_PROXY -u http_proxy -u HTTPS_PROXY -u https_proxy -u ALL_PROXY -u all_proxy "
FETCH = """node -e 'fetch("https://allowed.cell-lab.net/").then(r => console.log(r.status))'"""
URLLIB = ("/usr/bin/python3 -c 'import urllib.request as u; "
          "print(u.urlopen(\"https://allowed.cell-lab.net/\", timeout=15).status)'")
RAW = """/usr/bin/python3 -c '
import socket, ssl
address = socket.getaddrinfo("allowed.cell-lab.net", 443, type=socket.SOCK_STREAM)[0][4]
with socket.create_connection(address, 15) as s:
    with ssl.create_default_context().wrap_socket(s, server_hostname="allowed.cell-lab.net") as t:
        t.sendall(b"GET / HTTP/1.1\\r\\nHost: allowed.cell-lab.net\\r\\n"
                  b"Connection: close\\r\\n\\r\\n")
        print(t.recv(100).split()[1].decode())'"""
# way -> (program, command that prints the HTTP status, how the journal calls the way)
WAYS = {
    "https by proxy": ("curl", f"curl {CODE} https://{NAME}/", "connect"),
    "http by proxy": ("curl", f"curl {CODE} http://{NAME}/", "http"),
    "https transparent": ("curl", f"curl {CODE} --noproxy '*' https://{NAME}/", "transparent"),
    "http transparent": ("curl", f"curl {CODE} --noproxy '*' http://{NAME}/", "transparent"),
    "socks5h": ("curl", f"curl {CODE} --socks5-hostname 127.0.0.1:3128 https://{NAME}/", "socks"),
    "D01 node fetch": ("node", FETCH, None),
    "D01 node without a proxy": ("node", f"NODE_USE_ENV_PROXY=0 {NO_ENV} {FETCH}", "transparent"),
    "python urllib": ("python3", URLLIB, "connect"),
    "python urllib without a proxy": ("python3", f"{NO_ENV} {URLLIB}", "transparent"),
    "D05 getaddrinfo and a socket": ("python3", RAW, "transparent"),
    "upper case and a dot": ("curl", f"curl {CODE} https://ALLOWED.cell-lab.net./", "connect"),
}
HALF_CLOSE = """/usr/bin/python3 -c '
import socket
s = socket.create_connection(("allowed.cell-lab.net", 80), 15)
s.sendall(b"GET /bytes/100000 HTTP/1.1\\r\\nHost: allowed.cell-lab.net\\r\\n"
          b"Connection: close\\r\\n\\r\\n")
s.shutdown(socket.SHUT_WR)
print(len(s.makefile("rb").read().partition(b"\\r\\n\\r\\n")[2]))'"""


class Granted(Case):
    def setUp(self):
        super().setUp()
        self.begin = len(read_lines(os.environ["LAB_REQUESTS"]))

    def requests(self, host):
        """What the internet got since the test began."""
        lines = read_lines(os.environ["LAB_REQUESTS"])[self.begin:]
        return [line for line in lines if line.get("event") == "request" and line["host"] == host]

    def online(self, command, *options, **run):
        bundle = os.environ["LAB_BUNDLE"]
        return self.cell(f"BUNDLE={bundle}; {TRUST}{command}", *options, **run)

    def test_every_way_to_a_granted_name(self):
        for name, (program, command, way) in WAYS.items():
            with self.subTest(name):
                self.need(program)
                done = self.online(command, "--allow", NAME)
                self.assertEqual(done.stdout.strip(), "200", done.stderr)
                ways = {event["way"] for event in self.events("net.connect", host=NAME)}
                self.assertEqual(ways, {way} if way else ways - {"dns"})
        self.assertEqual(len(self.requests(NAME)), len(WAYS))

    def test_without_the_grant_none_of_them(self):
        for name, (program, command, _) in WAYS.items():
            with self.subTest(name):
                self.need(program)
                done = self.online(command)
                self.assertNotEqual(done.stdout.strip(), "200", done.stderr)
        self.assertEqual(self.requests(NAME), [])

    def test_names_below_a_wildcard_and_not_the_name_itself(self):
        codes = "; ".join(f"curl {CODE} http://{name}.cell-lab.net/; echo" for name in (
            "a.wild", "a.b.wild", "awild", "wild"))
        done = self.online(codes, "--allow", "*.wild.cell-lab.net")
        self.assertEqual(done.stdout.split(), ["200", "200", "403", "403"])

    def test_denied_beats_allowed(self):
        grants = ("--allow", "*.wild.cell-lab.net", "--deny", "no.wild.cell-lab.net")
        done = self.online(f"curl {CODE} http://no.wild.cell-lab.net/; echo;"
                           f"curl {CODE} http://yes.wild.cell-lab.net/", *grants)
        self.assertEqual(done.stdout.split(), ["403", "200"])

    def test_families_and_failover(self):
        names = ("dual.cell-lab.net", "v4only.cell-lab.net", "v6only.cell-lab.net",
                 "many.cell-lab.net", "failover.cell-lab.net", "alias.cell-lab.net")
        options = [word for name in names for word in ("--allow", name)]
        codes = "; ".join(f"curl {CODE} http://{name}/; echo" for name in names)
        self.assertEqual(self.online(codes, *options).stdout.split(), ["200"] * len(names))

    def test_a_large_download_arrives_whole_by_both_ways(self):
        size = 30_000_000
        url = f"https://{NAME}/bytes/{size}"
        done = self.online(f"curl -sS {url} | wc -c; curl -sS --noproxy '*' {url} | wc -c",
                           "--allow", NAME)
        self.assertEqual(done.stdout.split(), [str(size)] * 2)

    def test_D10_half_close_and_unbuffered_answers(self):
        done = self.online(HALF_CLOSE, "--allow", NAME)
        self.assertEqual(done.stdout, "100000\n", done.stderr)
        slow = (f"curl -sN 'https://{NAME}/slow?every=0.3&n=4' | "
                "/usr/bin/python3 -uc 'import os, time; b = time.time(); "
                "[print(round(time.time() - b, 1)) for _ in iter(lambda: os.read(0, 1), b\"\")]'")
        times = [float(t) for t in self.online(slow, "--allow", NAME).stdout.split()]
        self.assertEqual(len(times), 4)
        self.assertGreater(times[-1] - times[0], 0.7)

    def test_D04_name_service_inside(self):
        out = self.online(f"cat /etc/resolv.conf; getent ahosts {NAME}; getent hosts localhost",
                          "--allow", NAME).stdout
        self.assertIn("nameserver 127.0.0.1\n", out)
        self.assertIn("198.1", out)
        self.assertIn("localhost", out)

    def test_D07_the_proxy_variables_are_in_both_cases_and_hold_no_credentials(self):
        env = dict(line.partition("=")[::2] for line in self.online("env").stdout.splitlines())
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
            self.assertEqual(env[name], "http://127.0.0.1:3128")
        self.assertEqual(env["NODE_USE_ENV_PROXY"], "1")
        self.assertIn("-Dhttps.proxyHost=127.0.0.1", env["JAVA_TOOL_OPTIONS"])
        self.assertEqual((env["SANDBOX_RUNTIME"], env["WARDEN"]), ("1", "1"))

    def test_verdicts_are_in_the_journal_as_they_happen(self):
        session = self.session(f"curl -s http://{NAME}/ >/dev/null; exec sleep 60",
                               "--allow", NAME)
        found = wait_for("the verdict", lambda: [
            record for record in self.journal(session.id) if record["kind"] == "net.connect"])
        self.assertEqual((found[0]["host"], found[0]["port"], found[0]["rule"]), (NAME, 80, NAME))
        closed = wait_for("the end", lambda: [
            record for record in self.journal(session.id) if record["kind"] == "net.close"])
        self.assertGreater(closed[0]["bytes_in"], 0)

    def test_grants_of_the_persons_policy(self):
        self.policy(network={"allowed_domains": [NAME]})
        self.assertEqual(self.online(f"curl {CODE} https://{NAME}/").stdout, "200")

    def test_a_project_may_narrow_and_not_widen(self):
        """What .warden.json asks for beyond the person's policy is named and not granted."""
        other = "other.cell-lab.net"
        self.policy(network={"allowed_domains": [NAME]})
        self.write(".warden.json", json.dumps({"version": 1, "capabilities": {"network": {
            "allowed_domains": [NAME, other]}}}))
        codes = "; ".join(f"curl {CODE} http://{name}/; echo" for name in (NAME, other, "pypi.org"))
        done = self.warden("run", self.project, "--", "sh", "-c", codes)
        self.assertEqual(done.stdout.split(), ["200", "403", "403"])
        self.assertIn(f"warden allowlist add {other}", done.stderr)
