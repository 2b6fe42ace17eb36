"""A peer in a process of its own: a line of JSON to it, a line of JSON back."""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[3]

Answering = Callable[[dict[str, Any]], Any]
"""What answers the questions that a peer asks while it is at it."""


class Peer:
    """One process; everything that it prints to standard error is shown if it fails."""

    def __init__(self, *command: str | Path) -> None:
        self._printed = tempfile.TemporaryFile("w+")  # noqa: SIM115 (as long as the process)
        self._process = subprocess.Popen(
            [str(word) for word in command],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT), "OTEL_SDK_DISABLED": "true"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            text=True,
        )

    def ask(self, asked: dict[str, Any], answering: Answering | None = None) -> dict[str, Any]:
        """What the peer says to one line; its own questions are put to `answering` meanwhile."""
        said = self._tell(asked)
        while "asks" in said:
            assert answering is not None, f"the peer asks: {said}"
            said = self._tell(answering(said["asks"]))
        if "failed" in said:
            raise AssertionError(f"the peer failed: {said}")
        return said

    def _tell(self, what: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise AssertionError(f"the peer has ended: {self._last_words()}")
        said: dict[str, Any] = json.loads(line)
        return said

    def _last_words(self) -> str:
        self._printed.seek(0)
        return self._printed.read()[-4000:]

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._printed.close()
