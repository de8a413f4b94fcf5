"""`warden allowlist`: live on running cells, kept where it says, and no relay by accident."""

import json

from support import Case, wait_for

LAB = True

NAME = "allowed.cell-lab.net"
# An agent that asks again and again and writes down the last answer.
ASKING = (f"while :; do curl -s -o /dev/null -w '%{{http_code}}' -m 5 http://{NAME}/ >new; "
          "mv new code; sleep 0.05; done")
REFUSED_NAMES = ("*", "*.com", "*.co.uk", "", ".", "a..b", "-a.example.org", "a b.example.org",
                 "http://a.example.org/", "a.example.org:0", "a.example.org:99999", "10.0.0.1",
                 "ex%61mple.org", "*.*.example.org", "a*.example.org")
RELAYS = ("pastebin.com", "webhook.site", "ngrok.io", "transfer.sh", "requestbin.com")


COMMENTED = """{
  // mine
  "version": 1,
  "capabilities": {"network": {"allowed_domains": [
    "a.example.org" // why
  ]}}
}
"""


class Allowlist(Case):
    def code(self):
        """What the agent of the session gets now."""
        path = self.project / "code"
        path.unlink(missing_ok=True)
        wait_for("an answer", path.exists)
        return path.read_text(encoding="ascii")

    def allowlist(self, *words, cwd=None):
        return self.warden("allowlist", *words, cwd=cwd or self.project)

    def wait_code(self, code):
        wait_for(f"the answer {code}", lambda: self.code() == code)

    def test_live_in_a_session_and_back(self):
        session = self.session(ASKING)
        self.wait_code("403")
        done = self.assert_ok(self.allowlist("add", NAME, "--session"))
        self.assertIn(session.id, done.stdout)
        self.wait_code("200")
        self.assert_ok(self.allowlist("remove", NAME, "--session"))
        self.wait_code("403")
        session.process.terminate()
        session.end()
        changes = self.events("allowlist.changed", rule=NAME)
        self.assertEqual([change["removed"] for change in changes], [False, True])
        self.assertFalse((self.config / "policy.json").exists())

    def test_for_the_person(self):
        self.session(ASKING)
        done = self.assert_ok(self.allowlist("add", NAME, "--user"))
        self.assertIn(str(self.config / "policy.json"), done.stdout)
        self.wait_code("200")
        written = json.loads((self.config / "policy.json").read_text(encoding="utf-8"))
        self.assertEqual(written["capabilities"]["network"]["allowed_domains"], [NAME])
        self.assertEqual(self.allowlist("test", NAME).returncode, 0)
        other = self.home / "src/other"
        other.mkdir()
        self.assertEqual(self.allowlist("test", NAME, cwd=other).returncode, 0)
        self.assert_ok(self.allowlist("remove", NAME, "--user"))
        self.wait_code("403")
        self.assertEqual(self.allowlist("test", NAME).returncode, 1)

    def test_for_one_project(self):
        self.assert_ok(self.allowlist("add", NAME, "--project"))
        other = self.home / "src/other"
        other.mkdir()
        ask = f"curl -s -o /dev/null -w '%{{http_code}}' http://{NAME}/"
        self.assertEqual(self.in_cell(ask), "200")
        self.assertEqual(self.in_cell(ask, project=other), "403")
        self.assertIn(NAME, self.assert_ok(self.allowlist("list")).stdout)
        self.assertNotIn(NAME, self.allowlist("list", cwd=other).stdout)

    def test_the_persons_comments_stay(self):
        policy = self.write(self.config / "policy.json", COMMENTED)
        self.assert_ok(self.allowlist("add", NAME, "--user"))
        self.assertIn(NAME, policy.read_text(encoding="utf-8"))
        self.assert_ok(self.warden("policy", "check"))
        for part in ("// mine", "// why", "a.example.org"):
            self.assertIn(part, policy.read_text(encoding="utf-8"))
        self.assert_ok(self.allowlist("remove", NAME, "--user"))
        self.assertNotIn(NAME, policy.read_text(encoding="utf-8"))

    def test_a_malformed_policy_is_not_touched(self):
        policy = self.write(self.config / "policy.json", '{"version": 1, "nonsense": 1}')
        done = self.allowlist("add", NAME, "--user")
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(policy.read_text(encoding="utf-8"), '{"version": 1, "nonsense": 1}')

    def test_E10_names_that_mean_too_much_or_nothing(self):
        for name in REFUSED_NAMES:
            with self.subTest(name):
                done = self.allowlist("add", name, "--user")
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertFalse((self.config / "policy.json").exists())

    def test_relays_need_force(self):
        for name in RELAYS:
            with self.subTest(name):
                self.assertEqual(self.allowlist("add", name, "--user").returncode, 78)
        self.assertFalse((self.config / "policy.json").exists())
        self.assert_ok(self.allowlist("add", RELAYS[0], "--user", "--force"))
        self.assertIn(RELAYS[0], (self.config / "policy.json").read_text(encoding="utf-8"))

    def test_an_offline_session_stays_offline(self):
        session = self.session("exec sleep 60", "--offline")
        self.assertNotEqual(self.allowlist("add", NAME, "--session").returncode, 0)
        self.assertNotIn("warden-gate", session.members().values())

    def test_what_a_project_narrows_is_not_granted_live(self):
        self.write(".warden.json", json.dumps({"version": 1, "capabilities": {"network": {
            "allowed_domains": ["pypi.org"]}}}))
        self.session(ASKING)
        self.assertNotEqual(self.allowlist("add", NAME, "--session").returncode, 0)
        self.assertEqual(self.code(), "403")
