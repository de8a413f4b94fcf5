"""Real agents, headless and at a terminal, doing real work in a cell against the lab's model APIs.

They come from the npm registry by tools/install-agents; without them these tests are skipped.
"""

import json
import os
import pathlib

from support import WARDEN, Case, read_lines, wait_for
from support_terminal import Terminal

LAB = True
TIMEOUT_S = 120

PLACES = (os.environ.get("WARDEN_TEST_AGENTS"), "/var/cache/warden-agents",
          os.path.expanduser("~/.cache/warden-agents"))
KEY = "sk-ant-test-key-0123456789"
# name -> (its words for one headless task, the model's host)
HEADLESS = {
    "claude": (["-p", "hi", "--allowedTools", "Bash"], "api.anthropic.com"),
    "codex": (["exec", "-m", "gpt-5", "--skip-git-repo-check", "hi"], "api.openai.com"),
    "pi": (["-p", "hi", "--provider", "anthropic", "--model", "claude-sonnet-4-5"],
           "api.anthropic.com"),
    "opencode": (["run", "-m", "anthropic/claude-sonnet-4-5", "hi"], "api.anthropic.com"),
}
TRUST = ("--env", "NODE_EXTRA_CA_CERTS", "--env", "SSL_CERT_FILE")
# What the model asks each agent's shell tool to run: a script, since some look at the words.
TASK = "{ id -u; pwd; cat /etc/shadow; ls ~/src; } >did.txt 2>&1; echo made >made.txt"


class Agents(Case):
    def setUp(self):
        super().setUp()
        self.bin = next((path for path in (pathlib.Path(place, "node_modules/.bin")
                                           for place in PLACES if place) if path.is_dir()), None)
        if self.bin is None:
            self.skipTest("no agents: tools/install-agents installs them")
        bundle = os.environ["LAB_BUNDLE"]
        self.env.update(PATH=f"{self.bin}:{self.env['PATH']}", NODE_EXTRA_CA_CERTS=bundle,
                        SSL_CERT_FILE=bundle, ANTHROPIC_API_KEY=KEY, GITHUB_TOKEN="must-not-enter")
        pathlib.Path(os.environ["LAB_MODEL_COMMAND"]).write_text("sh ./task", encoding="utf-8")
        self.write("task", TASK)
        self.begin = {log: len(read_lines(os.environ[log]))
                      for log in ("LAB_REQUESTS", "LAB_QUERIES")}

    def since(self, log):
        return read_lines(os.environ[log])[self.begin[log]:]

    def model_requests(self, host):
        return [line for line in self.since("LAB_REQUESTS")
                if line.get("model") and line["host"] == host]

    def log_in(self, agent):
        if agent == "codex":
            done = self.assert_ok(self.warden("login", "--with-api-key", "codex", input=KEY))
            self.assertNotIn(KEY, done.stdout + done.stderr)

    def run_agent(self, agent, *options, words=None):
        words = HEADLESS[agent][0] if words is None else words
        return self.warden("run", *TRUST, *options, self.project, agent, *words, timeout_s=100)

    def assert_worked(self, agent, cwd=None):
        """The tool call ran in the cell, its file is in the project, and the model heard of it."""
        did = (self.project / "did.txt").read_text(encoding="utf-8").splitlines()
        self.assertEqual(did[:2], ["1001", str(cwd or self.project)])
        self.assertIn("/etc/shadow", did[2])
        self.assertNotIn("project", "".join(did[3:]))
        self.assertEqual((self.project / "made.txt").read_text(encoding="utf-8"), "made\n")
        said = [line["model"]["said"] for line in self.model_requests(HEADLESS[agent][1])]
        self.assertIn("call", said)
        self.assertEqual(said[-1], "text")

    def assert_only_granted_names_were_asked_for(self):
        shown = self.assert_ok(self.warden("policy", "show", self.project)).stdout
        profiles = "chatgpt.com models.dev"  # of agents' own profiles
        for line in self.since("LAB_QUERIES"):
            self.assertTrue(line["name"] in shown or line["name"] in profiles, line)

    def test_headless(self):
        for agent in HEADLESS:
            with self.subTest(agent):
                self.log_in(agent)
                done = self.run_agent(agent)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("All done.", done.stdout, done.stderr)
                self.assert_worked(agent)
                self.outside("rm did.txt made.txt")
        self.assert_only_granted_names_were_asked_for()

    def test_an_agent_whose_model_is_not_granted_gets_nothing(self):
        self.run_agent("pi", "--deny", "api.anthropic.com", "-t", "5")
        self.assertEqual(self.model_requests("api.anthropic.com"), [])
        self.assertFalse((self.project / "made.txt").exists())
        self.assertTrue(self.events("net.refused", host="api.anthropic.com"))

    def test_under_the_strict_preset(self):
        self.write(self.config / "policy.json", json.dumps({
            "version": 1, "extends": "strict", "allow_degraded": ["limits"]}))
        done = self.run_agent("claude")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_worked("claude", cwd="/workspace")

    def test_claude_at_a_terminal(self):
        settings = {"hasCompletedOnboarding": True, "theme": "dark",
                    "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
                    "projects": {str(self.project): {"hasTrustDialogAccepted": True}}}
        self.assert_ok(self.cell("cat >~/.claude.json", "-p", "claude", input=json.dumps(settings)))
        terminal = Terminal(self, [WARDEN, "run", *TRUST, ".", "claude", "--allowedTools", "Bash"],
                            rows=40, columns=100)
        before = terminal.modes()
        terminal.expect("for.{1,20}shortcuts", 30)
        terminal.send("hi")
        terminal.drain(1)
        terminal.send("\r")
        terminal.expect("All done", 30)
        wait_for("the file", lambda: (self.project / "made.txt").exists())
        self.assert_worked("claude")
        terminal.send("/exit")
        terminal.drain(1)
        terminal.send("\r")
        self.assertEqual(terminal.wait(30), 0)
        self.assertEqual(terminal.modes(), before)

    def test_codex_at_a_terminal(self):
        self.log_in("codex")
        terminal = Terminal(self, [WARDEN, "run", *TRUST, ".", "codex", "-m", "gpt-5", "hi"],
                            rows=40, columns=100)
        before = terminal.modes()
        terminal.expect("done.{0,40}\x1b", 40)
        wait_for("the file", lambda: (self.project / "made.txt").exists())
        self.assert_worked("codex")
        terminal.send("/quit")
        terminal.drain(1)
        terminal.send("\r")
        self.assertEqual(terminal.wait(30), 0)
        self.assertEqual(terminal.modes(), before)
