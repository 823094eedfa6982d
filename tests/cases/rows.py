"""The rows that strangers met, read from the two tables beside this file."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
KINDS: Final[dict[str, str]] = {
    "K1": "results are lost on their way back",
    "K2": "files here are changed though the work did not change them",
    "K3": "what is sent is not the folder",
    "K4": "what was rented goes on, or is held for nothing",
    "K5": "a secret is printed",
    "K6": "a container is not what images expect",
    "K7": "a host cannot do what it offers",
    "K8": "a name is not kept as it was given",
    "K9": "words that are asked for, and exit codes",
    "K10": "network of this machine",
    "K11": "a raw error, or a wrong reason",
    "K12": "output that programs and people read",
    "K13": "functions",
    "K14": "volumes: all or nothing",
    "held": "held from the start",
    "loses": "loses work, money or secrets",
    "untrue": "says what is not so",
    "unclear": "reads badly",
    "docs": "documents that fail or mislead",
}
"""What the rows have in common, by the word that the tables use."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row. source: public threads, without their host; empty for what was met by use. scenario: what is tried."""

    id: str
    kind: str
    source: str
    scenario: str


def _read(name: str) -> tuple[Row, ...]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return tuple(Row(**line) for line in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


ROWS: Final = {row.id: row for row in (*_read("bug_reports.tsv"), *_read("mission_faults.tsv"))}
