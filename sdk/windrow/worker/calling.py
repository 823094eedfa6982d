"""In the process of a call: find the function, read its arguments, run it, and write what it returned or raised."""

import asyncio
import contextlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import os
import pickle
import signal
import sys
import traceback
import types
from typing import IO, Any, Final

from windrow.worker import config, engines
from windrow.worker.frames import BODY_BYTES_MAX

PROTOCOL: Final = 5
TRACE_CHARACTERS_MAX: Final = 24_000
MESSAGE_CHARACTERS_MAX: Final = 4_000
NAME_CHARACTERS_MAX: Final = 500
BYTES_A_CHARACTER: Final = 3
"""Of these on average, as JSON, which escapes by up to twelve: all of an outcome is one packet."""

SKELETON: Final = "_make_skeleton_"
"""The functions of cloudpickle that make a class of what came by value begin so."""
ITERATORS: Final = (types.GeneratorType, map, filter, zip, enumerate)
"""What gives its items once, and cannot be sent as it is."""

_entry: dict[str, Any] = {}
"""The code that this process has loaded: the module of the function, where there is one."""


class _TooLarge(Exception):
    pass


class _Capped:
    """A file that takes no more than may be returned."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._left = file, BODY_BYTES_MAX

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._left -= size
        if self._left < 0:
            raise _TooLarge
        self._file.write(data)
        return size


_brought: dict[type, str] = {}
"""The classes that came by value, and their keys: they go back by these, since the client has them."""


def class_key(name: str, args: tuple[Any, ...]) -> str:
    """The key of a class that goes by value; it does not take the names around it along. args: of its skeleton, where
    the last but one is an id: several classes of one name may go, and `dataclass(slots=True)` makes two."""
    return f"{name} {args[-2]}"


def brought_class(key: str) -> type:
    """The class of this key that came by value; the client reads this name in a result by its own means."""
    return next(kind for kind, own in _brought.items() if own == key)


class _Result(pickle.Pickler):
    """Writes what is found by names."""

    def reducer_override(self, obj: Any) -> Any:
        return (brought_class, (_brought[obj],)) if isinstance(obj, type) and obj in _brought else NotImplemented


class _Arguments(pickle.Unpickler):
    """Reads arguments; `__main__` of the client's script is the module of that script here."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("cloudpickle.") and name.startswith(SKELETON):
            return _noting(super().find_class(module, name))
        found = _entry.get("module") if module == "__main__" and _entry.get("is_main") else None
        if found is None:
            return super().find_class(module, name)
        for part in name.split("."):
            found = getattr(found, part)
        return found


def _noting(make: Any) -> Any:
    """The same function; the class that it makes is known to have come by value."""

    def made(*args: Any) -> Any:
        kind = make(*args)
        _brought[kind] = class_key(kind.__name__, args)
        return kind

    return made


def load(message: dict[str, Any]) -> dict[str, Any] | None:
    """Import the module of the function, if it has one; returns how it failed, if it did."""
    if message["tree"]:
        sys.path.insert(0, message["tree"])
        config.find_modules_in(message["tree"])
        importlib.invalidate_caches()
    try:
        _entry["is_main"] = message["is_main"]
        _entry["module"] = _module(message) if message["module"] else None
    except BaseException as error:
        return {**_raised(error), "status": "raised", "while": "import"}
    return None


def _module(message: dict[str, Any]) -> Any:
    """The module by its name, or a script by its file where no name would find it."""
    if not message.get("file"):
        return importlib.import_module(message["module"])
    loader = importlib.machinery.SourceFileLoader(message["module"], os.path.join(message["tree"], message["file"]))
    spec = importlib.util.spec_from_loader(message["module"], loader)
    assert spec is not None
    module = sys.modules[message["module"]] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def call(job: dict[str, Any]) -> dict[str, Any]:
    """Run one call; what it returned or raised is in the file `result`, and how it went is returned."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with contextlib.suppress(OSError):
            os.chdir(job["folder"])
        function, args, kwargs = _read(job)
        with engines.joined(job.get("part")):
            answer = function(*args, **kwargs)
            if inspect.iscoroutine(answer):
                answer = asyncio.run(answer)
            kind, answer = _items(answer)
        outcome = {**_returned(answer, job["result"]), "kind": kind}
    except KeyboardInterrupt as error:
        outcome = {**_raised(error), "status": "cancelled"}
    except BaseException as error:
        outcome = {**_raised(error), "status": "raised"}
        write_raised(error, job["result"])
    with contextlib.suppress(BaseException):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
    return {**outcome, "do": "done"}


def _items(answer: Any) -> tuple[str, Any]:
    """A generator cannot travel, what it gives can: its items and what it returns. With "" any other value as it is."""
    if isinstance(answer, ITERATORS):
        items: list[Any] = []

        def whole() -> Any:
            items.append((yield from answer))

        given = list(whole())
        return "generator", (given, items[0])
    if inspect.isasyncgen(answer):

        async def gathered() -> list[Any]:
            return [item async for item in answer]

        return "async generator", (asyncio.run(gathered()), None)
    return "", answer


def _read(job: dict[str, Any]) -> tuple[Any, Any, Any]:
    with open(job["args"], "rb") as file:
        if not job["name"]:
            function, args, kwargs = _Arguments(file).load()
            return function, args, kwargs
        args, kwargs = _Arguments(file).load()
    function = _entry["module"]
    for part in job["name"].split("."):
        function = getattr(function, part)
    return getattr(function, "__windrow_local__", function), args, kwargs


def _returned(answer: Any, path: str) -> dict[str, Any]:
    try:
        _write(answer, path)
    except _TooLarge:
        text = f"The result is larger than {BODY_BYTES_MAX >> 20} MiB. Write it to a file or a store, and return where."
        return {"status": "too_large", "message": text}
    except BaseException as error:
        text = f"The result, of type {_name(type(answer).__name__)}, cannot be pickled: {_message(error)}"
        return {"status": "unpicklable", "message": text}
    return {"status": "returned"}


def _write(value: Any, path: str) -> None:
    try:
        with open(path, "wb") as file:
            (_Result if _brought else pickle.Pickler)(_Capped(file), PROTOCOL).dump(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        import cloudpickle

        with open(path, "wb") as file:

            class Whole(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
                def reducer_override(self, obj: Any) -> Any:
                    found = _Result.reducer_override(self, obj)
                    return super().reducer_override(obj) if found is NotImplemented else found

            Whole(_Capped(file), PROTOCOL).dump(value)


def write_raised(error: BaseException, path: str) -> None:
    """Writes the exception that was raised; where that is too large the same with less in it, and where it cannot be
    pickled nothing: the client then has its name, its message and its traceback."""
    try:
        try:
            _write(error.with_traceback(None), path)
        except _TooLarge:
            _write(_cut(error), path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _cut(error: BaseException) -> BaseException:
    """One of the same type with what fits of its arguments, and a note that says so."""
    made = type(error).__new__(type(error))
    made.args = tuple(map(_shortened, error.args))
    made.add_note(f"[windrow: what was raised is larger than {BODY_BYTES_MAX >> 20} MiB, and this is not all of it]")
    return made


def _shortened(argument: Any) -> Any:
    match argument:
        case str():
            return _both_ends(argument, MESSAGE_CHARACTERS_MAX, "this text")
        case bytes():
            return argument[:MESSAGE_CHARACTERS_MAX]
        case None | bool() | int() | float():
            return argument
        case _:
            return f"[windrow: of type {_name(type(argument).__name__)}, left out]"


def _raised(error: BaseException) -> dict[str, Any]:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    name = _name(f"{type(error).__module__}.{type(error).__qualname__}")
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except BaseException:  # what it says of itself, its notes for one, fails in turn
        text = "".join([*traceback.format_tb(trace), f"{name}: {_message(error)}\n"])
    return {
        "type": name,
        "message": _message(error),
        "traceback": _both_ends(text, TRACE_CHARACTERS_MAX, "this traceback"),
    }


def _both_ends(text: str, most: int, what: str) -> str:
    """A text of more than `most` characters, or that JSON makes too long: how it began and how it ended, and how much
    was between them."""
    half, short = min(most, len(text)) // 2, text
    if len(text) > most:
        short = _without_middle(text, half, what)
    while len(json.dumps(short)) > most * BYTES_A_CHARACTER:
        half //= 2
        short = _without_middle(text, half, what)
    return short


def _without_middle(text: str, half: int, what: str) -> str:
    left_out = max(0, len(text) - 2 * half)
    return f"{text[:half]}\n[windrow: {left_out} characters of {what} were left out here]\n{text[-half:]}"


def _message(error: BaseException) -> str:
    try:
        return _both_ends(str(error), MESSAGE_CHARACTERS_MAX, "this message")
    except BaseException:
        return f"{_name(type(error).__name__)} whose message cannot be made"


def _name(of_a_type: str) -> str:
    return of_a_type[:NAME_CHARACTERS_MAX]
