"""Arguments and results as bytes. A result comes from somebody's machine: only plain data is made of it unasked."""

import io
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from windrow.errors import CannotSend, UntrustedResult
from windrow.remote import unmade
from windrow.remote.code import is_installed
from windrow.remote.unpickling import BROUGHT, QUICK, Careful, is_of_python, is_plain, is_quick, member_of, untrusted
from windrow.worker.calling import SKELETON, class_key
from windrow.worker.frames import BODY_BYTES_MAX

PROTOCOL: Final = 5
TYPE_KWARGS: Final = 3
"""The place, among the arguments of cloudpickle's maker of classes, of the namespace that a class begins with."""


def dump(value: Any, what: str, brought: "Brought", *, by_value: bool, is_main_sent: bool) -> bytes:
    """As bytes; what has no name to be found by there goes by value. Raises CannotSend.

    by_value: all of it. is_main_sent: names in `__main__` are found there. brought: is given the classes that go by
    value, by the names under which they come back.
    """
    try:
        data = b"" if by_value else _by_name(value)
        if not data or (b"__main__" in data and not is_main_sent):
            data = _by_value(value, brought)
    except Exception as error:
        raise CannotSend(f"{what} cannot be pickled: {error}") from error
    if len(data) > BODY_BYTES_MAX:
        raise CannotSend(f"{what} are larger than {BODY_BYTES_MAX >> 20} MiB. Put them into a file or a store.")
    return data


def _by_name(value: Any) -> bytes:
    try:
        return pickle.dumps(value, PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return b""


def _by_value(value: Any, brought: "Brought") -> bytes:
    import cloudpickle  # late: most calls need none of it

    class Recording(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
        def reducer_override(self, obj: Any) -> Any:
            found = super().reducer_override(obj)
            if isinstance(obj, type) and isinstance(found, tuple) and found[0].__name__.startswith(SKELETON):
                brought[class_key(obj.__name__, found[1])] = obj
                if found[0] is cloudpickle.cloudpickle._make_skeleton_class:
                    found[1][TYPE_KWARGS].update(_slots(obj))
            return found

    file = io.BytesIO()
    Recording(file, PROTOCOL).dump(value)
    return file.getvalue()


def _slots(kind: type) -> dict[str, Any]:
    """The slots of a class, as an item of its namespace: cloudpickle makes the class without them, and its objects then
    come back with attributes in a `__dict__` that they do not have here."""
    found = vars(kind).get("__slots__")
    return {} if found is None or isinstance(found, Iterator) else {"__slots__": found}


Brought = dict[str, type]
"""Classes that went by value, by their keys."""
Sent = Callable[[], frozenset[Path]]
"""The files that the host has from us; asked only where a result names a class."""
NOTHING: Final[Sent] = frozenset


class Reader:
    """Makes objects of what came back; of classes of installed packages their attributes alone.

    sent: the files whose classes are made; main: what the worker calls our `__main__`; trusts_host: make whatever the
    host says, which may run any code here. brought: classes that went there by value, as those of a notebook do.
    """

    def __init__(self, sent: Sent, main: str | None, trusts_host: bool) -> None:
        self._sent, self._main, self.trusts_host = sent, main, trusts_host
        self.brought: Brought = {}
        self._class_of = self.brought_class  # one object: a reader knows what it was given by its id

    def load(self, data: bytes | bytearray) -> Any:
        """The object; raises UntrustedResult, and what the library says of bytes that are no pickle."""
        if self.trusts_host:
            return _Unpickler(data, self._named).load()
        if is_quick(data):
            try:
                return _Unpickler(data, _quick).load()
            except _NotQuick:
                pass
        try:
            return Careful(io.BytesIO(data), self.find).load()
        except UntrustedResult as refused:
            return unmade.read(data, self.find, refused)

    def find(self, module: str, name: str) -> Any:
        """Returns an object that a pickle of an untrusted host may name; raises UntrustedResult."""
        module = self._here(module)
        if (module, name) == ("builtins", "getattr"):
            return member_of
        if (module, name) == BROUGHT:
            return self._class_of
        if not is_plain(module, name) and not self._is_allowed(module, name):
            raise untrusted(f"{module}.{name}")
        return _find(module, name)

    def brought_class(self, key: object) -> type:
        """Returns the class that went to the host under this key; raises UntrustedResult for any other."""
        found = self.brought.get(key) if isinstance(key, str) else None
        if found is None:
            raise untrusted(f"the class {key!r:.100}, which this program did not send")
        return found

    def _named(self, module: str, name: str) -> Any:
        return self._class_of if (module, name) == BROUGHT else _find(self._here(module), name)

    def _here(self, module: str) -> str:
        return "__main__" if self._main is not None and module == self._main else module

    def _is_allowed(self, module: str, name: str) -> bool:
        """Python's own exceptions, and classes of files that were sent."""
        if "." in name:
            return False
        loaded = sys.modules.get(module)
        found = vars(loaded).get(name) if loaded is not None else None
        if not isinstance(found, type) or found.__module__ != module:
            return False
        if issubclass(found, BaseException) and is_of_python(module):
            return True
        file = getattr(loaded, "__file__", None)
        return file is not None and _is_code(path := Path(file).resolve()) and path in self._sent()


def _is_code(path: Path) -> bool:
    """True if a file is somebody's own, and not of a package that was installed, wherever the environment lies."""
    return not is_installed(path) and not {"site-packages", "dist-packages"} & set(path.parts)


class _NotQuick(Exception):
    """The pickle names more than the quick reader makes."""


def _quick(module: str, name: str) -> Any:
    if name not in QUICK.get(module, ()):
        raise _NotQuick
    return _find(module, name)


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes | bytearray, find: Any) -> None:
        super().__init__(io.BytesIO(data))
        self._find = find

    def find_class(self, module: str, name: str) -> Any:
        return self._find(module, name)


class _Named(pickle.Unpickler):
    """Only for its way to find what has a name."""


def _find(module: str, name: str) -> Any:
    return _Named(io.BytesIO(), fix_imports=False).find_class(module, name)
