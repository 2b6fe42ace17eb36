"""What processes have spent, from Linux's /proc: it alone tells the peak of memory of one that still runs."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
SESSION, USER, SYSTEM = 3, 11, 12  # of what follows the name in /proc/<pid>/stat, by proc(5)


def is_known() -> bool:
    return (PROC / "self" / "stat").exists()


def cpu_seconds(sessions: Collection[int]) -> float:
    """CPU time of all processes of these sessions that run."""
    ticks = sum(int(stat[USER]) + int(stat[SYSTEM]) for _, stat in _members(sessions))
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_mb(sessions: Collection[int]) -> float:
    """The sum of their peaks of resident memory, in MB of 2^20 bytes."""
    return sum(_peak_kb(process) for process, _ in _members(sessions)) / 1024


def _members(sessions: Collection[int]) -> Iterator[tuple[Path, list[str]]]:
    for process in PROC.iterdir():
        if not process.name.isdecimal():
            continue
        try:
            stat = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(stat[SESSION]) in sessions:
            yield process, stat


def _peak_kb(process: Path) -> int:
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
