"""Started by root: the agent is never root, and leaves nothing that makes anybody root."""

import os
import pathlib
import re
import subprocess

from support import RUN_S, WARDEN, Case

AS = ["root"]
OWNER = 48211  # nobody's
SET_ID = """
cp /bin/true mine
for mode in 4755 2755 6755 1777; do chmod $mode mine && echo "chmod $mode"; done
/usr/bin/python3 - <<'END'
import os
for what, call in {
    "open": lambda: os.open("o", os.O_CREAT | os.O_WRONLY, 0o4755),
    "mknod": lambda: os.mknod("m", 0o104755),
    "mkdir": lambda: (os.mkdir("d"), os.chmod("d", 0o2755)),
    "fchmod": lambda: os.fchmod(os.open("mine", os.O_RDONLY), 0o4755),
    "device": lambda: os.mknod("null", 0o020666, os.makedev(1, 3)),
    "block device": lambda: os.mknod("disk", 0o060666, os.makedev(8, 0)),
    "chown": lambda: os.chown("mine", 0, 0),
    "capability": lambda: os.setxattr("mine", "security.capability", bytes.fromhex(
        "0100000200040000000000000000000000000000")),
}.items():
    try:
        call()
        print(what)
    except OSError:
        pass
END
"""


class StartedByRoot(Case):
    def outside_ids(self, project):
        """The ids that the agent has on the host."""
        session = self.session("exec sleep 60", "-q", project=project)
        pid = session.member("sleep")
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        session.close()
        return {name: set(re.search(rf"^{name}:(.*)$", status, re.M)[1].split())
                for name in ("Uid", "Gid", "Groups")}

    def test_a_project_of_a_user(self):
        for path in (self.project, self.write("file", "theirs")):
            os.chown(path, OWNER, OWNER)
        root_file = self.write("of-root", "root's", 0o600)
        ids = self.outside_ids(self.project)
        self.assertEqual(ids, {"Uid": {str(OWNER)}, "Gid": {str(OWNER)}, "Groups": set()})
        done = self.cell("id -u; echo x >>file; touch new; cat of-root; echo x >of-root; "
                         "chmod 777 of-root")
        self.assertEqual(done.stdout, "1001\n")
        self.assertEqual((self.project / "new").stat().st_uid, OWNER)
        self.assertEqual(root_file.read_text(encoding="utf-8"), "root's")

    def test_a_project_of_roots(self):
        self.write("file", "root's", 0o600)
        ids = self.outside_ids(self.project)
        self.assertNotIn("0", ids["Uid"] | ids["Gid"] | ids["Groups"])
        out = self.in_cell("id -u; stat -c %u . file; cat file; echo x >>file; touch new; "
                           "mkdir -p d/e")
        self.assertEqual(out, "1001\n1001\n1001\nroot's")
        for name in ("file", "new", "d/e"):
            self.assertEqual((self.project / name).stat().st_uid, 0)

    def test_what_belongs_to_others_stays_theirs(self):
        other = self.write("other", "other's", 0o600)
        os.chown(other, OWNER, OWNER)
        done = self.cell("cat other; echo x >other; chmod 666 other; stat -c %U other")
        self.assertEqual(done.stdout, "nobody\n")
        self.assertEqual(other.read_text(encoding="utf-8"), "other's")

    def test_no_set_id_file_is_left(self):
        for owner in (0, OWNER):
            with self.subTest(owner):
                os.chown(self.project, owner, owner)
                out = self.cell(SET_ID, shell="/bin/bash").stdout
                self.assertEqual(out, "chmod 1777\n")
                found = self.outside("find . -perm /6000 -o -type b -o -type c; "
                                     "getcap -r . 2>/dev/null")
                self.assertEqual(found.stdout, "")
                self.outside("find . -mindepth 1 -delete")
        control = self.outside(SET_ID)
        for what in ("chmod 4755", "open", "fchmod", "device", "chown"):
            self.assertIn(what, control.stdout)

    def test_a_set_group_id_folder_of_the_host_makes_no_set_id_file(self):
        self.project.chmod(0o2775)
        self.in_cell("mkdir d; touch f; cp /bin/true t; chmod 755 t")
        self.assertEqual(self.outside("find . -type f -perm /6000").stdout, "")

    def test_a_file_system_that_maps_no_owners_is_refused(self):
        overlay = self.home / "overlay"
        script = f"""set -e; mount -t tmpfs none {self.runtime}; cd {self.runtime}; mkdir -p l/p u w
            mount -t overlay -o lowerdir=l,upperdir=u,workdir=w none {overlay}; cd /; set +e
            {WARDEN} run {overlay}/p -- touch {overlay}/p/started; echo $?; ls {overlay}/p"""
        overlay.mkdir()
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=self.env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_S,
                              check=False)
        self.assertIn(done.stdout, ("78\n", "0\nstarted\n"), done.stderr)
        if done.stdout == "78\n":
            self.assertIn("chown", done.stderr)

    def test_another_persons_home_stays_clean(self):
        """`sudo` that keeps HOME: root leaves no files of its own there."""
        os.chown(self.home, OWNER, OWNER)
        before = sorted(self.home.rglob("*"))
        self.warden("run", "-q", self.project, "--", "true")
        owners = {path: path.lstat().st_uid for path in self.home.rglob("*") if path not in before}
        self.assertEqual(owners, {})
