"""Secrets that are planted or found in a running market, and every place they must not turn up in.

`tests.support.stack.stack` ends every test with `leaks`: command lines and environments of all processes, and every
file of the data directory but those that hold secrets by their names: logs, what `windrow up` printed, core files,
databases, the history, spools and journals. `in_database` looks through the rows of a database on a server.
"""

import base64
import contextlib
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

LINE_MIN = 24
"""Shorter pieces of a key's text could stand anywhere by chance."""
END = 8
BITS = 20
PIECE = 1 << 20
SECRET_FILES = (".key", "identity.json", "cli.json", "tokens", "token")
DEADLINE_S = 60.0


@dataclass
class Canaries:
    """Secrets by a name for people; each as the byte strings it could be written as."""

    found: dict[str, set[bytes]] = field(default_factory=dict)
    _index: "_Index | None" = field(default=None, init=False, repr=False, compare=False)

    def add(self, name: str, secret: str | bytes) -> None:
        """Look for this one, in each way that it is likely to be written."""
        self._index = None
        raw = secret.encode() if isinstance(secret, str) else secret
        forms = {raw, raw.hex().encode(), base64.b64encode(raw).rstrip(b"=")}
        if isinstance(secret, bytes):
            forms.add(repr(raw)[2:-1].encode())
        self.found.setdefault(name, set()).update(form for form in forms if len(form) >= LINE_MIN)

    def add_pem(self, name: str, text: str) -> None:
        """Look for every line of a private key."""
        for block in re.findall(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END", text, re.DOTALL):
            for line in block.split():
                self.add(name, line)

    def in_bytes(self, data: bytes) -> list[str]:
        """Names of those that stand in these bytes: one pass for all together, since 200 hosts have thousands."""
        if self._index is None:
            self._index = _Index(self.found)
        return sorted(self._index.names_in(data))


class _Index:
    """Secrets by their last bytes, which chance has made, where the first may be the same for every key of a kind."""

    def __init__(self, found: Mapping[str, set[bytes]]) -> None:
        self._by_end: dict[bytes, list[tuple[str, bytes]]] = {}
        for name, forms in found.items():
            for form in forms:
                self._by_end.setdefault(form[-END:], []).append((name, form))
        self._may_end = np.zeros(1 << BITS, dtype=bool)
        self._may_end[_bits(np.frombuffer(b"".join(self._by_end), dtype=np.uint64))] = True

    def names_in(self, data: bytes) -> set[str]:
        """Those that stand in these bytes."""
        found: set[str] = set()
        last = before = b""
        for start in range(0, len(data) - END + 1, PIECE):
            text = data[start : start + PIECE + END - 1]
            if text == last == before:
                continue  # a ballast: what could end in here has ended in the two that were the same
            before, last = last, text
            piece = np.frombuffer(text, dtype=np.uint8)
            words = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(piece, END)).view(np.uint64).ravel()
            for at in np.flatnonzero(self._may_end[_bits(words)]):
                end = start + int(at) + END
                known = self._by_end.get(data[end - END : end], ())
                found |= {name for name, form in known if data.endswith(form, 0, end)}
        return found


def _bits(words: "np.ndarray[Any, np.dtype[np.uint64]]") -> "np.ndarray[Any, np.dtype[np.uint64]]":
    """A few bits of each word, well mixed: most words of a file fall out by them alone."""
    return (words * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - BITS)


def collect(data_dir: Path) -> Canaries:
    """Every secret that lies in the files of this market."""
    canaries = Canaries()
    for path in below(data_dir):
        if not path.name.endswith(SECRET_FILES) or not path.is_file() or path.is_symlink():
            continue
        try:
            name, data = str(path.relative_to(data_dir)), path.read_bytes()
        except FileNotFoundError:
            continue
        if b"PRIVATE KEY-----" in data:
            text = json.loads(data)["tls_key_pem"] if path.suffix == ".json" else data.decode()
            canaries.add_pem(name, text)
        elif path.suffix == ".key":
            canaries.add(name, data)
        elif path.name == "cli.json":
            canaries.add(name, str(json.loads(data).get("token") or ""))
        else:
            for line in data.decode(errors="replace").split():
                canaries.add(name, line)
    return canaries


def plant(canaries: Canaries, url: str, token: str) -> None:
    """Have this Master make one of each secret, use it, and be given wrong ones; a Master that is down makes none."""
    with httpx2.Client(base_url=f"{url}/api/v1", timeout=DEADLINE_S) as client, contextlib.suppress(httpx2.HTTPError):
        plant_over(canaries, client, token)


def plant_over(canaries: Canaries, client: Any, token: str) -> None:
    """The same over a client (httpx2's or Starlette's) whose base is the API."""
    bearer = {"Authorization": f"Bearer {token}"}
    made = client.post("/tokens", json={"name": "canary"}, headers=bearer).json()["token"]
    canaries.add("planted token", made)
    joining = client.post("/join-tokens", json={}, headers=bearer).json()["join_token"]
    canaries.add("planted join token", joining)
    signed_in = client.post("/session", json={"token": made})
    session = signed_in.json()["secret"]
    canaries.add("planted session", session)
    wrong = "wt_" + "Canary0123456789" * 3
    canaries.add("wrong token", wrong)
    client.post("/session", json={"token": wrong})
    client.get("/me", headers={"Authorization": f"Bearer {wrong}"})
    client.get(f"/hosts/{wrong}", headers={"Authorization": f"Basic {wrong}"})
    client.post("/join", json={"join_token": joining, "tls_csr_pem": "x", "sign_public": "x", "proof": "x"})
    client.post("/tokens", json={"name": 7, "token": made}, headers=bearer)
    client.get("/me", headers={"Cookie": f"windrow_session={session}"})
    client.delete("/session", headers={"Authorization": f"Bearer {session}"})


def below(data_dir: Path) -> list[Path]:
    """Every file and folder there, in order; those that go while we look are passed over."""
    return sorted(Path(top) / name for top, folders, files in os.walk(data_dir) for name in (*folders, *files))


def leaks(canaries: Canaries, pids: Iterable[int], data_dir: Path) -> list[str]:
    """Returns the places in which a secret was found, one sentence each; empty is what every test wants."""
    return leaks_of(canaries, pids) + _named(canaries, _files(data_dir))


def leaks_of(canaries: Canaries, pids: Iterable[int]) -> list[str]:
    """The same in these processes alone, while they run."""
    return _named(canaries, _processes(pids))


def _named(canaries: Canaries, places: Iterable[tuple[str, bytes]]) -> list[str]:
    return [f"{name} stands in {where}" for where, data in places for name in canaries.in_bytes(data)]


def _processes(pids: Iterable[int]) -> Iterator[tuple[str, bytes]]:
    for pid in pids:
        for part in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                yield f"/proc/{pid}/{part}", Path(f"/proc/{pid}/{part}").read_bytes()


def _files(data_dir: Path) -> Iterator[tuple[str, bytes]]:
    """Returns the files that lie there and are not named as secrets, and the logs beside them; what a renter put into a
    workload's own folder is the renter's."""
    found = [path for path in below(data_dir) if not _is_renters(path.relative_to(data_dir))]
    for path in sorted({*data_dir.parent.glob("*.log"), *found}):
        if path.is_file() and not path.is_symlink() and not path.name.endswith(SECRET_FILES):
            with contextlib.suppress(OSError):
                yield str(path), path.read_bytes()


def _is_renters(inside: Path) -> bool:
    if inside.parts[-2:] == ("process", "bin"):
        return True  # links to the interpreter, which workloads run under a user of their own
    return any(part.startswith("workload_") for part in inside.parts[:-1])


def in_database(canaries: Canaries, connection: Any) -> list[str]:
    """Returns the rows of a database in which a secret stands, one sentence each. connection: psycopg's, or
    sqlite3's."""
    is_sqlite = isinstance(connection, sqlite3.Connection)
    named = "SELECT name FROM sqlite_master WHERE type = 'table'"
    if not is_sqlite:
        named = "SELECT tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    found = []
    for (table,) in connection.execute(named).fetchall():
        cells = (cell for row in connection.execute(f'SELECT * FROM "{table}"') for cell in row)
        text = b"\0".join(bytes(cell) if isinstance(cell, bytes | memoryview) else str(cell).encode() for cell in cells)
        found += [f"{name} stands in the table {table}" for name in canaries.in_bytes(text)]
    return found


def open_to_others(data_dir: Path) -> list[str]:
    """Folders and secret files of this market that another user of the machine could read.

    What a workload makes inside its own folder, which is closed, is as the renter wants it.
    """
    found = []
    for path in [data_dir, *below(data_dir)]:
        inside = path.relative_to(data_dir)
        if path.is_symlink() or _is_renters(inside):
            continue
        with contextlib.suppress(FileNotFoundError):
            mode = path.stat().st_mode & 0o777
            is_secret = path.is_dir() or path.name.endswith((*SECRET_FILES, ".sqlite3", ".anchor", ".log"))
            if is_secret and mode & 0o077:
                found.append(f"{inside} is {mode:o}")
    return found
