"""What of the caller's environment enters, and the home that the agent has."""

import os

from support import Case

SECRETS = ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "GH_TOKEN", "NPM_TOKEN", "SSH_AUTH_SOCK",
           "DATABASE_URL", "FOO", "KUBECONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "LD_PRELOAD_X",
           "BASH_ENV", "PYTHONPATH", "NODE_OPTIONS", "GIT_SSH_COMMAND", "HISTFILE",
           "OPENAI_API_KEY")
VALUE = "value-that-must-not-enter"


class Environment(Case):
    def variables(self, *options, **run):
        out = self.in_cell("env -0", *options, **run)
        return dict(item.partition("=")[::2] for item in out.split("\0") if item)

    def test_J04_secrets_of_the_caller_never_enter(self):
        inside = self.in_cell("env; cat /proc/*/environ; true",
                              env={name: VALUE for name in SECRETS})
        self.assertNotIn(VALUE, inside)
        outside = self.outside(" ".join(f"{name}={VALUE}" for name in SECRETS if name != "BASH_ENV")
                               + " env")
        self.assertIn(VALUE, outside.stdout)

    def test_J04_one_line_says_how_many_were_left_out(self):
        command = ("run", self.project, "--", "true")
        few = self.warden(*command).stderr
        more = self.warden(*command, env={"A_ONE": "1", "A_TWO": "2"}).stderr
        count = [int(text.split(" variables left out")[0].split()[-1]) for text in (few, more)]
        self.assertEqual(count[1] - count[0], 2)
        self.assertNotIn("A_ONE", more)

    def test_what_may_enter(self):
        given = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_TIME": "C", "TZ": "UTC",
                 "NO_COLOR": "1"}
        inside = self.variables(env=given)
        self.assertEqual({name: inside.get(name) for name in given}, given)

    def test_a_variable_that_was_asked_for(self):
        value = "a\nb =c'"
        out = self.in_cell('printf %s "$FOO"', "--env", "FOO", env={"FOO": value})
        self.assertEqual(out, value)
        self.write(self.config / "policy.json", '{"version": 1, "env": {"pass": ["BAR"]}}')
        inside = self.variables(env={"FOO": "1", "BAR": "2"})
        self.assertEqual((inside.get("FOO"), inside.get("BAR")), (None, "2"))

    def test_an_agents_own_key_enters_for_that_agent_alone(self):
        given = {"ANTHROPIC_API_KEY": "key-a", "OPENAI_API_KEY": "key-o"}
        inside = self.variables("-p", "claude", env=given)
        self.assertEqual(inside.get("ANTHROPIC_API_KEY"), "key-a")
        self.assertNotIn("OPENAI_API_KEY", inside)

    def test_env_file(self):
        path = self.write(self.base / "keys", "# mine\nexport A=1\nB='two words'\n\nC=\"x=y\"\n",
                          0o600)
        inside = self.variables("--env-file", str(path))
        self.assertEqual([inside.get(name) for name in "ABC"], ["1", "two words", "x=y"])
        own = self.write(self.config / "env", "MY_KEY=k\n", 0o600)
        self.assertEqual(self.variables().get("MY_KEY"), "k")
        refused = {
            "others may read it": lambda: path.chmod(0o644),
            "others may write it": lambda: path.chmod(0o620),
            "it is in the project": lambda: self.write("keys", "A=1\n", 0o600),
            "it is malformed": lambda: self.write(path, "A=1\nnot a line\n", 0o600),
            "it is not there": path.unlink,
            "the person's own is open": lambda: own.chmod(0o644),
        }
        for why, change in refused.items():
            with self.subTest(why):
                change()
                named = "keys" if "project" in why else str(path)
                options = () if "own" in why else ("--env-file", named)
                done = self.cell("touch started", *options, cwd=self.project)
                self.assertIn(done.returncode, (78, 125, 127), done.stderr)
                self.assertFalse((self.project / "started").exists())
                self.write(path, "A=1\n", 0o600)

    def test_a_link_into_the_project_is_no_way_for_an_env_file(self):
        self.write("keys", "A=1\n", 0o600)
        link = self.base / "link"
        link.symlink_to(self.project / "keys")
        self.assertNotEqual(self.cell("true", "--env-file", str(link)).returncode, 0)

    def test_a_projects_own_env_file_is_not_read(self):
        for name in (".env", ".envrc", ".env.local"):
            self.write(name, "FROM_PROJECT=1\n", 0o600)
        self.assertNotIn("FROM_PROJECT", self.variables())

    def test_C08_temporary_files(self):
        given = {"TMPDIR": "/nonexistent", "TMP": "/x", "TEMP": "/y", "TMPPREFIX": "/z"}
        out = self.in_cell("mktemp -d; cat <<< here; echo ${TMPDIR-unset}; [ -w /var/tmp ] && "
                           "stat -c %a /tmp; touch /var/tmp/x /tmp/y; df /tmp | tail -1", env=given)
        lines = out.splitlines()
        self.assertTrue(lines[0].startswith("/tmp/"))
        self.assertEqual(lines[1:4], ["here", "unset", "1777"])
        self.assertTrue(lines[4].startswith("tmpfs"))
        self.assertFalse(os.path.exists(lines[0]))

    def test_C24_shared_memory_and_H01_no_limit_of_address_space(self):
        self.need("node", "python3")
        self.in_cell("/usr/bin/python3 -c 'import multiprocessing as m; m.Lock(); "
                     "m.Pool(2).map(abs, [1])'; test $(ulimit -v) = unlimited; "
                     "node -e 'new WebAssembly.Memory({initial: 1, maximum: 10})'")


class Home(Case):
    def test_C17_it_is_there_and_writable(self):
        self.need("npm", "python3")
        out = self.in_cell("echo $HOME; mkdir -p ~/.aider ~/.cache ~/.config ~/go ~/.cargo; "
                           "npm config get cache; echo ${XDG_CONFIG_HOME-$HOME/.config} "
                           "${XDG_CACHE_HOME-$HOME/.cache}", env={"XDG_CACHE_HOME": "/nowhere"})
        self.assertEqual(out, "/home/ai_user\n/home/ai_user/.npm\n"
                              "/home/ai_user/.config /home/ai_user/.cache\n")

    def test_C10_settings_are_replaced_by_rename(self):
        self.in_cell("cd ~ && echo {} >.claude.json.tmp && mv .claude.json.tmp .claude.json && "
                     "mkdir .claude.json.lock && rmdir .claude.json.lock")

    def test_it_persists_for_a_project_and_is_its_own(self):
        self.in_cell("echo mine >~/file; mkdir -p ~/.cache/x")
        self.assertEqual(self.in_cell("cat ~/file; ls -d ~/.cache/x"),
                         "mine\n/home/ai_user/.cache/x\n")
        other = self.home / "src/other"
        other.mkdir()
        self.assertEqual(self.in_cell("ls -A ~", project=other), "")
        link = self.home / "link"
        link.symlink_to(self.project)
        self.assertEqual(self.in_cell("cat ~/file", project=link), "mine\n")

    def test_ephemeral(self):
        self.in_cell("echo kept >~/file")
        out = self.in_cell("ls -A ~; echo gone >~/other; ls ~", "--ephemeral")
        self.assertEqual(out, "other\n")
        self.assertEqual(self.in_cell("ls -A ~"), "file\n")

    def test_the_hosts_home_is_not_it(self):
        self.write(self.home / ".bashrc", "echo FROM_HOST\n")
        self.assertEqual(self.in_cell("ls -A ~"), "")
        self.in_cell("touch ~/.bashrc")
        self.assertEqual((self.home / ".bashrc").read_text(encoding="utf-8"), "echo FROM_HOST\n")

    def test_the_login_of_an_agent_is_shared_between_projects(self):
        other = self.home / "src/other"
        other.mkdir()
        self.in_cell("mkdir -p ~/.claude && echo token >~/.claude/.credentials.json; "
                     "echo x >~/note", "-p", "claude")
        self.assertEqual(self.in_cell("cat ~/.claude/.credentials.json; ls ~", "-p", "claude",
                                      project=other), "token\n")
        third = self.home / "src/third"
        third.mkdir()
        self.assertEqual(self.in_cell("ls -A ~", "-p", "codex", project=third), "")

    def test_a_login_that_is_a_link_is_not_followed(self):
        """What comes back from the agent's hands may be anything."""
        secret = self.write(self.home / "secret", "secret")
        self.in_cell(f"mkdir -p ~/.claude && ln -s {secret} ~/.claude/.credentials.json",
                     "-p", "claude")
        copies = [path for path in (self.state / "logins").rglob("*") if path.is_file()]
        self.assertEqual([path for path in copies if "secret" in path.read_text()], [])

    def test_the_state_is_closed_to_others_and_not_in_the_cell(self):
        self.in_cell("true")
        for path in (self.state, self.state / "sessions", self.state / "homes",
                     self.runtime / "warden"):
            self.assertEqual(path.stat().st_mode & 0o077, 0, path)
        self.assertEqual(self.cell(f"ls {self.state} {self.runtime}").stdout, "")
