"""Judges the truth after a run from the files, the kernel and Docker, by this module's own arithmetic.

Nothing here asks the Master or uses its code: signatures are checked with the cryptography library, money is folded
again, telemetry is compared record by record.
"""

import json
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import psycopg.rows
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from windrow_proto.disk import OsDisk
from windrow_proto.segments import read_log
from windrow_proto.v1 import host_pb2, link_pb2

NS_PER_HOUR = 3_600 * 10**9
ED25519 = 2
RECEIPT = "KIND_RECEIPT"
DOCKER_S = 60
Key = tuple[str, bytes, int]
"""A telemetry record: host, boot of origin, sequence of origin."""


# --- the database ----------------------------------------------------------------------------------------------------


_served: dict[Path, str] = {}


def is_kept_in(data_dir: Path, url: str) -> None:
    """The Master of this directory keeps its truth in the PostgreSQL at `url`."""
    _served[data_dir] = url.replace("+psycopg", "")


class Served:
    """A connection to PostgreSQL that is asked as SQLite is: `?` for parameters, rows by name."""

    def __init__(self, connection: "psycopg.Connection[dict[str, Any]]") -> None:
        self._connection = connection

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Rows of one query; BEGIN fixes what the following ones see."""
        if query == "BEGIN":
            return self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return self._connection.execute(query.replace("?", "%s"), list(parameters))


@contextmanager
def database(data_dir: Path) -> Iterator[Any]:
    """The Master's database, read only; it may be running."""
    if data_dir in _served:
        with psycopg.connect(_served[data_dir], autocommit=True, row_factory=psycopg.rows.dict_row) as served:
            yield Served(served)
        return
    with closing(sqlite3.connect(f"file:{data_dir / 'master.sqlite3'}?mode=ro", uri=True, timeout=60)) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def rows(data_dir: Path, query: str, *parameters: Any) -> list[dict[str, Any]]:
    """Rows of one query as dictionaries."""
    with database(data_dir) as connection:
        return [dict(row) for row in connection.execute(query, parameters)]


def ledger_flaws(data_dir: Path) -> list[str]:
    """Why the ledger does not balance; empty when every balance is the fold of the transfers and all sum up to zero."""
    with database(data_dir) as connection:
        connection.execute("BEGIN")  # one snapshot for both tables
        kept = {row["account"]: row["balance"] for row in connection.execute("SELECT account, balance FROM balances")}
        folded: Counter[str] = Counter()
        flaws = []
        for row in connection.execute("SELECT debit, credit, amount FROM transfers"):
            folded[row["debit"]] -= row["amount"]
            folded[row["credit"]] += row["amount"]
            if row["amount"] <= 0:
                flaws.append(f"a transfer of {row['amount']}")
    for account in sorted(kept.keys() | folded.keys()):
        if kept.get(account, 0) != folded[account]:
            flaws.append(f"{account}: kept {kept.get(account, 0)}, folded {folded[account]}")
        if folded[account] < 0 and account != "mint:test":
            flaws.append(f"{account} is below zero: {folded[account]}")
    if sum(folded.values()):
        flaws.append(f"debits and credits differ by {sum(folded.values())}")
    return flaws


# --- receipts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SignedReceipt:
    """One receipt out of the sealed bytes that the Master keeps, its signature checked here."""

    workload_id: str
    number: int
    running_ns: int
    is_final: bool
    started_wall_ns: int
    signed_wall_ns: int
    end_reason: str


def public_key(identity: Path) -> bytes:
    """The host's Ed25519 public key from the private one that never left its folder."""
    private = Ed25519PrivateKey.from_private_bytes((identity / "sign.key").read_bytes())
    return private.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def open_receipt(sealed: bytes, public: bytes) -> SignedReceipt:
    """Check the signature over these bytes and read the receipt in them; raises InvalidSignature."""
    outer = link_pb2.Sealed.FromString(sealed)
    assert outer.proof_kind == ED25519, outer.proof_kind
    Ed25519PublicKey.from_public_bytes(public).verify(outer.proof, b"windrow-up-1\0" + outer.signed)
    envelope = link_pb2.Envelope.FromString(outer.signed)
    assert link_pb2.Kind.Name(envelope.kind) == RECEIPT
    record = link_pb2.Record.FromString(envelope.body)
    receipt = host_pb2.Receipt.FromString(record.body)
    return SignedReceipt(
        receipt.workload_id,
        receipt.number,
        receipt.running_ns,
        receipt.final,
        receipt.started_wall_ns,
        receipt.at_wall_ns,
        receipt.end_reason,
    )


def signed_receipts(data_dir: Path, workload_id: str, identity: Path | None = None) -> list[SignedReceipt]:
    """Every receipt that the Master keeps of a workload, in order, each signature checked by the host's own key."""
    public = public_key(identity or data_dir / "agent" / "identity")
    query = "SELECT sealed FROM receipts WHERE workload_id = ? ORDER BY number"
    return [open_receipt(row["sealed"], public) for row in rows(data_dir, query, workload_id)]


def _passed_ns(line: Mapping[str, Any]) -> int:
    """Returns how much of a host's signed time may be charged by the Master's own clock: up to ten seconds after the
    end that was wished for, and of each silence a minute."""
    start_ns = line["runs_from_ns"] or line["lease_from_ns"]
    passed_ns = line["seen_at_ns"] - start_ns - line["silent_ns"] + 2 * 10**9
    return max(0, passed_ns if line["cut_at_ns"] is None else min(passed_ns, line["cut_at_ns"] - start_ns))


def billing_flaws(data_dir: Path, cluster_id: str, identities: Mapping[str, Path] | None = None) -> list[str]:
    """Why this cluster's bill is not what its signed receipts say; empty when it is, to the last nanosecond.

    identities: the folder with the keys of each host, by its id; else those of this machine's own host.
    """
    found = rows(data_dir, "SELECT * FROM rentals WHERE cluster_id = ?", cluster_id)
    if len(found) != 1:
        return [f"{len(found)} rentals of {cluster_id}"]
    rental, flaws = found[0], []
    owed = 0
    for line in rows(data_dir, "SELECT * FROM rental_lines WHERE rental_id = ?", rental["rental_id"]):
        receipts = signed_receipts(data_dir, line["workload_id"], (identities or {}).get(line["host_id"]))
        longest = max((receipt.running_ns for receipt in receipts), default=0)
        if line["signed_ns"] != longest:
            flaws.append(f"{line['workload_id']}: billed {line['signed_ns']} ns, signed {longest} ns")
        if receipts and not (receipts[-1].is_final and receipts[-1].running_ns == longest):
            flaws.append(f"{line['workload_id']}: does not end at its last signed second")
        if [one.running_ns for one in receipts] != sorted(one.running_ns for one in receipts):
            flaws.append(f"{line['workload_id']}: running time went back")
        lived_ns = max((one.signed_wall_ns - one.started_wall_ns for one in receipts), default=0)
        if longest > lived_ns + 10**9:
            flaws.append(f"{line['workload_id']}: {longest} ns running in {lived_ns} ns of life")
        owed += line["price_per_hour"] * min(longest, _passed_ns(line)) // NS_PER_HOUR
    if rental["state"] != "closed":
        flaws.append(f"the rental is {rental['state']}")
    if rental["charged"] != owed:
        flaws.append(f"charged {rental['charged']} microcents, owed {owed}")
    return flaws


# --- what runs -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Running:
    """One process as the kernel tells it; pid and start name it for good."""

    pid: int
    parent: int
    start_ticks: int
    argv: tuple[str, ...]


def processes() -> Iterator[Running]:
    """Every live process that still has its command line."""
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            fields = (path / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()
            argv = (path / "cmdline").read_bytes().rstrip(b"\0").decode(errors="replace").split("\0")
        except OSError:
            continue
        if fields[0] not in "ZX" and argv != [""]:
            yield Running(int(path.name), int(fields[1]), int(fields[19]), tuple(argv))


def naming(text: str) -> list[Running]:
    """Processes whose command line holds this text (a data directory: its daemons, shims and workloads)."""
    return [one for one in processes() if any(text in word for word in one.argv)]


def workload_processes(marker: str) -> list[Running]:
    """The shells that were asked for with this marker as an argument, without the wrappers around them.

    A shell's child has the shell's own command line until it becomes another program: those are left out.
    """
    found = [one for one in processes() if one.argv[0].endswith("sh") and marker in one.argv[1:]]
    shells = {one.pid for one in found}
    return [one for one in found if one.parent not in shells]


def containers(host_id: str, label: str = "windrow.host") -> list[str]:
    """Every container, running or not, that carries this label of this host."""
    words = ["docker", "ps", "-aq", "--no-trunc", "--filter", f"label={label}={host_id}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DOCKER_S, check=True)
    return done.stdout.split()


def volumes(host_id: str) -> list[str]:
    """Every volume that is this host's."""
    words = ["docker", "volume", "ls", "--quiet", "--filter", f"label=windrow.host={host_id}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DOCKER_S, check=True)
    return done.stdout.split()


# --- telemetry -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Produced:
    """The telemetry that an agent's spool holds or held: more than was ever acknowledged, for it sends from there."""

    host_id: str
    keys: set[Key] = field(default_factory=set)


def produced(agent_dir: Path) -> Produced:
    """Read a spool from the disk, running or not. What was acknowledged stays ten minutes: short tests see it all."""
    host_id = json.loads((agent_dir / "identity" / "identity.json").read_text())["id"]
    answer = Produced(host_id)
    for _, payload in read_log(OsDisk(), str(agent_dir / "spool" / "telemetry"), None):
        record = link_pb2.Record.FromString(payload[8:])
        answer.keys.add((host_id, bytes(record.origin_boot), record.origin_sequence))
    return answer


@dataclass(frozen=True, slots=True)
class Stored:
    """One record of the Master's log."""

    key: Key
    kind: str
    body: bytes


def log_records(data_dir: Path) -> Iterator[Stored]:
    """The Master's telemetry log over all its terms."""
    for folder in sorted((data_dir / "log").glob("[0-9]*")):
        for _, payload in read_log(OsDisk(), str(folder), None):
            # Version, kind, arrival, boot, sequence, length of the host's id, the id, the body (telemetry/record.py).
            sequence = int.from_bytes(payload[26:34], "little")
            body_at = 36 + int.from_bytes(payload[34:36], "little")
            key = (payload[36:body_at].decode(), payload[10:26], sequence)
            yield Stored(key, link_pb2.Kind.Name(payload[1]), payload[body_at:])


def stored(data_dir: Path) -> Counter[Key]:
    """How often each telemetry record is in the Master's log."""
    return Counter(one.key for one in log_records(data_dir))


def history_gaps(data_dir: Path) -> list[str]:
    """Returns the places where the records of a host in the Master's log are not one after the other, or tell of a
    loss."""
    numbers: dict[tuple[str, bytes], set[int]] = {}
    flaws = []
    for one in log_records(data_dir):
        host, boot, number = one.key
        numbers.setdefault((host, boot), set()).add(number)
        flaws += [f"{host} told of a gap"] if one.kind == "KIND_GAP" else []
    return flaws + [
        f"{host}: {len(found)} records up to number {max(found)}"
        for (host, _), found in numbers.items()
        if len(found) != max(found)
    ]
