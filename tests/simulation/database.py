"""SQLite on a disk that a test can cut the power of: a driver module for SQLAlchemy over apsw, on files in memory.

A write is durable once its file was synced. `Power.cut` throws away what was not, all of it or, by the seed, some of it
in any order, as a disk with a cache may. Tests only; held to the contract suite of the real store (tests/contract).
"""

import contextlib
import hashlib
import itertools
import marshal
import os
import random
import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import apsw
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from windrow_master.store.engine import CACHE_KIB, RECOVERED, STATEMENTS_KEPT, Engines, set_up
from windrow_master.store.migrate import MIGRATIONS, upgrade

SECTOR = 4096
SHAPING = ("CREATE", "ALTER ", "DROP T")
"""How statements begin that change what others return."""
READ, WRITE = "BEGIN /* to read */", "BEGIN IMMEDIATE /* to write */"
"""How transactions begin on the connection that reads and writes share. SQLite's own `query_only` would forget every
compiled statement each time it is set."""
READERS = frozenset({"SELECT", "WITH", "EXPLAIN", "PRAGMA", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"})
"""First words of what may be said in a transaction that only reads."""
_NUMBERS = itertools.count(1)
_EXCLUSIVE = ("PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL")
_CACHE = f"PRAGMA cache_size=-{CACHE_KIB}"


@dataclass(slots=True)
class MemoryFile:
    """One file: what is safe, and the writes and cuts since the last sync."""

    durable: bytearray = field(default_factory=bytearray)
    content: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        """Write at an offset; a hole before it reads as zeros."""
        _put(self.content, offset, data)
        self.pending.append((offset, data))

    def truncate(self, size: int) -> None:
        """Cut to a size."""
        del self.content[size:]
        self.pending.append((size, None))

    def sync(self) -> None:
        """Make everything so far safe."""
        for offset, data in self.pending:
            if data is None:
                del self.durable[offset:]
            elif len(self.durable) < offset:
                _put(self.durable, offset, data)
            else:
                self.durable[offset : offset + len(data)] = data
        self.pending.clear()

    def given_up(self) -> None:
        """A sync failed as it does on Linux: what was to be written is still seen, and no later sync writes it."""
        self.pending = [step for step in self.pending if step[1] is None]

    def lose(self, luck: random.Random | None) -> "MemoryFile":
        """Returns the file after a power cut: what was safe, with those pending steps that reached the platter by
        luck."""
        state = bytearray(self.durable)
        for offset, data in self.pending:
            if luck is None or luck.random() < 0.5:
                continue
            if data is None:
                del state[offset:]
            else:
                _put(state, offset, data)
        return MemoryFile(state, bytearray(state))


def _put(target: bytearray, offset: int, data: bytes) -> None:
    if len(target) < offset:
        target.extend(bytes(offset - len(target)))
    target[offset : offset + len(data)] = data


class Power(apsw.VFS):
    """A disk of one machine. refuse: the step (write or sync) from which on it fails, None while it works."""

    def __init__(self, files: dict[str, MemoryFile] | None = None) -> None:
        self.files: dict[str, MemoryFile] = files or {}
        self.steps = 0
        self.refuse: int | None = None
        self.ignores_sync = False
        self.name = f"power-{next(_NUMBERS)}"
        super().__init__(self.name, "")

    def cut(self, luck: random.Random | None = None) -> "Power":
        """Cut the power: unsynced steps are lost, or by `luck` each survives with even odds.

        Returns the disk as the next start finds it; whoever still holds this one open changes nothing on that.
        """
        self.refuse = None  # what the old machine does now meets no disk any more
        return Power({path: file.lose(luck) for path, file in self.files.items()})

    def worst(self) -> "Power":
        """Returns the least that a cut would leave; this one goes on."""
        return Power({path: file.lose(None) for path, file in self.files.items()})

    def step(self) -> None:
        """Count one write or sync, and fail at the appointed one."""
        self.steps += 1
        if self.refuse is not None and self.steps >= self.refuse:
            raise apsw.IOError("the disk failed")

    def take(self, growth_bytes: int) -> None:
        """A file is about to grow; here there is always space."""

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802 # SQLite's name
        path = name.filename() if isinstance(name, apsw.URIFilename) else (name or f"temp-{len(self.files)}")
        file = self.files.setdefault(path, MemoryFile())
        flags[1] = flags[0]
        return PowerFile(self, file)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        self.step()
        self.files.pop(name, None)

    def xAccess(self, name: str, flags: int) -> bool:  # noqa: N802
        return name in self.files

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name


class PowerFile:
    """SQLite's view of one open file."""

    def __init__(self, power: Power, file: MemoryFile) -> None:
        self._power = power
        self._file = file

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._file.content[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._power.step()
        file, end = self._file, offset + len(data)
        self._power.take(max(0, end - len(file.content)))
        kept = bytes(data)
        if len(file.content) < offset:
            file.write(offset, kept)
            return
        file.content[offset:end] = kept
        file.pending.append((offset, kept))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._power.step()
        self._file.truncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        try:
            self._power.step()
        except apsw.Error:
            self._file.given_up()
            raise
        if not self._power.ignores_sync:
            self._file.sync()

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._file.content)

    def xLock(self, level: int) -> None:  # noqa: N802
        return None

    def xUnlock(self, level: int) -> None:  # noqa: N802
        return None

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, operation: int, pointer: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return SECTOR

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return 0

    def xClose(self) -> None:  # noqa: N802
        return None


class Cursor:
    """A DB-API cursor over apsw."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._cursor = connection.raw.cursor()
        self._rows: list[tuple[Any, ...]] = []
        self.description: tuple[tuple[Any, ...], ...] | None = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self.arraysize = 1

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> "Cursor":
        """Run one statement and fetch all of it."""
        known = self._connection.columns.get(statement)
        if known and statement.startswith("SELECT"):
            return self._read(statement, parameters, known)
        self._connection.judge(statement)
        self.description, self._rows, is_new = known or None, [], known is None
        if is_new:
            self._cursor.exec_trace = self._begun
        before = self._connection.raw.total_changes()
        try:
            self._rows = list(self._cursor.execute(statement, tuple(parameters) or None))
        except apsw.Error as error:
            raise _translated(error) from error
        if is_new and not _is_shaping(statement):
            self._connection.columns[statement] = self.description or ()
        changed = self._connection.raw.total_changes() - before
        self.rowcount = changed if self.description is None or changed else -1
        self.lastrowid = self._connection.raw.last_insert_rowid()
        return self

    def _read(self, statement: str, parameters: Sequence[Any], columns: tuple[tuple[Any, ...], ...]) -> "Cursor":
        """Run a query whose columns are known: it changes nothing, and nobody asks what it changed."""
        self.description, self._rows, self.rowcount = columns, [], -1
        try:
            self._rows = list(self._cursor.execute(statement, tuple(parameters) or None))
        except apsw.Error as error:
            raise _translated(error) from error
        return self

    def _begun(self, cursor: apsw.Cursor, statement: str, _parameters: object) -> bool:
        # Asked here and not afterwards: a query without rows is over before anybody could ask it for its columns.
        found = tuple((name, declared, None, None, None, None, None) for name, declared in cursor.get_description())
        self.description = found or None
        if _is_shaping(statement):
            self._connection.columns.clear()
        return True

    def executemany(self, statement: str, many: Iterable[Sequence[Any]]) -> "Cursor":
        """Run one statement for each set of parameters."""
        total = 0
        for parameters in many:
            total += max(0, self.execute(statement, parameters).rowcount)
        self.rowcount = total
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row."""
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows."""
        count = size or self.arraysize
        taken, self._rows = self._rows[:count], self._rows[count:]
        return taken

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The other rows."""
        taken, self._rows = self._rows, []
        return taken

    def close(self) -> None:
        """Let go of the rows."""
        self._rows = []
        self._cursor.close(force=True)


def _is_shaping(statement: str) -> bool:
    return statement.lstrip()[:6].upper() in SHAPING


class Connection:
    """A DB-API connection over apsw; transactions are the caller's statements, as with isolation_level None.

    Two engines share one: where one of them has closed it, as a session that is lost, the next cursor opens it again.
    """

    isolation_level: str | None = None

    def __init__(self, path: str, vfs: str, pragmas: Sequence[str] = ()) -> None:
        self._path, self._vfs, self._pragmas = path, vfs, pragmas
        self._functions: list[tuple[str, Any, int, bool]] = []
        self.columns: dict[str, tuple[tuple[Any, ...], ...]] = {}
        """The layout of each statement's rows, by its text: asked for once. Empty: it has none."""
        self.is_reading = False
        self._open()

    def _open(self) -> None:
        self._is_closed = False
        self.raw = apsw.Connection(self._path, vfs=self._vfs, statementcachesize=STATEMENTS_KEPT)
        for pragma in self._pragmas:
            self.raw.execute(pragma).fetchall()
        for name, function, arity, deterministic in self._functions:
            self.raw.create_scalar_function(name, function, arity, deterministic=deterministic)

    def judge(self, statement: str) -> None:
        """Note which kind of transaction begins; raises what SQLite says of a write in one that only reads."""
        if statement in (READ, WRITE):
            self.is_reading = statement == READ
        elif self.is_reading and statement.split(None, 1)[0].upper() not in READERS:
            raise sqlite3.OperationalError("attempt to write a readonly database")

    @property
    def in_transaction(self) -> bool:
        """True if BEGIN was said and not ended."""
        return not self._is_closed and bool(self.raw.in_transaction)

    def cursor(self, *_: Any) -> Cursor:
        """A new cursor."""
        if self._is_closed:
            self._open()
        return Cursor(self)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Cursor:
        """Run one statement on a new cursor."""
        return self.cursor().execute(statement, parameters)

    def commit(self) -> None:
        """End the transaction, if there is one."""
        if self.in_transaction:
            self._say("COMMIT")

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""
        if self.in_transaction:
            self._say("ROLLBACK")

    def _say(self, words: str) -> None:
        try:
            self.raw.execute(words)
        except apsw.Error as error:
            raise _translated(error) from error

    def create_function(self, name: str, arity: int, function: Any, *, deterministic: bool = False) -> None:
        """Add an SQL function."""
        self._functions.append((name, function, arity, deterministic))
        self.raw.create_scalar_function(name, function, arity, deterministic=deterministic)

    def close(self) -> None:
        """Close; the file stays with its disk."""
        self._is_closed = True
        self.raw.close(True)


_KINDS: tuple[tuple[type[Exception], type[Exception]], ...] = (
    (apsw.ConstraintError, sqlite3.IntegrityError),
    (apsw.IOError, sqlite3.OperationalError),
    (apsw.FullError, sqlite3.OperationalError),
    (apsw.BusyError, sqlite3.OperationalError),
    (apsw.SQLError, sqlite3.OperationalError),
    (apsw.CorruptError, sqlite3.DatabaseError),
)

_CODES: dict[type[Exception], int] = {apsw.IOError: apsw.SQLITE_IOERR, apsw.FullError: apsw.SQLITE_FULL}
"""The error that SQLite would have given where the disk raised it."""


def _translated(error: apsw.Error) -> Exception:
    kind = next((ours for theirs, ours in _KINDS if isinstance(error, theirs)), sqlite3.OperationalError)
    made = kind(str(error))
    code = getattr(error, "extendedresult", None) or getattr(error, "result", None) or _CODES.get(type(error))
    if code is not None:
        made.sqlite_errorcode = code  # type: ignore[attr-defined]  # what the standard driver sets
    return made


def driver(power: Power) -> Any:
    """A DB-API module whose files are on this disk, for `create_engine(..., module=driver(power))`."""
    names = (
        "Error DatabaseError OperationalError IntegrityError ProgrammingError InterfaceError InternalError DataError"
    )
    names += " NotSupportedError Warning Binary PARSE_DECLTYPES PARSE_COLNAMES"
    module = SimpleNamespace(**{name: getattr(sqlite3, name) for name in names.split()})
    module.paramstyle, module.apilevel, module.threadsafety = "qmark", "2.0", 1
    module.sqlite_version_info = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    module.sqlite_version = apsw.sqlite_lib_version()
    module.connect = lambda path, **_: Connection(path, power.name)
    return module


def opened(power: Power, path: str = "/master.sqlite3") -> Connection:
    """The one connection to the database on this disk, set up as the store's: the twin's files have no shared memory,
    and no locks."""
    pragmas = (*_EXCLUSIVE, RECOVERED, "PRAGMA foreign_keys=ON", "PRAGMA temp_store=MEMORY", _CACHE)
    return Connection(path, power.name, pragmas)


def sharing_engines(power: Power, path: str = "/master.sqlite3") -> Engines:
    """The store's engines on this disk, on one connection.

    Reads and writes take turns, as they do with the store's inline executor; each says which it is when it begins.
    """
    module = driver(power)
    connection = opened(power, path)
    module.connect = lambda *_, **__: connection
    engines = []
    for begin in (WRITE, READ):
        engines.append(create_engine(f"sqlite:///{path}", module=module, poolclass=StaticPool))
        set_up(engines[-1], begin=begin, pragmas=())
    return Engines(*engines)


def migrated() -> Power:
    """A disk with an empty database of this version on it, as the first start of a Master would make it."""
    return Power({path: MemoryFile(bytearray(data), bytearray(data)) for path, data in _made_once().items()})


@cache
def _made_once() -> Mapping[str, bytes]:
    """It is the same each time, and making it takes a tenth of a short history, most of it to load Alembic: kept as
    bytecode is, beside this file's."""
    kept = Path(__file__).with_name("__pycache__") / f"empty-{_store_digest()}.database"
    with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
        return cast("Mapping[str, bytes]", marshal.loads(kept.read_bytes()))
    power = Power()
    engines = sharing_engines(power)
    upgrade(engines.writer)
    engines.dispose()
    made = {path: bytes(file.durable) for path, file in power.files.items()}
    if not sys.dont_write_bytecode:
        with contextlib.suppress(OSError), tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as draft:
            draft.write(marshal.dumps(made))
            draft.flush()
            os.replace(draft.name, kept)
    return made


def _store_digest() -> str:
    """Of all that an empty database is made from."""
    sources = sorted(MIGRATIONS.parent.rglob("*.py"))
    parts = (apsw.sqlite_lib_version().encode(), *(path.read_bytes() for path in (Path(__file__), *sources)))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]
