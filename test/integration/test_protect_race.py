"""The moment in which a protected file has lost its mount: the host renames over it, and until the cell
stands still the agent may write to what is there now, put a file of its own in its place, or give it a
second name. Whatever it does, none of it is in the file afterwards; and what the host wrote is in it, or
is kept and told."""

import contextlib
import shutil
import subprocess
import time

from support import RUN_S, Case, wait_for

EVIL = "run-by-the-agent"
# Two processes try one thing as fast as they can. argv: attack, held file, the host's new file.
ATTACKER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char text[] = "# EVIL\n";
static char mine[64], other[64];

static int append(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND);

	if (fd < 0)
		return 0;
	(void)!write(fd, text, sizeof(text) - 1);
	return close(fd) == 0;
}

static int put_over(const char *path)
{
	int fd = open(mine, O_WRONLY | O_CREAT, 0644);

	(void)!write(fd, text, sizeof(text) - 1);
	close(fd);
	return rename(mine, path) == 0;
}

static int by_write(const char *held, const char *new)
{
	return append(held);
}

static int by_rename(const char *held, const char *new)
{
	return put_over(held);
}

/* Written, and away and back: an absent name, and a write that nobody may remember. */
static int by_swap(const char *held, const char *new)
{
	int done = append(held);

	if (rename(held, other) == 0)
		done |= rename(other, held) == 0;
	return done;
}

static int by_link(const char *held, const char *new)
{
	int done;

	if (link(held, other) < 0)
		return 0;
	done = append(other);
	unlink(other);
	return done;
}

/* What the host is about to rename over the held file. */
static int by_new_write(const char *held, const char *new)
{
	return append(new);
}

static int by_new_rename(const char *held, const char *new)
{
	return access(new, F_OK) == 0 && put_over(new);
}

static int by_weak_init(const char *held, const char *new)
{
	struct rlimit few = { 4, 4 };

	prlimit(1, RLIMIT_NOFILE, &few, NULL);
	return append(held);
}

static const struct {
	const char *name;
	int (*try)(const char *held, const char *new);
} attacks[] = {
	{ "write", by_write }, { "rename", by_rename }, { "swap", by_swap }, { "link", by_link },
	{ "new write", by_new_write }, { "new rename", by_new_rename }, { "weak init", by_weak_init },
};

int main(int argc, char **argv)
{
	int is_once = argc > 5, done;
	pid_t child = fork(), first = child == 0 ? getppid() : getpid();
	unsigned i = 0;

	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(mine, sizeof(mine), "%s/mine-%d", argv[4], getpid());
	snprintf(other, sizeof(other), "%s/other-%d", argv[4], getpid());
	while (strcmp(attacks[i].name, argv[1]) != 0)
		i++;
	close(open("there", O_CREAT | O_WRONLY, 0644));
	for (;;) {
		done = attacks[i].try(argv[2], argv[3]);
		if (done)
			close(open("hit", O_CREAT | O_WRONLY, 0644));
		if (done && is_once)
			kill(first, SIGKILL);
	}
}
"""
ATTACKS = ("write", "rename", "swap", "link", "new write", "new rename", "weak init")
# held file -> where the agent has room of its own on the same mount
HELD = {".git/config": ".git/objects", ".envrc": "sub"}


class ProtectRace(Case):
    def setUp(self):
        super().setUp()
        self.need("git", "gcc")
        source = self.base / "attacker.c"
        source.write_text(ATTACKER.replace("EVIL", EVIL), encoding="utf-8")
        subprocess.run(["gcc", "-O1", "-w", "-o", str(self.base / "attacker"), str(source)], check=True,
                       timeout=RUN_S)
        self.plant()

    def plant(self):
        self.outside("find . -mindepth 1 -delete")
        self.git("init", "-q", ".")
        self.write(".envrc", "[race]\n")  # something that each way can change
        self.write("sub/keep", "")
        self.outside(f"cp {self.base}/attacker .")

    def read(self, path):
        with contextlib.suppress(OSError):
            return (self.project / path).read_text(encoding="utf-8", errors="replace")
        return None

    # What the host does; each returns what it wrote, or None if it could not.

    def by_git(self, path, number):
        done = self.outside(f"git config -f {path} race.number {number}")
        return None if done.returncode else f"number = {number}"

    def by_editor(self, path, number):
        """Written beside it and renamed over it."""
        new = self.write(f"{path}.lock", f"[race]\n\tnumber = {number}\n")
        try:
            new.rename(self.project / path)
        except FileNotFoundError:
            return None
        return f"number = {number}"

    def by_vim(self, path, number):
        """Renamed to a backup, made anew, the backup removed."""
        file = self.project / path
        backup = file.with_name(file.name + "~")
        try:
            file.rename(backup)
            self.write(path, f"[race]\n\tnumber = {number}\n")
            backup.unlink()
        except OSError:
            return None
        return f"number = {number}"

    def by_folder(self, path, number):
        """The repository's folder moved aside, and a changed copy in its place."""
        folder, old = self.project / ".git", self.project / "old.git"
        shutil.rmtree(old, ignore_errors=True)
        try:
            folder.rename(old)
            shutil.copytree(old, folder)
        except (OSError, shutil.Error):
            return None
        return self.by_git(path, number)

    WAYS = ("by_git", "by_editor", "by_vim")

    def attack(self, attack, path, *once, options=()):
        command = f"exec ./attacker '{attack}' {path} {path}.lock {HELD[path]} {' '.join(once)}"
        session = self.session(command, *options)
        wait_for("the attacker", lambda: (self.project / "there").exists())
        return session

    def end(self, session):
        if session.process.poll() is None:
            session.process.terminate()
        return session.end()

    def assert_clean(self, path, stderr):
        """Nothing of the agent's; a file that does not have to be there may be gone, and is told."""
        text = self.read(path)
        if text is None:
            self.assertNotEqual(path, ".git/config")
            self.assertIn(str(self.project / path), stderr)
        else:
            self.assertFalse(EVIL in text, f"{text[:200]}\n{stderr}")

    def race(self, way, attack, path, *once):
        self.plant()
        session = self.attack(attack, path, *once)
        for number in range(3):
            if session.process.poll() is None:
                getattr(self, way)(path, number)
                time.sleep(0.12)
        err = self.end(session)[2]
        self.assert_clean(path, err)
        self.assertTrue(self.events("protect.detached"))  # the control: there was something to race for

    def test_nothing_of_the_agent_stays(self):
        for path in HELD:
            for way in self.WAYS:
                for attack in ATTACKS:
                    with self.subTest(path=path, way=way, attack=attack):
                        self.race(way, attack, path)

    def test_nothing_of_the_agent_stays_in_a_folder_that_was_replaced(self):
        for attack in ("write", "rename", "swap"):
            with self.subTest(attack):
                self.race("by_folder", attack, ".git/config")

    def test_nothing_stays_when_the_agent_ends_the_session_at_once(self):
        for path in HELD:
            for attack in ("write", "rename", "link"):
                with self.subTest(path=path, attack=attack):
                    self.race("by_editor", attack, path, "once")

    def test_without_protection_each_attack_works(self):
        """The control, in the same cell."""
        self.policy(file_system={"protect": []})
        for attack in ATTACKS:
            with self.subTest(attack):
                self.plant()
                session = self.attack(attack, ".envrc")
                end = time.monotonic() + 10
                while time.monotonic() < end and EVIL not in (self.read(".envrc") or ""):
                    self.by_editor(".envrc", 1)
                    time.sleep(0.001)
                self.end(session)
                # One that moves the file away may have been killed with it there.
                places = [self.project / ".envrc", *(self.project / "sub").glob("other-*")]
                self.assertTrue([place for place in places if place.exists()
                                 and EVIL in place.read_text(encoding="utf-8")])

    def test_without_an_attack_no_change_of_the_host_is_lost(self):
        """It is in the file; or it is kept with the session, and told."""
        for way in self.WAYS:
            self.plant()
            session = self.session("touch there; exec sleep 60")
            wait_for("the agent", lambda: (self.project / "there").exists())
            missing = []
            for number in range(10):
                text = getattr(self, way)(".git/config", number)
                wait_for("it to be protected again", lambda n=number: self.count(session, n))
                if text not in self.read(".git/config"):
                    missing.append(text)
            err = self.end(session)[2]
            with self.subTest(way):
                self.assert_told(session, missing, err)

    def count(self, session, number):
        return len([r for r in self.journal(session.id) if r["kind"] == "protect.rearmed"]) > number

    def assert_told(self, session, missing, err):
        kept = [r["kept"] for r in self.journal(session.id) if r["kind"] == "protect.reverted"]
        folder = self.state / "sessions" / session.id
        # Two changes in one breath of the host are kept as one.
        found = "".join((folder / name).read_text(encoding="utf-8") for name in kept)
        for text in missing:
            self.assertIn(text, found)
        if missing:
            self.assertIn(".git/config", err)
