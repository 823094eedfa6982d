"""Arguments and results as bytes. A result comes from somebody's machine: only plain data is made of it unasked."""

import enum
import io
import pickle
import sys
from pathlib import Path
from typing import Any, Final

from windrow.errors import CannotSend, UntrustedResult
from windrow.worker.frames import BODY_BYTES_MAX

PROTOCOL: Final = 5
_HARMLESS: Final = {
    "builtins": {
        "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "object", "range", "set", "slice",
        "str", "tuple", "bool",
    },
    "collections": {"OrderedDict", "defaultdict", "deque", "Counter"},
    "copyreg": {"_reconstructor", "__newobj__"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "ipaddress": {"IPv4Address", "IPv6Address"},
    "pathlib": {"Path", "PosixPath", "PurePosixPath", "PurePath"},
    "uuid": {"UUID", "SafeUUID"},
    "zoneinfo": {"ZoneInfo"},
    "_codecs": {"encode"},
    "numpy": {"ndarray", "dtype"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.core.numeric": {"_frombuffer"},
}  # fmt: skip
"""What these make is data, whatever they are given."""


def dump(value: Any, what: str, *, by_value: bool, is_main_sent: bool) -> bytes:
    """As bytes; what has no name to be found by there goes by value. Raises CannotSend.

    by_value: all of it. is_main_sent: names in `__main__` are found there.
    """
    try:
        data = b"" if by_value else _by_name(value)
        if not data or (b"__main__" in data and not is_main_sent):
            import cloudpickle  # late: most calls need none of it

            data = cloudpickle.dumps(value, PROTOCOL)
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


class Reader:
    """Makes objects of what came back. root: our own code, whose classes are made; main: what the worker calls our
    `__main__`; trusts_host: make whatever the host says, which may run any code here."""

    def __init__(self, root: Path | None, main: str | None, trusts_host: bool) -> None:
        self._root, self._main, self._trusts_host = root, main, trusts_host

    def load(self, data: bytes | bytearray) -> Any:
        """The object; raises UntrustedResult, and anything that the object's own making raises."""
        return _Unpickler(data, self.find).load()

    def find(self, module: str, name: str) -> Any:
        """What a pickle names; raises UntrustedResult."""
        if self._main is not None and module == self._main:
            module = "__main__"
        if (module, name) == ("builtins", "getattr") and not self._trusts_host:
            return _member
        if not self._trusts_host and not self._is_allowed(module, name):
            raise _untrusted(f"{module}.{name}")
        return _find(module, name)

    def _is_allowed(self, module: str, name: str) -> bool:
        if name in _HARMLESS.get(module, ()):
            return True
        if "." in name:
            return False
        loaded = sys.modules.get(module)
        found = getattr(loaded, name, None)
        if not isinstance(found, type) or found.__module__ != module:
            return False
        if issubclass(found, BaseException):
            return True
        file = getattr(loaded, "__file__", None)
        return self._root is not None and file is not None and Path(file).resolve().is_relative_to(self._root)


def _untrusted(what: str) -> UntrustedResult:
    return UntrustedResult(
        f"The result holds {what}, which is more than plain data: to make it here may run code that the host chose. If "
        "you trust this host as your own machine: windrow.cluster(..., trusts_host=True)."
    )


def _member(owner: Any, name: Any) -> Any:
    """In the place of getattr, by which Python 3.11.2 pickles members of enumerations, and for nothing else."""
    if not isinstance(owner, enum.EnumMeta) or not isinstance(name, str) or name not in owner.__members__:
        raise _untrusted("builtins.getattr")
    return owner.__members__[name]


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes | bytearray, find: Any) -> None:
        super().__init__(io.BytesIO(data))
        self._find = find

    def find_class(self, module: str, name: str) -> Any:
        return self._find(module, name)


class _Named(pickle.Unpickler):
    """Only for its way to find what has a name."""


def _find(module: str, name: str) -> Any:
    return _Named(io.BytesIO()).find_class(module, name)
