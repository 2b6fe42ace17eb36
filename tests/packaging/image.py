"""services/Dockerfile and .dockerignore, read as far as our rules go."""

import json
import re
import shlex
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = ROOT / "services" / "Dockerfile"


class Instruction(NamedTuple):
    """One instruction: its word, and all that follows on one line."""

    word: str
    text: str

    @property
    def listed(self) -> list[str]:
        """The exec form; a shell form is an error."""
        found: list[str] = json.loads(self.text)
        return found

    @property
    def pairs(self) -> dict[str, str]:
        """`name=value name=value`, as LABEL, ENV and ARG have them."""
        return {name: value for name, _, value in (one.partition("=") for one in shlex.split(self.text))}


class Stage(list[Instruction]):
    """The instructions from one FROM to the next."""

    def all(self, word: str) -> list[Instruction]:
        return [one for one in self if one.word == word]

    def pairs(self, word: str) -> dict[str, str]:
        return {name: value for one in self.all(word) for name, value in one.pairs.items()}

    @property
    def base(self) -> str:
        return self.all("FROM")[0].text.split()[0]


def stages() -> list[Stage]:
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found: list[Stage] = []
    for line in filter(str.strip, joined.splitlines()):
        word, _, text = line.partition(" ")
        if word == "FROM":
            found.append(Stage())
        found[-1].append(Instruction(word, text.strip()))
    return found


def copied() -> list[str]:
    """What is copied out of the repository, in the order of the file."""
    commands = [shlex.split(one.text) for stage in stages() for one in stage.all("COPY")]
    return [source for words in commands if not words[0].startswith("--from=") for source in words[:-1]]


def sent(path: str) -> bool:
    """Whether .dockerignore lets a file into the build; the last line that matches decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#") and _matches(path, line.removeprefix("!")):
            ignored = not line.startswith("!")
    return not ignored


def _matches(path: str, pattern: str) -> bool:
    """A pattern matches a path or a folder above it; `**/` lets it begin anywhere."""
    parts = path.split("/")
    if pattern.startswith("**/"):
        return any(fnmatch(part, pattern.removeprefix("**/")) for part in parts)
    return any(fnmatch("/".join(parts[: end + 1]), pattern) for end in range(len(parts)))
