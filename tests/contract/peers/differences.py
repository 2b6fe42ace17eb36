"""Why a peer says something else than we do: differences.yaml, and what nobody else can be asked about."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import yaml

STRANDS: Final = "ag-ui-strands"
AG2: Final = "AG2"
CLIENT: Final = "@ag-ui/client"
TANSTACK: Final = "TanStack's server"
PEERS: Final = (STRANDS, AG2, CLIENT, TANSTACK)

NOT_ASKED: Final = {
    "wrong address": "only records from `resumes` carry an address",
    "abandon": "only operators and the router abandon, by a header of ours",
    "forget": "only operators have a thread forgotten, by a header of ours",
    "same input late": "a matter of append times, which no endpoint has",
    "sealed": "a limit on open pauses of an agent is ours alone",
    "reserved": "teams are ours",
    "miskeyed": "only Kafka has keys and partitions",
}
"""Rows of the contract about which nobody else can be asked."""


class Difference(NamedTuple):
    """A peer says something else of an input, which is named by its row and what is sent."""

    peer: str
    row: str
    name: str
    why: str


def explained() -> Iterator[Difference]:
    """Every difference that has a reason."""
    for peer, reasons in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text()).items():
        for reason in reasons:
            for row, name in reason["inputs"]:
                yield Difference(peer, row, name, reason["why"])
