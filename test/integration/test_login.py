"""`warden login`: an agent's own login once per person, its result in every project's session."""

import json

from support import WARDEN, Case
from support_terminal import Terminal

KEY = "sk-the-key-of-the-person"
# An agent that keeps what it reads on stdin as its login, and tells how it was started.
AGENT = """#!/bin/sh
case "$*" in
login) printf 'code: '; read code; mkdir -p ~/.fake && echo "token-$code" >~/.fake/auth.json ;;
"login --key") read key; mkdir -p ~/.fake && echo "$key" >~/.fake/auth.json; cat /proc/$$/cmdline ;;
fail) mkdir -p ~/.fake; echo broken >~/.fake/auth.json; exit 1 ;;
renew) echo renewed >~/.fake/auth.json ;;
*) cat ~/.fake/auth.json; ls -A ~ ;;
esac
"""
PROFILE = {"name": "fake", "title": "Fake", "install": "see fake", "binaries": ["fake"],
           "auth_paths": [".fake/auth.json"], "key_env": ["FAKE_KEY"],
           "login": {"args": ["login"], "key_args": ["login", "--key"], "key_env": "FAKE_KEY"}}


class Login(Case):
    def setUp(self):
        super().setUp()
        self.write(self.home / "bin/fake", AGENT, 0o755)
        self.write(self.config / "agents/fake.json", json.dumps(PROFILE))
        self.kept = self.state / "logins/fake/.fake/auth.json"

    def seen(self, project=None):
        return self.assert_ok(self.warden("run", "-q", project or self.project, "fake")).stdout

    def test_by_key_over_stdin(self):
        done = self.assert_ok(self.warden("login", "--with-api-key", "fake", input=KEY + "\n"))
        self.assertNotIn(KEY, done.stdout + done.stderr)  # not in an argument of the agent either
        self.assertEqual(self.kept.read_text(encoding="utf-8"), KEY + "\n")
        self.assertEqual(self.kept.stat().st_mode & 0o077, 0)
        other = self.home / "src/other"
        other.mkdir()
        for project in (self.project, other):
            self.assertEqual(self.seen(project), f"{KEY}\n.fake\n")

    def test_at_a_terminal(self):
        terminal = Terminal(self, [WARDEN, "login", "fake"])
        terminal.expect("code: ")
        terminal.send("1234\r")
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual(self.seen(), "token-1234\n.fake\n")

    def test_a_login_that_the_agent_renews_is_taken_over(self):
        self.assert_ok(self.warden("login", "--with-api-key", "fake", input=KEY))
        self.assert_ok(self.warden("run", "-q", self.project, "fake", "renew"))
        self.assertEqual(self.kept.read_text(encoding="utf-8"), "renewed\n")

    def test_an_ephemeral_session_leaves_it_alone(self):
        self.assert_ok(self.warden("login", "--with-api-key", "fake", input=KEY))
        self.warden("run", "-q", "--ephemeral", self.project, "fake", "renew")
        self.assertEqual(self.kept.read_text(encoding="utf-8"), KEY + "\n")

    def test_import_from_the_hosts_home_after_asking(self):
        self.write(self.home / ".fake/auth.json", "hosts\n", 0o600)
        self.write(self.home / ".fake/other", "not for the cell")
        refused = self.warden("login", "--import-login", "fake")
        self.assertNotEqual(refused.returncode, 0)  # there was nobody to ask
        self.assertFalse(self.kept.exists())
        terminal = Terminal(self, [WARDEN, "login", "--import-login", "fake"])
        terminal.expect(r"auth\.json.*\?")
        terminal.send("y\r")
        self.assertEqual(terminal.wait(), 0)
        self.assertEqual(self.seen(), "hosts\n.fake\n")
        self.assertFalse((self.kept.parent / "other").exists())

    def test_what_cannot_be(self):
        for words, code in ((["login"], 125), (["login", "no-such-agent"], 127),
                            (["login", "aider"], None),
                            (["login", "--with-api-key", "bash"], None)):
            with self.subTest(words):
                done = self.warden(*words, input=KEY)
                self.assertNotEqual(done.returncode, 0)
                self.assertTrue(code is None or done.returncode == code, done.stderr)
                self.assertNotIn(KEY, done.stdout + done.stderr)
