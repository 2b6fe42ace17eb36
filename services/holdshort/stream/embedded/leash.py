"""A leash: a program that cannot outlive the one that started it, not even when that is killed (on Linux)."""

import os
import sys
from collections.abc import Sequence

# Becomes the program, after asking Linux to kill it when its parent goes. A program, not a preexec_fn: that
# would run Python between fork and exec, where a lock held by another thread is held for ever.
_LEASH = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):  # else it went before we asked
    os.execvp(sys.argv[2], sys.argv[2:])
"""


def leashed(command: Sequence[str]) -> list[str]:
    """The command on a leash; as it is where there is none.

    The leash is held by the *thread* that starts the program, so that thread must live as long as it.
    """
    if sys.platform == "linux" and sys.executable:
        return [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid()), *command]
    return list(command)
