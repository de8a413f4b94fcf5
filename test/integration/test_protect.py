"""Files that run code on the person's machine later: what exists stays as it was, whatever agent
and host do to it during a session; what comes into being is told."""

import time

from support import Case, wait_for

# class of the policy's `protect` -> files of it
PROTECTED = {
    "git": (".git/config", ".git/hooks/pre-commit", ".git/info/attributes"),
    "editor": (".vscode/tasks.json", ".idea/workspace.xml", ".vimrc", ".devcontainer.json"),
    "agent": (".mcp.json", ".claude/settings.json", ".claude/hooks/h", ".codex/config.toml",
              ".warden.json", ".cursor/mcp.json", "opencode.json"),
    "ci": (".github/workflows/ci.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile"),
    "shell": (".envrc", ".bashrc", ".husky/pre-commit", ".pre-commit-config.yaml"),
}
# how an agent may try to change FILE in DIR; each succeeds on an unprotected file
ATTACKS = {
    "append": "echo evil >>FILE",
    "truncate": ": >FILE",
    "unlink": "rm -f FILE",
    "rename over": "echo evil >/workspace/new && mv -f /workspace/new FILE",
    "rename away": "mv FILE /workspace/away",
    "hard link": "ln FILE /workspace/link && echo evil >>/workspace/link",
    "chmod": "chmod 4777 FILE",
    "exchange": "cd /workspace && echo evil >e; /usr/bin/python3 -c 'import ctypes; "
                "exit(ctypes.CDLL(None).renameat2(-100, b\"e\", -100, b\"FILE\", 2))'",
    "move its folder": "cd /workspace && mv TOP moved && mkdir -p DIR && echo evil >FILE",
    "mount over it": "mount --bind /etc/hostname FILE",
}
CONTENT = "original\n"
WRITER = """
import os
open("there", "w")
while True:
    try:
        fd = os.open(".git/config", os.O_WRONLY | os.O_APPEND)
        os.write(fd, b"[core]\\n\\tfsmonitor = evil\\n")
        os.close(fd)
    except OSError:
        pass"""


class Protect(Case):
    def setUp(self):
        super().setUp()
        self.need("git", "python3")

    def plant(self, path):
        if path.startswith(".git/"):
            self.git("init", "-q", ".")
        return self.write(path, '{"version": 1}' if path == ".warden.json" else CONTENT)

    def attack(self, path, attack):
        top, folder = path.split("/")[0], path.rpartition("/")[0] or "."
        return (ATTACKS[attack].replace("FILE", f"/workspace/{path}")
                .replace("DIR", folder).replace("TOP", top))

    def test_C23_every_protected_file_withstands_every_attack(self):
        for group, paths in PROTECTED.items():
            files = {path: self.plant(path) for path in paths}
            before = {path: file.read_text(encoding="utf-8") for path, file in files.items()}
            script = "\n".join(
                f"( {self.attack(path, attack)} ) 2>/dev/null && echo '{attack} {path}'"
                for path in paths for attack in ATTACKS)
            with self.subTest(group):
                self.assertEqual(self.cell(script).stdout, "")
                for path, file in files.items():
                    self.assertEqual(file.read_text(encoding="utf-8"), before[path])
                    self.assertEqual(file.stat().st_mode & 0o7000, 0)
            self.outside("find . -mindepth 1 -delete")

    def test_C23_without_protection_each_attack_works(self):
        """The control, in the same cell: nothing is protected by the policy."""
        self.policy(file_system={"protect": []})
        for attack in ATTACKS.keys() - {"mount over it", "chmod"}:
            with self.subTest(attack):
                path = ".github/workflows/ci.yml"
                file = self.plant(path)
                self.assert_ok(self.cell(self.attack(path, attack)))
                self.assertFalse(file.exists() and file.read_text(encoding="utf-8") == CONTENT)
                self.outside("find . -mindepth 1 -delete")

    def test_C23_nothing_of_it_runs_on_the_host(self):
        self.git("init", "-q", ".")
        trap = self.base / "escaped"
        script = (f"git config core.fsmonitor 'touch {trap}'; git config core.hooksPath evil; "
                  f"printf '#!/bin/sh\\ntouch {trap}\\n' >.git/hooks/pre-commit; "
                  "chmod +x .git/hooks/pre-commit; mv .git x; mkdir -p .git/hooks; true")
        self.assert_ok(self.cell(script))
        self.git("status", "--porcelain")
        self.git("commit", "-q", "--allow-empty", "-m", "m")
        self.assertFalse(trap.exists())
        self.outside(f"git config core.fsmonitor 'touch {trap}'")  # the control
        self.git("status", "--porcelain")
        self.assertTrue(trap.exists())

    def test_what_comes_into_being_is_told(self):
        """Hooks, tasks and settings that were not there cannot be held; the person has to know."""
        self.git("init", "-q", "--template=", ".")
        self.write(".github/keep", "")
        cases = (".envrc", ".mcp.json", ".vscode/tasks.json", ".github/workflows/ci.yml",
                 ".claude/settings.json", ".claude/hooks/h", ".git/hooks/pre-commit",
                 ".git/config.worktree", ".git/info/attributes")
        for path in cases:
            with self.subTest(path):
                done = self.warden("run", self.project, "--", "sh", "-c",
                                   f"mkdir -p $(dirname {path}) && echo evil >{path}")
                self.assertIn(path.split("/")[-2:][0], done.stderr.partition("\n")[2])
                self.assertTrue(self.events("protect.created"))

    def test_a_nested_repository_is_told(self):
        """Of a folder with its own .git the host's git may run what that configures."""
        self.git("init", "-q", ".")
        done = self.warden("run", self.project, "--", "git", "init", "-q", "sub")
        self.assertIn("sub/.git", done.stderr)
        self.assertTrue(self.events("protect.created"))


class HostAtWork(Case):
    """A bind mount goes away when the host renames over its target."""

    def setUp(self):
        super().setUp()
        self.need("git")
        self.git("init", "-q", ".")

    def count(self, session, kind):
        return len([r for r in self.journal(session.id) if r["kind"] == kind])

    def save(self, path, text):
        """As an editor does."""
        new = self.write(f"{path}.new", text)
        new.rename(self.project / path)

    def assert_not_lost(self, path, text, told):
        """What the host saved is there, or it is kept and the person is told."""
        if text in (self.project / path).read_text(encoding="utf-8"):
            return
        self.assertIn(str(self.project / path), told)
        record = self.events("protect.reverted", path=str(self.project / path))[-1]
        kept = self.state / "sessions" / record["session"] / record["kept"]
        self.assertIn(text, kept.read_text(encoding="utf-8"))

    def test_git_config_and_atomic_saves_do_not_open_the_file(self):
        self.write(".envrc", CONTENT)
        session = self.session(
            "until [ -e go ]; do sleep 0.02; done; for f in .git/config .envrc; do "
            "echo evil >>$f && echo WROTE; rm -f $f && echo REMOVED; done; touch done; sleep 60")
        self.git("config", "user.color", "blue")
        self.save(".envrc", "saved\n")
        wait_for("two to be put back", lambda: self.count(session, "protect.rearmed") >= 2)
        self.write("go", "")
        wait_for("the attempts", lambda: (self.project / "done").exists())
        session.process.terminate()
        _, out, err, _ = session.end()
        self.assertEqual(out, "")
        self.assert_not_lost(".envrc", "saved\n", err)
        self.assert_not_lost(".git/config", "blue\n", err)
        # The control: what is put back had been lost.
        self.assertTrue(self.events("protect.detached"))

    def test_the_host_wins_against_an_agent_that_writes_all_the_time(self):
        """Between the loss of a mount and its return the agent may write: it does not stay."""
        session = self.session(f"exec /usr/bin/python3 -c '{WRITER}'")
        wait_for("the agent", lambda: (self.project / "there").exists())
        for i in range(25):
            self.git("config", "user.count", str(i))
            wait_for("it to be put back", lambda: self.count(session, "protect.rearmed") > i)
            self.assertNotIn("evil", (self.project / ".git/config").read_text(encoding="utf-8"))
        session.process.terminate()
        self.assert_not_lost(".git/config", "24\n", session.end()[2])

    def test_a_folder_replaced_by_the_host_is_protected_again(self):
        self.write(".vscode/tasks.json", CONTENT)
        session = self.session(
            "until [ -e go ]; do sleep 0.02; done; echo evil >>.vscode/tasks.json && echo WROTE; "
            "touch done; sleep 60")
        (self.project / ".vscode").rename(self.project / "old")
        self.write(".vscode/tasks.json", "new\n")
        time.sleep(0.5)
        self.write("go", "")
        wait_for("the attempt", lambda: (self.project / "done").exists())
        session.process.terminate()
        self.assertEqual(session.end()[1], "")
        self.assertEqual((self.project / ".vscode/tasks.json").read_text(encoding="utf-8"), "new\n")

    def test_a_busy_host_does_not_stop_the_agent_for_good(self):
        """Freezing for each loss leaves the agent its time once the host gives it some."""
        session = self.session("for i in $(seq 300); do echo $i >out; done; echo finished")
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            self.git("config", "user.count", "1")
        self.assertEqual(session.end(10)[:2], (0, "finished\n"))
        self.assertTrue(self.events("protect.rearmed"))
