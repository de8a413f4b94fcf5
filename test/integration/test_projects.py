"""Projects as people have them: odd names, links, worktrees, submodules, forged pointers."""

import os

from support import Case

NAMES = ("a b,c:d;e'f\"g\nh\u6f22\u5b57", "-rf", "%s%n$(touch x)`id`\\", "\u65e5\u672c\u8a9e",
         "x" * 200, "trailing ", "\U0001f600", b"not-utf-8-\xff\xfe", "#%~!@[]{}|<>?*",
         "proc", "usr")
WORK = "echo hi >'a file' && cat 'a file' && mkdir -p d/e && mv 'a file' d/e/f && ls -A . d/e"
GIT = ("git init -q . && git add . && git commit -q -m 'first' && git status --porcelain && "
       "git log --format=%s")
IDENTITY = "[user]\n\tname = Some One\n\temail = s@example.org\n"


class Names(Case):
    def test_every_name_works(self):
        self.need("git")
        self.write(self.home / ".gitconfig", IDENTITY)
        for name in NAMES:
            with self.subTest(name):
                project = os.path.join(os.fsencode(self.home / "src"), os.fsencode(name))
                os.mkdir(project)
                done = self.warden("run", "-q", os.fsdecode(project), "--", "bash", "-c",
                                   f"pwd; {WORK} && {GIT}", is_text=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout, project + b"\nhi\n.:\nd\n\nd/e:\nf\nfirst\n")
                self.assertEqual(sorted(os.listdir(project)), [b".git", b"d"])
                self.assertEqual(len(self.events("session.start")), 1)

    def test_the_name_in_what_is_printed_is_one_line(self):
        project = self.home / "src" / "a\nwarden: forged\x1b[2J"
        project.mkdir()
        done = self.warden("run", project, "--", "true")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertNotIn("\x1b", done.stderr)

    def test_started_from_inside_through_links_and_relative(self):
        self.write("sub/file", "")
        link = self.home / "link"
        link.symlink_to(self.project)
        above = self.project.parent
        for words, cwd in ((["."], self.project), ([".."], self.project / "sub"),
                           (["project"], above), (["./project/"], above),
                           ([str(link)], self.base), ([], self.project)):
            with self.subTest(words):
                done = self.warden("run", "-q", *words, "--", "pwd", cwd=cwd)
                self.assertEqual(self.assert_ok(done).stdout, f"{self.project}\n")

    def test_C13_links_out_of_the_project_lead_nowhere(self):
        outside = self.write(self.home / "outside/file", "secret")
        (self.project / "leaf").symlink_to(outside)
        (self.project / "folder").symlink_to(outside.parent)
        (self.project / "dangling").symlink_to(self.home / "new")
        (self.project / "state").symlink_to(self.state)
        done = self.cell("cat leaf folder/file; for f in leaf folder/new dangling; do echo x >$f; "
                         "done; ls state/")
        self.assertNotIn("secret", done.stdout)
        self.assertEqual(outside.read_text(encoding="utf-8"), "secret")
        self.assertEqual([path.name for path in outside.parent.iterdir()], ["file"])
        self.assertFalse((self.home / "new").exists())
        self.assertIn("secret", self.outside("cat leaf").stdout)

    def test_C11_rename_and_link_between_folders(self):
        self.in_cell("mkdir a b && touch a/f && mv a/f b/ && ln b/f a/g && mv b a/ && ls a/b/f a/g")

    def test_C05_nothing_appears_in_the_project(self):
        self.git("init", "-q")
        self.write("file", "x")
        look = "ls -laR --time-style=full-iso . | grep -v ' \\.\\.$'"
        before = self.outside(look).stdout
        self.in_cell("true")
        session = self.session("exec sleep 60")
        session.process.kill()
        session.process.wait()
        self.assertEqual(self.outside(look).stdout, before)
        self.assertEqual(self.git("status", "--porcelain", "--ignored"), "?? file\n")


class Git(Case):
    """C01, C02, C22: git works in every layout, and only in the person's own repository."""

    def setUp(self):
        super().setUp()
        self.need("git")
        self.write(self.home / ".gitconfig", IDENTITY + "[credential]\n\thelper = store\n")
        self.repo = self.repository("repo")

    def repository(self, name):
        path = self.home / "src" / name
        path.mkdir()
        self.git("init", "-q", "-b", "main", cwd=path)
        self.git("commit", "-q", "--allow-empty", "-m", "initial", cwd=path)
        return path

    def assert_commits(self, project):
        script = "echo x >new && git add new && git commit -q -m inside && git fetch -q . HEAD"
        self.assert_ok(self.cell(script, project=project))
        self.assertEqual(self.git("log", "-1", "--format=%s %an %ae", cwd=project),
                         "inside Some One s@example.org\n")

    def test_C22_plain_repository(self):
        self.assert_commits(self.repo)
        self.in_cell("git branch b && git checkout -q b && git commit -q --allow-empty -m 2 && "
                     "git stash list && git merge -q main && git tag t && git gc -q && "
                     "git worktree add -q /tmp/wt && git -C /tmp/wt status -s", project=self.repo)

    def test_C01_worktree(self):
        for name, flags in (("wt", ()), ("relative", ("--relative",))):
            with self.subTest(name):
                tree = self.home / "src" / name
                self.git("worktree", "add", "-q", str(tree), "-b", name, cwd=self.repo)
                if flags:  # as git 2.48 writes it
                    admin = self.repo / ".git/worktrees" / name
                    (tree / ".git").write_text(f"gitdir: {os.path.relpath(admin, tree)}\n")
                    (admin / "gitdir").write_text(os.path.relpath(tree / ".git", admin) + "\n")
                self.assert_commits(tree)

    def test_C01_worktree_of_a_bare_repository(self):
        bare = self.home / "src/bare.git"
        self.git("clone", "-q", "--bare", str(self.repo), str(bare))
        tree = self.home / "src/wt"
        self.git("worktree", "add", "-q", str(tree), "-b", "w", cwd=bare)
        self.assert_commits(tree)

    def test_C02_submodule_by_itself_and_in_its_project(self):
        library = self.repository("library")
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib",
                 cwd=self.repo)
        self.git("commit", "-q", "-m", "add", cwd=self.repo)
        self.assert_commits(self.repo / "lib")
        self.in_cell("cd lib && git commit -q --allow-empty -m 2 && cd .. && git add lib && "
                     "git commit -q -m update && git submodule status", project=self.repo)

    def test_C02_folder_of_a_repository(self):
        folder = self.repo / "apps/x"
        folder.mkdir(parents=True)
        script = "git rev-parse --show-toplevel; git log --format=%s; ls -A"
        plain = self.warden("run", folder, "--", "sh", "-c", script)
        self.assertEqual(plain.stdout, "")
        # What the start line offers is what works.
        self.assertIn(f"grant --ro {self.repo}/.git", plain.stderr)
        granted = self.cell(script, "--ro", f"{self.repo}/.git", project=folder)
        self.assertEqual(granted.stdout, f"{self.repo}\ninitial\n", granted.stderr)
        self.assertEqual(list(folder.iterdir()), [])

    def test_forged_pointer_opens_no_other_repository(self):
        victim = self.repository("victim")
        self.git("config", "secret.token", "verysecret", cwd=victim)
        read = f"git config secret.token; git log --oneline; cat {victim}/.git/config"
        forgeries = {
            "file": lambda: self.write(".git", f"gitdir: {victim}/.git\n"),
            "relative file": lambda: self.write(".git", "gitdir: ../victim/.git\n"),
            "link": lambda: (self.project / ".git").symlink_to(victim / ".git"),
            "commondir": lambda: (self.write(".git/HEAD", "ref: refs/heads/main\n"),
                                  self.write(".git/commondir", f"{victim}/.git\n")),
            "home": lambda: self.write(".git", f"gitdir: {self.home}\n"),
        }
        for what, forge in forgeries.items():
            with self.subTest(what):
                forge()
                out = self.cell(read).stdout
                self.assertNotIn("verysecret", out)
                self.assertNotIn("initial", out)
                if what != "home":
                    self.assertIn("verysecret", self.outside(read).stdout)
                self.outside("rm -rf .git")

    def test_C22_no_credential_helper_and_no_gitconfig_inside(self):
        out = self.in_cell("git config credential.helper || echo none; ls -A ~", project=self.repo)
        self.assertEqual(out.split()[0], "none")
        self.assertNotIn(".gitconfig", out)

    def test_journal_names_the_project(self):
        self.in_cell("true", project=self.repo)
        self.assertEqual(self.events("session.start")[0]["project"], str(self.repo))
        self.assertEqual(self.status_of_last()["project"], str(self.repo))
