"""Explains why a database cannot be opened at the start, in a sentence with the way out instead of a library's
traceback."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from windrow_proto.errors import StorageFailed, WindrowError

REASON_CHARS_MAX: Final = 300
SQLITE_CORRUPT: Final = 11
SQLITE_NOTADB: Final = 26
_REFUSALS: Final = ("authentication failed", "no pg_hba.conf entry", "no password supplied", "permission denied")
_SETTING: Final = "WINDROW_DATABASE_URL (or the file that WINDROW_DATABASE_URL_FILE names)"


class DatabaseDamaged(StorageFailed):
    """The database is there, and is not what was written: only a person helps."""


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Raises StorageFailed, with what was met and what to do, for everything that opening a database may meet."""
    try:
        yield
    except WindrowError:
        raise
    except (SQLAlchemyError, OSError) as error:
        if is_damage(error):
            raise DatabaseDamaged(
                f"The database {url.removeprefix('sqlite:///')} is damaged: {_reason(error)}. Nothing was changed.",
                subject="database",
            ) from error
        raise StorageFailed(_sentence(url, error), subject="database") from error


def is_damage(error: BaseException) -> bool:
    """Return whether SQLite says that what it reads is not what was written."""
    code = getattr(error.orig, "sqlite_errorcode", None) if isinstance(error, DBAPIError) else None
    return isinstance(code, int) and code & 0xFF in (SQLITE_CORRUPT, SQLITE_NOTADB)


def own_folder(path: Path) -> None:
    """Make a folder that this process can write. Raises StorageFailed with the way out."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_writable = os.access(path, os.W_OK | os.X_OK)
        reason = "it cannot be written"
    except OSError as error:
        is_writable, reason = False, _reason(error)
    if not is_writable:
        raise StorageFailed(
            f"The folder {path} cannot be used: {reason}. Give it to user {os.getuid()}, or choose another "
            "with --data-dir (or WINDROW_DATABASE_URL, if it holds the database).",
            subject=str(path),
        )


def shown(url: str) -> str:
    """A database's URL without password and options, where one may stand as well."""
    try:
        return make_url(url).set(query={}).render_as_string(hide_password=True)
    except ArgumentError:
        return "whose URL cannot be read"


def _sentence(url: str, error: Exception) -> str:
    reason = _reason(error)
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        return (
            f"The database {path} cannot be used: {reason}. {path.parent} has to be a folder that user {os.getuid()} "
            "may write, on a disk with room; give its owner, or choose another with --data-dir."
        )
    if any(words in reason for words in _REFUSALS):
        return f"The database {shown(url)} refuses this Master: {reason}. Correct user and password in {_SETTING}."
    return (
        f"The database {shown(url)} cannot be used: {reason}. Start it, let this machine reach it, or correct "
        f"{_SETTING}; then start the Master again."
    )


def _reason(error: Exception) -> str:
    origin = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(origin, OSError) and origin.strerror:
        return f"{origin.strerror} ({origin.filename})" if origin.filename else origin.strerror
    text = " ".join(str(origin).split()) or type(origin).__name__
    return text[:REASON_CHARS_MAX].rstrip(".")
