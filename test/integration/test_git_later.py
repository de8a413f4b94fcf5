"""What an agent can leave in a project for the host's git to run: held where it exists, told where
it does not, and no cry about ordinary work."""

import os
import shutil
import time

from support import Case

CONFIG = """printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n%s' "$2" >"$1"
printf '\\tfsmonitor = "touch TRAP; false"\\n' >>"$1" """
# evil FILE [MORE]: a git configuration that runs a program; hook FILE: a program
TOOLS = f"""evil() {{ {CONFIG}; }}
hook() {{ printf '#!/bin/sh\\ntouch TRAP\\n' >"$1" && chmod +x "$1"; }}
"""
SAVE = "git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m m"


class Attack:
    """`before` and `after` are the host's, `script` is the agent's."""

    def __init__(self, before, script, after="git status", told=None):
        self.before, self.script, self.after, self.told = before, script, after, told


REPOSITORY = f"git init -q . && {SAVE}"
# `git status` goes into what the index has as a repository, wherever it is.
KNOWN = f"git init -q target/x && (cd target/x && {SAVE}) && git add -f target/x 2>/dev/null"
SUBMODULE = f"""git init -q ../up && (cd ../up && {SAVE}) && {REPOSITORY} &&
    git -c protocol.file.allow=always submodule --quiet add "$PWD/../up" lib/sub && {SAVE}"""
NESTED = f"{REPOSITORY} && git init -q a/nested"

# What exists at the start: the attempt must fail.
HELD = {
    "the pointer file of a submodule": Attack(
        SUBMODULE, """cp -r .git/modules/lib/sub evil
        evil evil/config "	worktree = $PWD/lib/sub\n"; echo "gitdir: ../../evil" >lib/sub/.git"""),
    "the folder of a submodule": Attack(
        SUBMODULE, """cp -r .git/modules/lib/sub evil; evil evil/config "	worktree = $PWD/lib/sub\n"
        mv lib old; mkdir -p lib/sub; echo "gitdir: ../../evil" >lib/sub/.git"""),
    "the configuration of a submodule": Attack(SUBMODULE, "evil .git/modules/lib/sub/config "
                                               "'	worktree = ../../../../lib/sub\n'"),
    "the configuration of a nested repository": Attack(
        NESTED, "evil a/nested/.git/config", "cd a/nested && git status"),
    "a hook of a nested repository": Attack(
        NESTED, "hook a/nested/.git/hooks/pre-commit", f"cd a/nested && {SAVE}"),
    "the folder of a nested repository": Attack(
        NESTED, """cp -r a b; evil b/nested/.git/config; mv a old; mv b a""",
        "cd a/nested && git status"),
    "a nested repository that only the index tells of": Attack(
        f"{REPOSITORY}; {KNOWN}", "evil target/x/.git/config"),
    "the configuration of a bare repository": Attack(
        "git init -q --bare store.git", """evil store.git/config "	worktree = $PWD\n" """,
        "cd store.git && git status"),
    "core.hooksPath": Attack(
        f"{REPOSITORY}; mkdir .githooks; git config core.hooksPath .githooks",
        "hook .githooks/pre-commit", SAVE),
    "core.hooksPath of the person": Attack(
        f"{REPOSITORY}; mkdir .githooks; git config --global core.hooksPath .githooks",
        "hook .githooks/pre-commit", SAVE),
    "core.hooksPath and its parents": Attack(
        f"{REPOSITORY}; mkdir -p tools/hooks; git config core.hooksPath $PWD/tools/hooks",
        "mv tools old; mkdir -p tools/hooks; hook tools/hooks/pre-commit", SAVE),
    "a hook that is a link": Attack(
        f"""{REPOSITORY}; mkdir scripts; echo '#!/bin/sh' >scripts/check; chmod +x scripts/check
        ln -s ../../scripts/check .git/hooks/pre-commit""",
        "hook scripts/check", SAVE),
    "include.path": Attack(
        f"{REPOSITORY}; touch .gitconfig; git config include.path ../.gitconfig",
        "evil .gitconfig"),
    "includeIf.path": Attack(
        f"{REPOSITORY}; touch .gitconfig; git config includeIf.gitdir:/.path $PWD/.gitconfig",
        "evil .gitconfig"),
    "an include of an include": Attack(
        f"""{REPOSITORY}; git config include.path ../.gitconfig; mkdir conf; touch conf/more
        git config -f .gitconfig include.path conf/more""", "evil conf/more"),
    "a file that is included inside of .git": Attack(
        f"{REPOSITORY}; touch .git/local; git config include.path local", "evil .git/local"),
}

# What does not exist cannot be held: it must be told, by the name given.
EVIL_COMMON = "mkdir evil; evil evil/config; cp -r .git/refs .git/objects evil/; echo ../evil >"
TOLD = {
    "commondir": Attack(REPOSITORY, f"{EVIL_COMMON} .git/commondir", told=".git/commondir"),
    "a repository where there was none": Attack(
        "true", "git init -q . && rm -rf .git/hooks && evil .git/config", told=".git"),
    "a bare layout in the project": Attack(
        "true", """git init -q --bare . && evil config "	worktree = $PWD\n" """, told=""),
    "a bare layout in a folder": Attack(
        "mkdir -p a/b", """git init -q --bare a/b && evil a/b/config "	worktree = $PWD/a/b\n" """,
        "cd a/b && git status", told="a/b"),
    "a bare layout with a commondir": Attack(
        f"{REPOSITORY}; mkdir a", """cp -r .git/refs .git/objects a/; mkdir b; cp .git/HEAD b/
        echo ../a >b/commondir; git config -f a/config core.repositoryFormatVersion 0
        git config -f a/config core.sshCommand 'touch TRAP;'
        git config -f a/config remote.origin.url ssh://host/path""",
        "cd b && git fetch", told="b"),
    "a repository that only the index tells of": Attack(
        REPOSITORY, f"{KNOWN}; evil target/x/.git/config", told="target/x/.git"),
    "an index in two files, and compressed": Attack(
        REPOSITORY, f"""{KNOWN}; git update-index --index-version 4; git update-index --split-index
        git update-index --force-remove none; evil target/x/.git/config""", told="target/x/.git"),
    "an old folder that becomes a repository": Attack(
        f"""{NESTED}; mv a/nested/.git a/nested/old; mv a/nested/old/HEAD a/nested/old/keep
        printf '[core]\n\tfsmonitor = "touch TRAP; false"\n' >>a/nested/old/config""",
        "mv a/nested/old/keep a/nested/old/HEAD; mv a/nested/old a/nested/.git",
        "cd a/nested && git status", told="a/nested/.git"),
    "an old repository from a folder that is not looked through": Attack(
        """git init -q node_modules/x; printf '[core]\n\tfsmonitor = "touch TRAP; false"\n' """
        ">>node_modules/x/.git/config", "mv node_modules/x here", "cd here && git status",
        told="here/.git"),
    "old hooks under a new name": Attack(
        f"""{REPOSITORY}; rm -rf .git/hooks; mkdir .git/old
        printf '#!/bin/sh\ntouch TRAP\n' >.git/old/pre-commit; chmod +x .git/old/pre-commit""",
        "mv .git/old .git/hooks", SAVE, told=".git/hooks/pre-commit"),
    "config.worktree": Attack(
        f"{REPOSITORY}; git config extensions.worktreeConfig true", "evil .git/config.worktree",
        told=".git/config.worktree"),
    "core.hooksPath that was not there": Attack(
        f"{REPOSITORY}; git config core.hooksPath .githooks",
        "mkdir .githooks; hook .githooks/pre-commit", SAVE, told=".githooks"),
    "include.path that was not there": Attack(
        f"{REPOSITORY}; git config include.path ../.gitconfig", "evil .gitconfig",
        told=".gitconfig"),
    "the pointer of a submodule that was not there": Attack(
        f"{SUBMODULE}; rm lib/sub/.git", """cp -r .git/modules/lib/sub evil
        evil evil/config "	worktree = $PWD/lib/sub\n"; echo "gitdir: ../../evil" >lib/sub/.git""",
        told="lib/sub/.git"),
    "the git directory of a submodule to come": Attack(
        f"{SUBMODULE}; mv .git/modules ../kept; rm -rf lib/sub/.git; mkdir -p .git/modules",
        """git init -q --bare .git/modules/lib/sub; evil .git/modules/lib/sub/config
        hook .git/modules/lib/sub/hooks/post-checkout""",
        "git -c protocol.file.allow=always submodule update --init --force",
        told=".git/modules/lib/sub"),
}

ORDINARY = f"""set -e
export GIT_AUTHOR_NAME=T GIT_AUTHOR_EMAIL=t@example.org GIT_COMMITTER_NAME=T
export GIT_COMMITTER_EMAIL=t@example.org
for i in 1 2 3; do echo $i >>file; git add file; git commit -q -m $i; done
git checkout -q -b feature; echo x >new; git add new; git commit -q -m new
git checkout -q -; git merge -q --no-edit feature; git branch -d feature; git tag v1; git stash list
git gc -q; git status; git log --oneline; git commit -q --amend -m again; git rebase -q HEAD~1
sed -i s/1/2/ file; mkdir -p src/objects src/refs; touch src/HEADER src/config; git add -A
git commit -q -m tree; (cd a/nested; echo z >g; git add g; git commit -q -m g; git gc -q)
(cd lib/sub; echo y >f; git add f; git commit -q -m f); git add lib/sub; git commit -q -m sub"""


class GitLater(Case):
    def setUp(self):
        super().setUp()
        self.need("git")
        self.trap = self.base / "ran"

    def fresh(self, attack):
        """The project as the host left it."""
        shutil.rmtree(self.project)
        shutil.rmtree(self.project.parent / "up", ignore_errors=True)
        shutil.rmtree(self.project.parent / "kept", ignore_errors=True)
        (self.home / ".gitconfig").unlink(missing_ok=True)
        self.project.mkdir()
        self.trap.unlink(missing_ok=True)
        self.assert_ok(self.outside(self.filled(attack.before)))

    def filled(self, script):
        return script.replace("TRAP", str(self.trap))

    def ran_later(self, attack):
        """Whether the host's git ran what the agent left."""
        self.outside(self.filled(attack.after))
        return self.trap.exists()

    def check_control(self, attack):
        self.fresh(attack)
        done = self.outside(self.filled(TOOLS + attack.script))
        self.assertTrue(self.ran_later(attack), f"the control does nothing: {done.stderr}")

    def run_attack(self, attack):
        self.fresh(attack)
        return self.warden("run", "--offline", self.project, "--", "/bin/bash", "-c",
                           self.filled(TOOLS + attack.script))

    def created(self):
        return [record["path"] for record in self.events("protect.created")]

    def test_what_is_there_at_the_start_is_held(self):
        for name, attack in HELD.items():
            with self.subTest(name):
                self.check_control(attack)
                done = self.run_attack(attack)
                self.assertFalse(self.ran_later(attack), done.stderr)
                self.assertRegex(done.stderr, "Read-only file system|Device or resource busy")

    def test_what_is_not_there_is_told(self):
        for name, attack in TOLD.items():
            with self.subTest(name):
                self.check_control(attack)
                done = self.run_attack(attack)
                path = str(self.project / attack.told)
                self.assertIn(f"machine later: {path}\n", done.stderr)
                self.assertIn(path, self.created())

    def ordinary_project(self):
        self.assert_ok(self.outside(f"{SUBMODULE} && git init -q a/nested && "
                                    f"(cd a/nested && {SAVE})"))

    def test_ordinary_work_is_not_told(self):
        self.ordinary_project()
        done = self.warden("run", "--offline", self.project, "--", "/bin/bash", "-c", ORDINARY)
        self.assert_ok(done)
        self.assertEqual(self.created(), [])
        self.assertNotIn("machine later", done.stderr)

    def test_an_installation_is_not_told(self):
        self.need("npm")
        self.assert_ok(self.outside(REPOSITORY))
        self.write("lib/package.json", '{"name": "lib", "version": "1.0.0"}')
        self.write("package.json", '{"name": "p", "dependencies": {"lib": "file:./lib"}}')
        done = self.warden("run", "--offline", self.project, "--", "/bin/bash", "-c",
                           "npm install --no-audit --no-fund && ls node_modules/lib/package.json")
        self.assert_ok(done)
        self.assertEqual(self.created(), [])
        self.assertNotIn("machine later", done.stderr)

    def test_a_large_project_is_said_to_be_one(self):
        """Beyond the bound nothing is held, and what changed there is told."""
        self.assert_ok(self.outside("mkdir many; cd many; seq 20001 | xargs touch"))
        os.mkdir(self.project / "zz")
        done = self.warden("run", "--offline", self.project, "--", "true")
        self.assertIn("too large to be looked through for nested repositories", done.stderr)
        self.assertNotIn("machine later", done.stderr)

    def test_an_agent_that_makes_the_project_large_is_told(self):
        done = self.warden("run", "--offline", self.project, "--", "/bin/bash", "-c",
                           "mkdir many; cd many; seq 20001 | xargs touch")
        self.assertNotIn("too large", done.stderr)
        self.assertIn("cannot be looked through to its end", done.stderr)
        self.assertTrue(self.events("note"))

    def test_a_held_file_that_has_another_name_is_told(self):
        """Read-only is a name: the file is written by the other one."""
        held = self.write(".envrc", "before\n")
        os.link(held, self.project / "cache")
        time.sleep(0.2)  # a change time is as coarse as the kernel's tick: near ones count as changes
        quiet = self.warden("run", "--offline", self.project, "--", "true")
        self.assertIn(".envrc has another name", quiet.stderr)
        self.assertNotIn("machine later", quiet.stderr)
        done = self.warden("run", "--offline", self.project, "--", "/bin/bash", "-c",
                           "echo evil >.envrc; echo evil >cache; ln .envrc again")
        self.assertIn("Read-only file system", done.stderr)
        self.assertIn("Invalid cross-device link", done.stderr)
        self.assertEqual(held.read_text(encoding="utf-8"), "evil\n")
        self.assertIn(f"machine later: {held}\n", done.stderr)
        self.assertEqual(self.created(), [str(held)])

    def test_a_worktree_tells_of_the_repository_that_it_belongs_to(self):
        """Its git directory lies elsewhere and is shown writable."""
        self.assert_ok(self.outside(f"{REPOSITORY} && rm -rf .git/hooks && "
                                    "git worktree add -q ../tree"))
        tree = self.project.parent / "tree"
        git_dir = self.project / ".git"
        done = self.warden("run", "--offline", tree, "--", "/bin/bash", "-c", self.filled(
            f"{TOOLS} cd {git_dir}; mkdir hooks; hook hooks/pre-commit; evil config.worktree; "
            "echo ../evil >commondir; evil config"))
        self.assertIn("Read-only file system", done.stderr)
        for name in ("hooks/pre-commit", "config.worktree", "commondir"):
            self.assertIn(f"machine later: {git_dir / name}\n", done.stderr)
        self.assertEqual(len(self.created()), 3)

    def test_without_the_class_git_nothing_is_held_or_told(self):
        self.policy(file_system={"protect": ["editor"]})
        attack = HELD["the configuration of a nested repository"]
        done = self.run_attack(attack)
        self.assertTrue(self.ran_later(attack), done.stderr)
        self.assertEqual(self.created(), [])
