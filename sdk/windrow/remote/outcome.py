"""The outcome of a call, as a value or as an exception here."""

import asyncio
import builtins
import re
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

from windrow.errors import (
    RemoteError,
    RemoteTraceback,
    ResultLost,
    RunCancelled,
    RunDied,
    RunTimedOut,
    UntrustedResult,
)
from windrow.remote.pickles import Reader
from windrow.remote.session import Ended

ENDS = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
"""The exceptions that end this program, its tasks or its loops: not for a host to raise."""
_TREE = re.compile(r"(?<![^\"\s])[^\"\s]*/\.windrow/trees/[0-9a-f]{32}")


def value_of(ended: Ended, reader: Reader, root: Path | None) -> Any:
    """Returns the function's value; raises what it raised, or a FunctionError. root: of our files, for the
    traceback."""
    record = ended.record
    status, message = str(record.get("status")), str(record.get("message") or "")
    match status:
        case "returned":
            return _again(str(record.get("kind") or ""), _loaded(ended, reader))
        case "raised":
            error = _error(ended, reader, record, message)
            trace = str(record.get("traceback") or "")
            raise error from RemoteTraceback(_TREE.sub(lambda _: str(root), trace) if root is not None else trace)
        case "cancelled":
            raise RunCancelled("The call was cancelled.")
        case "timed_out":
            raise RunTimedOut("The call did not end within its time limit, and was ended.")
        case "unpicklable" | "too_large":
            raise ResultLost(message)
        case _:
            raise RunDied(message or f"The call ended as {status!r}.")


def _again(kind: str, value: Any) -> Any:
    """The value; of a generator, which ran to its end there, one that gives the same items."""
    if not kind:
        return value
    if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[0], list):
        raise ResultLost("The host says that a generator's items came, and they did not.")
    return _given(*value) if kind == "generator" else _given_later(value[0])


def _given(items: list[Any], returned: Any) -> Generator[Any, None, Any]:
    yield from items
    return returned


async def _given_later(items: list[Any]) -> AsyncGenerator[Any]:
    for item in items:
        yield item


def _loaded(ended: Ended, reader: Reader) -> Any:
    try:
        return reader.load(ended.data)
    except UntrustedResult:
        raise
    except Exception as error:
        raise ResultLost(
            f"The result cannot be unpickled here: {type(error).__name__}: {error}. Is a module that it needs "
            "only on the host?"
        ) from error


def _error(ended: Ended, reader: Reader, record: dict[str, Any], message: str) -> BaseException:
    name = str(record.get("type"))
    if ended.data:
        try:
            found = reader.load(ended.data)
            if isinstance(found, BaseException) and (reader.trusts_host or not isinstance(found, ENDS)):
                return found
        except Exception:
            return RemoteError(name, message)
    kind = getattr(builtins, name.removeprefix("builtins."), None)
    if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == "builtins":
        try:
            return kind(message)
        except Exception:
            return RemoteError(name, message)
    return RemoteError(name, message)
