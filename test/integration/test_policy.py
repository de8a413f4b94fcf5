"""What a policy says is what holds, and what this version cannot hold is refused by name."""

import json
import os

from support import IS_ROOT, Case

OWNER = 48211  # nobody's

UNENFORCED = {
    "file_system": [{"delete": False}, {"exec_paths": ["/usr/bin"]}, {"deny_paths": ["**/*.pem"]}],
    "network": [{"publish": [3000]}, {"host_ports": [11434]}, {"inspect": ["a.example.org"]},
                {"allowed_methods": ["GET"]}, {"budgets": {"a.example.org": {"bytes_out": 1}}}],
    "code_execution": [{"max_disk_mb": 10}, {"nested": True}, {"allowed": False}],
}
HARMLESS = {"file_system": {"delete": True, "deny_paths": []},
            "network": {"publish": [], "host_ports": [], "inspect": [], "budgets": {}},
            "code_execution": {"max_disk_mb": 0, "nested": False, "allowed": True}}
MALFORMED = """{
  "version": 1,
  "extendz": "strict",
  "capabilities": {
    "network": { "allowed_domains": ["*", "a b"], "offline": 1 },
    "code_execution": { "max_memory_mb": "much" }
  }
}
"""
# line, column, a part of the message: all of them are told at once
ERRORS = ((3, 3, "extends"), (5, 38, "*"), (5, 43, "a b"), (5, 62, "offline"),
          (6, 42, "max_memory_mb"))


class FileSystem(Case):
    def setUp(self):
        super().setUp()
        for path in ("input/a", "output/b", "config/deep/c", "secret/d", "top"):
            self.write(path, "text")
        if IS_ROOT:  # which shows parts of a project only where somebody else owns it
            self.outside(f"chown -R {OWNER}:{OWNER} .")

    def test_paths_of_the_design(self):
        self.policy(file_system={"read_paths": ["/workspace/input/*", "/workspace/config/**"],
                                 "write_paths": ["/workspace/output/*"]})
        out = self.cell("cat input/a config/deep/c output/b; ls; for f in input/a config/deep/c "
                        "output/b output/new secret/new new; do { echo x >$f; } 2>/dev/null && "
                        "echo wrote $f; done; cat secret/d top").stdout
        self.assertTrue(out.startswith("texttexttextconfig\ninput\noutput\n"), out)
        written = {line.split()[1] for line in out.splitlines() if line.startswith("wrote")}
        self.assertLessEqual({"output/b", "output/new"}, written)
        # What is not granted is not there: what is made in its place goes with the cell.
        self.assertEqual(sorted(path.name for path in self.project.iterdir()),
                         ["config", "input", "output", "secret", "top"])
        for path in ("input/a", "config/deep/c", "secret/d", "top"):
            self.assertEqual((self.project / path).read_text(encoding="utf-8"), "text")
        self.assertEqual(list((self.project / "secret").iterdir()), [self.project / "secret/d"])

    def test_C15_what_is_denied_stays_denied_in_what_is_read_only(self):
        self.write("secret/deep/e", "text")
        self.policy(file_system={"deny_paths": ["/workspace/secret/d", "/workspace/secret/deep"]})
        out = self.cell("cat secret/d secret/deep/e top; echo x >secret/d; rm -rf secret/deep; "
                        "mv secret away; cat away/d").stdout
        self.assertEqual(out, "text")
        # Under another name the next session would read it.
        self.assertEqual((self.project / "secret/d").read_text(encoding="utf-8"), "text")
        self.assertTrue((self.project / "secret/deep/e").exists())

    def test_mounts_of_the_host(self):
        data = self.write(self.home / "datasets/x", "data")
        if IS_ROOT:
            os.chown(data, OWNER, OWNER)
        self.policy(file_system={"mounts": [{"host": "~/datasets", "at": "/data", "mode": "ro"}]})
        self.assertEqual(self.cell("cat /data/x; echo y >/data/x; touch /data/new").stdout, "data")
        self.assertEqual(data.read_text(encoding="utf-8"), "data")
        self.policy(file_system={"mounts": [{"host": "~/datasets", "mode": "rw"}]})
        self.cell(f"echo more >>{data}")
        self.assertEqual(data.read_text(encoding="utf-8"), "datamore\n")


class Text(Case):
    def run_with(self, policy, path=None):
        self.write(path or self.config / "policy.json", json.dumps(policy))
        return self.cell("touch started")

    def test_A08_keys_that_this_version_cannot_enforce(self):
        for group, values in UNENFORCED.items():
            for value in values:
                with self.subTest(value=value):
                    done = self.run_with({"version": 1, "capabilities": {group: value}})
                    self.assertEqual(done.returncode, 78, done.stderr)
                    self.assertIn(next(iter(value)), done.stderr)
                    self.assertFalse((self.project / "started").exists())
        self.assert_ok(self.run_with({"version": 1, "capabilities": HARMLESS}))

    def test_every_error_at_once_with_its_place(self):
        path = self.write(self.config / "policy.json", MALFORMED)
        done = self.warden("policy", "check")
        self.assertEqual(done.returncode, 1)
        for line, column, part in ERRORS:
            found = [text for text in done.stderr.splitlines()
                     if text.startswith(f"{path}:{line}:{column}:") and part in text]
            self.assertEqual(len(found), 1, f"{line}:{column}\n{done.stderr}")
        self.assertEqual(self.cell("true").returncode, 78)

    def test_comments_are_blanked_and_strings_are_not(self):
        text = '{ // one\n /* two\n */ "version": 1, "env": {"pass": ["A_B" /* "C" */]} }'
        self.write(self.config / "policy.json", text)
        self.assertIn("no errors", self.assert_ok(self.warden("policy", "check")).stdout)

    def test_a_policy_in_the_hands_of_others_is_refused(self):
        inside = self.write("mine.json", '{"version": 1}')
        self.assertEqual(self.cell("true", "-s", str(inside)).returncode, 78)
        own = self.write(self.config / "policy.json", '{"version": 1}', 0o666)
        self.assertEqual(self.cell("true").returncode, 78)
        own.chmod(0o644)
        self.assert_ok(self.cell("true"))
        (self.project / ".warden.json").symlink_to(own)
        self.assertEqual(self.cell("true").returncode, 78)

    def test_a_project_only_narrows(self):
        self.write(self.config / "policy.json", json.dumps({"version": 1, "capabilities": {
            "code_execution": {"max_processes": 100}}}))
        self.run_with({"version": 1, "capabilities": {
            "code_execution": {"max_processes": 50, "max_execution_time_s": 1},
            "file_system": {"mounts": [{"host": "/usr/share", "at": "/all"}]}}}, ".warden.json")
        shown = json.loads(self.assert_ok(self.warden("policy", "show", self.project)).stdout)
        limits = shown["capabilities"]["code_execution"]
        self.assertEqual((limits["max_processes"], limits["max_execution_time_s"]), (50, 1))
        self.assertEqual(self.cell("sleep 20").returncode, 124)
        self.assertEqual(self.cell("ls /all").stdout, "")

    def test_presets(self):
        for preset, project, gate in (("balanced", str(self.project), "Proxy"),
                                      ("offline", str(self.project), ""),
                                      ("strict", "/workspace", "")):
            with self.subTest(preset):
                self.write(self.config / "policy.json", json.dumps({
                    "version": 1, "extends": preset, "allow_degraded": ["limits"]}))
                out = self.in_cell("pwd; echo ${http_proxy:+Proxy}")
                self.assertEqual(out, f"{project}\n{gate}\n")
