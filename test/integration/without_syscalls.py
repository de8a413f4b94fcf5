#!/usr/bin/python3 -B
"""Run a command for which some system calls do not exist (ENOSYS), as on an older kernel.

    without_syscalls.py NUMBER[,NUMBER...] COMMAND [ARG...]

The filter is inherited by everything that COMMAND starts. No new privileges are set with it.
"""

import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF, linux/filter.h
ERRNO, ALLOW = 0x00050000, 0x7FFF0000


def instruction(code, k, jump_true=0, jump_false=0):
    return struct.pack("HBBI", code, jump_true, jump_false, k)


def install(numbers):
    """Load the number, compare with each, answer ENOSYS on a match."""
    program = instruction(LOAD, 0)
    for i, number in enumerate(numbers):
        program += instruction(JUMP_EQUAL, number, len(numbers) - i)
    program += instruction(RETURN, ALLOW) + instruction(RETURN, ERRNO | errno.ENOSYS)
    buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or \
            libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(head)) != 0:
        raise OSError(ctypes.get_errno(), "install the filter")


def main():
    numbers = [int(word) for word in sys.argv[1].split(",")]
    install(numbers)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
