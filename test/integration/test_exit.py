"""Exit codes, and standard streams that are the agent's own: bytes, ends and back-pressure."""

import fcntl
import hashlib
import json
import os
import subprocess
import time

from support import PEAK_KB, RUN_S, WARDEN, Case, Session, peak_kb

# script -> exit code, the same in a cell as outside
SCRIPTS = {
    "exit 0": 0,
    "exit 42": 42,
    "exit 78": 78,
    "exit 99": 99,
    "exit 255": 255,
    "kill -9 $$": 137,
    "kill -INT $$": 130,
    "kill -TERM $$": 143,
    "kill -SEGV $$": 139,
    "kill -PIPE $$": 141,
    "no-such-program": 127,
    "./not-executable": 126,
}
USAGE = (
    ["run", "--no-such-option", ".", "--", "true"],
    ["run", ".", "--"],
    ["run", "-t", "soon", ".", "--", "true"],
    ["run", "-m", "0", ".", "--", "true"],
    ["run", "--max-processes", "-1", ".", "--", "true"],
    ["run", ".", "not-an-agent"],
    ["run", ".", ".", "--", "true"],
    ["no-such-verb"],
    ["exec", "--", "true"],
    ["logs", "--no-such-option"],
    ["audit"],
    ["scan", "."],
    ["verify"],
)
# What this version knows and cannot keep is refused, never ignored.
REFUSED_OPTIONS = (["--publish", "3000"], ["--host-port", "11434"], ["--cow"], ["--rootfs", "/"],
                   ["--runtime", "runc"], ["--model", "/m"])
BINARY = bytes(range(256)) * 4096


class Codes(Case):
    def test_B04_codes_of_the_command(self):
        self.write("not-executable", "#!/bin/sh\n", 0o644)
        for script, code in SCRIPTS.items():
            with self.subTest(script):
                self.assertEqual(self.cell(script).returncode, code)
                plain = self.outside(script).returncode
                self.assertEqual(plain if plain >= 0 else 128 - plain, code)

    def test_B04_the_program_itself(self):
        self.write("not-executable", "#!/bin/sh\n", 0o644)
        self.write("no-interpreter", "#!/no/such/thing\n", 0o755)
        self.write("folder/x", "")
        for program, code in (("no-such-program", 127), ("./not-executable", 126),
                              ("./folder", 126), ("./no-interpreter", 127), ("/usr/bin/true", 0)):
            with self.subTest(program):
                done = self.warden("run", "-q", self.project, "--", program)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertTrue(code == 0 or program in done.stderr, done.stderr)

    def test_time_limit(self):
        for script in ("sleep 60", "trap '' TERM; while :; do sleep 1; done"):
            with self.subTest(script):
                begin = time.monotonic()
                done = self.cell(script, "-t", "1")
                self.assertEqual(done.returncode, 124, done.stderr)
                self.assertIn("time limit", done.stderr)
                self.assertLess(time.monotonic() - begin, 8)
                self.assertEqual(self.status_of_last()["reason"], "time-limit")
        self.assertEqual(self.cell("sleep 0.1", "-t", "30").returncode, 0)

    def test_usage(self):
        for words in USAGE:
            with self.subTest(" ".join(words)):
                done = self.warden(*words, cwd=self.project)
                self.assertEqual((done.returncode, done.stdout), (125, ""), done.stderr)
                self.assertTrue(done.stderr.startswith("warden: "), done.stderr)

    def test_refused_before_anything_starts(self):
        unenforced = {"rate_limits": {"file_write": {"per_minute": 1, "action": "deny"}}}
        policies = ({"version": 1, "no_such_key": 1}, {"version": 2}, {"version": 1, **unenforced},
                    {"version": 1, "extends": "no-such-preset"}, {"version": 1, "capabilities": {
                        "network": {"allowed_domains": ["*"]}}})
        for policy in policies:
            with self.subTest(policy=policy):
                self.write(self.config / "policy.json", json.dumps(policy))
                done = self.cell("touch started")
                self.assertEqual((done.returncode, done.stdout), (78, ""), done.stderr)
                self.assertRegex(done.stderr, r"policy\.json:1:\d+: ")
        (self.config / "policy.json").unlink()
        for options in REFUSED_OPTIONS:
            with self.subTest(options=options):
                done = self.cell("touch started", *options)
                self.assertEqual((done.returncode, done.stdout), (78, ""), done.stderr)
                self.assertIn(options[0], done.stderr)
        self.assertEqual(self.cell("touch started", project="/").returncode, 78)
        self.assertEqual(list(self.project.iterdir()), [])

    def test_the_reason_tells_a_refusal_from_a_childs_own_code(self):
        for code in (78, 99, 124, 125):
            self.cell(f"exit {code}")
            status = self.status_of_last()
            self.assertEqual((status["reason"], status["exit_code"]), ("exited", code))
        read_end, write_end = os.pipe()
        with os.fdopen(read_end, encoding="utf-8") as status:
            self.cell("true", "--status-fd", str(write_end), project="/", pass_fds=[write_end])
            os.close(write_end)
            last = json.loads(status.read().splitlines()[-1])
        self.assertEqual((last["event"], last["reason"], last["exit_code"]),
                         ("ended", "refused", 78))

    def test_checks_that_answer_no(self):
        self.write(self.config / "policy.json", '{ "version": 1, "capabilites": {} }')
        done = self.warden("policy", "check")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r'policy\.json:1:17: .*did you mean "capabilities"')
        self.assertEqual(self.warden("status", "no-such-session").returncode, 1)

    def test_nothing_but_the_commands_bytes_on_stdout_and_with_q_on_stderr(self):
        done = self.cell("printf out; printf err >&2")
        self.assertEqual((done.stdout, done.stderr), ("out", "err"))
        loud = self.warden("run", self.project, "--", "sh", "-c", "printf out; printf err >&2")
        self.assertEqual(loud.stdout, "out")
        self.assertRegex(loud.stderr, r"(?s)^warden: .*err")


class Streams(Case):
    def pipeline(self, script, **run):
        """A host's shell command with $W as `warden run -q PROJECT --`."""
        return self.outside(f"W='{WARDEN} run -q {self.project} --'; {script}", **run)

    def test_B08_broken_pipe_ends_the_command(self):
        for command in ("$W yes", "$W bash -c yes", "$W bash -c 'yes | cat'"):
            begin = time.monotonic()
            out = self.pipeline(f"{command} | head -1; echo ${{PIPESTATUS[0]}}").stdout
            self.assertEqual(out, "y\n141\n")
            self.assertLess(time.monotonic() - begin, 10)
        inside = self.in_cell("yes | head -1; echo ${PIPESTATUS[0]}")
        self.assertEqual(inside, "y\n141\n")

    def test_B08_end_of_input_and_binary_input(self):
        self.assertEqual(self.in_cell("cat; echo end"), "end\n")
        done = self.cell("cat", input=BINARY, is_text=False)
        self.assertEqual(hashlib.sha256(done.stdout).digest(), hashlib.sha256(BINARY).digest())
        self.assertEqual(self.pipeline("$W cat <&-; echo $?").stdout, "0\n")
        self.assertEqual(self.pipeline("$W sh -c 'echo x' >&-; echo $?").stdout, "0\n")

    def test_B08_no_flag_is_left_on_what_others_share(self):
        read_end, write_end = os.pipe()
        in_end, feed_end = os.pipe()
        os.write(feed_end, b"line\n")
        os.close(feed_end)
        before = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (in_end, write_end)]
        session = Session(self, ["cat"], ["-q"], stdin=in_end, stdout=write_end)
        during = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (in_end, write_end)]
        self.assertEqual(session.end()[0], 0)
        after = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (in_end, write_end)]
        self.assertEqual((during, after), (before, before))
        self.assertEqual(os.read(read_end, 10), b"line\n")
        session.close()
        for fd in (read_end, write_end, in_end):
            os.close(fd)

    def test_B10_two_gigabytes_at_constant_memory(self):
        session = Session(self, ["head", "-c", "2G", "/dev/zero"], ["-q"], stdout=subprocess.PIPE)
        self.addCleanup(session.close)
        total, peak = 0, 0
        with open(session.process.stdout.fileno(), "rb", buffering=0, closefd=False) as stream:
            while data := stream.read(1 << 20):
                total += len(data)
                if total >> 28 != (total - len(data)) >> 28:
                    peak = max(peak, peak_kb(session.pid))
        self.assertEqual(session.process.wait(RUN_S), 0)
        self.assertEqual(total, 2 << 30)
        self.assertLess(peak, PEAK_KB)
        self.assertGreater(peak, 0)

    def test_a_reader_that_waits_makes_the_command_wait(self):
        session = Session(self, ["bash", "-c", "head -c 16M /dev/zero; touch written"], ["-q"])
        self.addCleanup(session.close)
        time.sleep(0.7)
        self.assertFalse((self.project / "written").exists())
        self.assertEqual(len(session.end()[1]), 16 << 20)
        self.assertTrue((self.project / "written").exists())

    def test_output_to_a_file_comes_in_order_and_whole(self):
        out = self.base / "out"
        self.pipeline(f"(echo a; $W sh -c 'echo b; echo c >&2; head -c 300000 /dev/zero'; echo f) "
                      f">{out} 2>&1")
        data = out.read_bytes()
        self.assertEqual(data.replace(b"\0", b""), b"a\nb\nc\nf\n")
        self.assertEqual(data.count(b"\0"), 300000)

    def test_dev_stdout_and_dev_stderr_open(self):
        script = "$W sh -c 'echo out >/dev/stdout; echo err >/dev/stderr'"
        piped = self.pipeline(script)
        self.assertEqual((piped.stdout, piped.stderr), ("out\n", "err\n"))
        self.pipeline(f"{script} >{self.base}/out 2>{self.base}/err")
        for name in ("out", "err"):
            self.assertEqual((self.base / name).read_text(encoding="utf-8"), f"{name}\n")

    def test_a_file_as_output_cannot_be_read_or_reopened(self):
        """The agent gets a place to write to, not the person's log."""
        out = self.write(self.base / "log", "secret of others\n")
        script = ("timeout 1 cat </proc/self/fd/1 >&2; : >/proc/self/fd/1; "
                  "timeout 1 cat <&1 >&2; true")
        self.assertNotIn("secret", self.pipeline(f"$W sh -c '{script}' >>{out}").stderr)
        self.assertEqual(out.read_text(encoding="utf-8"), "secret of others\n")
        self.assertIn("secret", self.outside(f"sh -c '{script}' >>{out}").stderr)

    def test_full_disk_is_the_commands_error(self):
        out = self.pipeline("$W bash -c 'echo x; echo $? >&2' >/dev/full").stderr
        self.assertIn("No space left", out)

    def test_a_directory_or_disk_as_standard_stream_is_refused(self):
        for redirection in ("</", "<.", "2</etc"):
            with self.subTest(redirection):
                done = self.pipeline(f"$W touch started {redirection}; echo $?")
                self.assertIn(done.stdout, ("125\n", "78\n"))
        self.assertFalse((self.project / "started").exists())
        # The control: outside, a directory on a descriptor leads anywhere.
        self.assertNotEqual(self.outside("cat /proc/self/fd/0/passwd </etc").stdout, "")
