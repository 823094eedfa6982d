"""Reads a pickle that a stranger made: each step is one of a short list, and no code of a class is run.

A pickle is a program that calls, fills and patches what it names. Here it may make plain values, numpy arrays of plain
numbers, and objects of classes that the caller allows: those are made without `__init__`, their attributes are put in
place without `__setattr__`, and a class that insists on code of its own (`__new__`, `__setstate__`, `__del__`) is
refused. Classes, and members of enumerations, which a whole program shares, are never made or changed, and no few bytes
of a pickle take much memory or time. What Python itself looks through without a limit, until it crashes, has one here.
"""

import copyreg
import enum
import importlib
import io
import operator
import pickle
import re
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final
from zoneinfo import ZoneInfo

from windrow.errors import UntrustedResult
from windrow.remote.code import is_standard
from windrow.worker.calling import brought_class

Find = Callable[[str, str], Any]
"""Module and name -> what it names; raises UntrustedResult."""

BROUGHT: Final = (brought_class.__module__, brought_class.__qualname__)
"""The name by which a class that went to the host by value comes back."""
ARRAY_STATE: Final = 5
"""Of numpy: version, shape, dtype, is_fortran, the items."""
DTYPE_STATE: Final = 8
"""Of numpy: version, byte order, sub-array, names, fields, item size, alignment, flags; datetimes have one more."""
_DTYPE: Final = re.compile(r"[<>|=]?(b1|[iu][1248]|f(2|4|8|16)|c(8|16|32)|[SUV]\d{1,9}|[Mm]8|O8?)")
_SIMPLE: Final = frozenset({str, bytes, int, float, bool, type(None)})
"""The parts that exceptions of Python's own library are made of: nothing that they could call."""
_FRACTION: Final = re.compile(r"-?\d{1,4000}(/\d{1,4000})?")
_FLAGS: Final[Mapping[str, tuple[int, ...]]] = {"O": (63,), "U": (0, 8)}
"""The functions that numpy itself writes for objects and for texts; 0 for all others."""
_STRUCT_FLAGS: Final = (0, 16, 128, 144)
"""Without objects inside; 128 says that it is aligned."""
_UNITS: Final = frozenset(b"Y M W D h m s ms us ns ps fs as generic".split())

_CALLED: Final[Mapping[tuple[str, str], Callable[[tuple[Any, ...]], bool]]] = {
    ("builtins", "bytearray"): lambda args: (
        not args or (isinstance(args[0], bytes | str) and args[1:] in ((), ("latin-1",), ("latin1",), ("utf-8",)))
    ),
    ("builtins", "bytes"): lambda args: not args,
    ("builtins", "complex"): lambda args: all(isinstance(one, int | float) for one in args),
    ("builtins", "frozenset"): lambda args: all(isinstance(one, list | tuple | set) and are_keys(one) for one in args),
    ("builtins", "object"): lambda args: not args,
    ("builtins", "range"): lambda args: all(isinstance(one, int) for one in args),
    ("builtins", "set"): lambda args: all(isinstance(one, list | tuple | set) and are_keys(one) for one in args),
    ("builtins", "slice"): lambda args: not any(isinstance(one, slice) for one in args),
    ("collections", "Counter"): lambda args: all(isinstance(one, dict) for one in args),
    ("collections", "OrderedDict"): lambda args: not args,
    ("collections", "defaultdict"): lambda args: all(one is None or isinstance(one, type) for one in args),
    ("collections", "deque"): lambda args: all(isinstance(one, list | tuple | int | None) for one in args),
    ("datetime", "date"): lambda args: True,
    ("datetime", "datetime"): lambda args: True,
    ("datetime", "time"): lambda args: True,
    ("datetime", "timedelta"): lambda args: True,
    ("datetime", "timezone"): lambda args: True,
    ("decimal", "Decimal"): lambda args: all(isinstance(one, str) for one in args),
    ("fractions", "Fraction"): lambda args: all(isinstance(one, int) or _is_fraction(one) for one in args),
    ("ipaddress", "IPv4Address"): lambda args: all(isinstance(one, int) for one in args),
    ("ipaddress", "IPv6Address"): lambda args: all(isinstance(one, int) for one in args),
    ("pathlib", "Path"): lambda args: all(isinstance(one, str) for one in args),
    ("pathlib", "PosixPath"): lambda args: all(isinstance(one, str) for one in args),
    ("pathlib", "PurePath"): lambda args: all(isinstance(one, str) for one in args),
    ("pathlib", "PurePosixPath"): lambda args: all(isinstance(one, str) for one in args),
    ("uuid", "SafeUUID"): lambda args: True,
    ("zoneinfo", "ZoneInfo"): lambda args: all(isinstance(one, str) for one in args),
    ("_codecs", "encode"): lambda args: len(args) == 2 and args[1] in ("latin1", "latin-1"),
}
"""The callables that may be called, and their arguments."""
_NAMED: Final = {
    "builtins": {"bool", "dict", "float", "int", "list", "str", "tuple"},
    "copyreg": {"_reconstructor", "__newobj__"},
    "_operator": {"or_"},
    "numpy": {"ndarray", "dtype"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.core.numeric": {"_frombuffer"},
    "uuid": {"UUID"},
}
"""The names that are allowed besides, with a step of their own below or none."""
QUICK: Final = {
    "builtins": {"complex"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
}
"""The names in a pickle that the quick reader of the library may read: types that nothing can change, and that make
nothing large of something small."""
_MAKERS: Final[Mapping[type, tuple[type, ...]]] = {
    **dict.fromkeys((object, list, dict, set, bytearray, deque, OrderedDict, defaultdict), ()),
    int: (int,), float: (float,), complex: (int, float), str: (str,), bytes: (bytes,), tuple: (tuple,),
    frozenset: (list, tuple, set),
}  # fmt: skip
"""The classes whose `__new__` may make an object, and its arguments: any other may make classes, hooks or memory out of
numbers."""
KEY_PARTS_MAX: Final = 10_000
"""Of a key, where it is a tuple, with those in it: Python looks through all of them, again where one is met again."""
SAME_HASH_MAX: Final = 1_000
"""Keys of one dict or set that have one hash: Python compares each of them with all before it."""
_MODULUS: Final = sys.hash_info.modulus
"""Whole numbers below it have hashes of their own. Those of texts nobody knows, and few floats have the same one."""
DEEP: Final = (deque, defaultdict)
NESTED_MAX: Final = 100
"""Of those, and of numpy's arrays of objects, directly inside one another: Python has no limit at their end."""

_STEPS: Final[Mapping[int, bytes]] = {
    0: pickle.MARK + pickle.NONE + pickle.NEWTRUE + pickle.NEWFALSE + pickle.EMPTY_LIST + pickle.EMPTY_DICT
    + pickle.EMPTY_SET + pickle.EMPTY_TUPLE + pickle.APPEND + pickle.APPENDS + pickle.MEMOIZE + pickle.STACK_GLOBAL
    + pickle.REDUCE,
    1: pickle.PROTO + pickle.BININT1 + pickle.BINGET,
    2: pickle.BININT2,
    4: pickle.BININT + pickle.LONG_BINGET,
    8: pickle.BINFLOAT + pickle.FRAME,
}  # fmt: skip
"""Steps of today's protocols, by how many bytes follow."""
_HARMLESS: Final = frozenset({"__notes__", "__orig_class__"})
"""What Python itself puts among the attributes of an object."""
_TUPLES: Final = pickle.TUPLE + pickle.TUPLE1 + pickle.TUPLE2 + pickle.TUPLE3
_LONGS: Final = pickle.LONG1 + pickle.LONG4
_KEYED: Final = pickle.SETITEM + pickle.SETITEMS + pickle.ADDITEMS + pickle.FROZENSET
"""The same for those that make tuples, and those that look through keys."""
_RUN: Final = re.compile(
    b"(?s:%b){1,1000}+" % b"|".join(b"[%b].{%d}" % (re.escape(steps), size) for size, steps in _STEPS.items())
)
_COUNTED: Final[Mapping[int, int]] = {
    **dict.fromkeys(pickle.SHORT_BINUNICODE + pickle.SHORT_BINBYTES + pickle.LONG1, 1),
    **dict.fromkeys(pickle.BINUNICODE + pickle.BINBYTES + pickle.LONG4, 4),
    **dict.fromkeys(pickle.BINUNICODE8 + pickle.BINBYTES8, 8),
}
"""The same for those with a text or bytes behind them: how many bytes say how many follow."""


def is_quick(data: bytes | bytearray) -> bool:
    """True if the library's quick reader may read a pickle: its steps make no more than its bytes hold, no key is a
    tuple with tuples inside, and none a number whose hash many others can have."""
    at, tuples, has_keys = 0, 0, False
    while at < len(data) and not (has_keys and tuples > 1):
        if (run := _RUN.match(data, at)) is not None:
            at = run.end()
        elif (width := _COUNTED.get(data[at])) is not None:
            count, is_number = int.from_bytes(data[at + 1 : at + 1 + width], "little"), data[at] in _LONGS
            at += 1 + width + count
            if is_number and not _has_own_hash(int.from_bytes(data[at - count : at], "little", signed=True)):
                tuples = 2  # as odd a key as a tuple of tuples
        elif data[at] in _TUPLES or data[at] in _KEYED:
            tuples += data[at] in _TUPLES
            has_keys = has_keys or data[at] in _KEYED
            at += 1
        else:
            return data[at] == pickle.STOP[0]
    return False


def is_plain(module: str, name: str) -> bool:
    """True for what makes nothing but data."""
    return (module, name) in _CALLED or name in _NAMED.get(module, ())


def untrusted(what: str) -> UntrustedResult:
    """The error that refuses this, with the way out."""
    return UntrustedResult(
        f"The result holds {what}, which is more than plain data: to make it here may run code that the host chose. If "
        "you trust this host as your own machine: windrow.cluster(..., trusts_host=True)."
    )


def is_of_python(module: str) -> bool:
    """True if a module that is loaded is Python's own, and not somebody's of the same name."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return module.partition(".")[0] in sys.stdlib_module_names and (file is None or is_standard(Path(file).resolve()))


def _has_own_hash(key: Any) -> bool:
    """True if nobody can make many keys with the hash of this one."""
    kind = type(key)
    return -_MODULUS < key < _MODULUS if kind is int else kind in _SIMPLE


def are_keys(found: Collection[Any], hashes: Counter[int] | None = None) -> bool:
    """True if these can be keys of a dict or a set at a cost that has an end. hashes: of those that are in it."""
    counted: Counter[int] = Counter() if hashes is None else hashes
    return _are_flat(found) and _differ(found, counted)


def _differ(keys: Iterable[Any], counted: Counter[int]) -> bool:
    """True if not too many of them have one hash."""
    for key in keys:
        if not _has_own_hash(key):
            counted[code := hash(key)] += 1
            if counted[code] > SAME_HASH_MAX:
                return False
    return True


def _are_flat(found: Iterable[Any]) -> bool:
    for key in found:
        left, parts = [key], 0
        while left:
            one = left.pop()
            if not isinstance(one, tuple):
                left += _hashed(one)
                continue
            parts += len(one) + 1
            if parts > KEY_PARTS_MAX:
                return False
            left += one
    return True


_OF_ITSELF: Final[Any] = object.__hash__


def _hashed(one: Any) -> list[tuple[Any, ...]]:
    """The tuples that the hash of an object may look through: of its attributes, unless it stands for itself alone."""
    kind = type(one)
    if kind.__module__ == "builtins" or kind.__hash__ is _OF_ITSELF:
        return []
    slots = (getattr(one, name, None) for name in copyreg._slotnames(kind))  # type: ignore[attr-defined]
    return [value for value in (*getattr(one, "__dict__", {}).values(), *slots) if isinstance(value, tuple)]


def _is_fraction(text: Any) -> bool:
    return isinstance(text, str) and _FRACTION.fullmatch(text) is not None


def member_of(owner: Any, name: Any) -> Any:
    """In the place of getattr: members of enumerations, as Python 3.11.2 pickles them, time zones, and nothing else."""
    if owner is ZoneInfo and name == "_unpickle":
        return _zone
    if not isinstance(owner, enum.EnumMeta) or not isinstance(name, str) or name not in owner.__members__:
        raise untrusted("builtins.getattr")
    return owner.__members__[name]


_OLD: Final = tuple(
    code[0] for code in (pickle.NEWOBJ_EX, pickle.INST, pickle.OBJ, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.DICT)
)
"""Steps that no pickle of today's protocols needs."""


def _zone(key: Any, _from_cache: Any) -> ZoneInfo:
    if not isinstance(key, str):
        raise untrusted("an odd time zone")
    return ZoneInfo(key)


class Careful(pickle._Unpickler):
    """Reads with the steps of this module instead of the library's."""

    dispatch: ClassVar[Any] = dict(pickle._Unpickler.dispatch)

    def __init__(self, file: io.BytesIO, find: Find) -> None:
        super().__init__(file)
        self._find = find
        self._names: dict[int, tuple[str, str]] = {}
        self._size = file.getbuffer().nbytes
        self._depths: dict[int, int] = {}
        self._inside: dict[int, Any] = {}
        self._hashes: defaultdict[int, Counter[int]] = defaultdict(Counter)

    def find_class(self, module: str, name: str) -> Any:
        """Returns the object that the pickle names."""
        found = self._find(module, name)
        self._names[id(found)] = (module, name)
        return found

    # --- one step each ---------------------------------------------------------------------------

    def load_reduce(self) -> None:
        """Call a function, or make an object of a class."""
        stack: list[Any] = self.stack  # type: ignore[attr-defined]  # the library's own, as all below
        args = stack.pop()
        if not isinstance(args, tuple):
            raise untrusted("a call without arguments")
        stack[-1] = self._made(stack[-1], args)

    def load_newobj(self) -> None:
        """Make an empty object of a class."""
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        args = stack.pop()
        stack[-1] = new_of(stack[-1], args)

    def load_build(self) -> None:
        """Fill an object with what it held."""
        stack: list[Any] = self.stack  # type: ignore[attr-defined]
        state = stack.pop()
        fill(stack[-1], state)
        if _is_deep(stack[-1]) and isinstance(state, tuple) and state and isinstance(state[-1], list):
            self._nested(stack[-1], state[-1])

    def load_appends(self) -> None:
        """Add several items to a list."""
        items = self.pop_mark()  # type: ignore[attr-defined]
        self._extend(items)

    def load_bytearray8(self) -> None:
        """Some bytes that can be changed; the library takes the memory before it looks whether they are there."""
        count = int.from_bytes(self.read(8), "little")  # type: ignore[attr-defined]
        if count > self._size:
            raise untrusted("more bytes than came")
        self.append(bytearray(self.read(count)))  # type: ignore[attr-defined]

    def load_append(self) -> None:
        """Add an item to a list."""
        item = self.stack.pop()  # type: ignore[attr-defined]
        self._extend([item])

    def load_setitems(self) -> None:
        """Add several items to a dict."""
        items = self.pop_mark()  # type: ignore[attr-defined]
        self._update(items[::2], items[1::2])

    def load_setitem(self) -> None:
        """Add an item to a dict."""
        value, key = self.stack.pop(), self.stack.pop()  # type: ignore[attr-defined]
        self._update([key], [value])

    def load_additems(self) -> None:
        """Add several items to a set."""
        items = self.pop_mark()  # type: ignore[attr-defined]
        target = self.stack[-1]  # type: ignore[attr-defined]
        if type(target) is not set or not are_keys(items, self._hashes[id(target)]):
            raise untrusted("odd items of a set")
        target.update(items)

    def load_frozenset(self) -> None:
        """Make a frozen set of several items."""
        items = self.pop_mark()  # type: ignore[attr-defined]
        if not are_keys(items):
            raise untrusted("odd items of a set")
        self.append(frozenset(items))  # type: ignore[attr-defined]

    def _extend(self, items: list[Any]) -> None:
        target = self.stack[-1]  # type: ignore[attr-defined]
        if isinstance(target, list):
            list.extend(target, items)
        elif isinstance(target, deque):
            self._nested(target, items)
            deque.extend(target, items)
        else:
            raise untrusted("items of what is no list")

    def _update(self, keys: list[Any], values: list[Any]) -> None:
        target = self.stack[-1]  # type: ignore[attr-defined]
        if not isinstance(target, dict) or not are_keys(keys, self._hashes[id(target)]):
            raise untrusted("items of what is no dict, or odd keys")
        if isinstance(target, defaultdict):
            self._nested(target, values)
        put: Any = OrderedDict.__setitem__ if isinstance(target, OrderedDict) else dict.__setitem__
        for key, value in zip(keys, values, strict=True):
            put(target, key, value)

    def _nested(self, target: Any, items: Iterable[Any]) -> None:
        """Count how deep a deque, or the like, is. What is inside another is whole, else nobody could."""
        deep = [one for one in items if _is_deep(one)]
        depth = max((self._depths.get(id(one), 1) + 1 for one in deep), default=1)
        if deep and (id(target) in self._inside or depth > NESTED_MAX):
            raise untrusted("values nested without an end")
        self._inside.update((id(one), one) for one in deep)
        if deep:
            self._depths[id(target)] = max(depth, self._depths.get(id(target), 1))

    def refuse(self) -> None:
        """One of those steps."""
        raise untrusted("a step of an old protocol")

    dispatch |= {
        pickle.REDUCE[0]: load_reduce,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.BUILD[0]: load_build,
        pickle.BYTEARRAY8[0]: load_bytearray8,
        pickle.APPEND[0]: load_append,
        pickle.APPENDS[0]: load_appends,
        pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems,
        pickle.ADDITEMS[0]: load_additems,
        pickle.FROZENSET[0]: load_frozenset,
        **dict.fromkeys(_OLD, refuse),
    }

    # --- what a call makes -----------------------------------------------------------------------

    def _made(self, called: Any, args: tuple[Any, ...]) -> Any:
        module, name = self._names.get(id(called), ("", ""))
        if called is member_of or called is _zone:
            return called(*args)
        if (module, name) == BROUGHT and len(args) == 1:
            return called(*args)
        if called is operator.or_ and len(args) == 2:
            return _flags(*args)
        if (allowed := _CALLED.get((module, name))) is not None:
            if not allowed(args):
                raise untrusted(f"{module}.{name} with odd arguments")
            made = called(*args)
            if isinstance(made, deque):
                self._nested(made, made)
            return made
        if module == "copyreg":
            return _copied(name, args)
        if module.partition(".")[0] == "numpy":
            return _numpy_made(called, name, args)
        if isinstance(called, enum.EnumMeta):
            return _enum_member(called, args)
        if isinstance(called, type) and issubclass(called, BaseException):
            return _exception(called, args)
        raise untrusted(f"a call of {getattr(called, '__module__', '?')}.{getattr(called, '__qualname__', '?')}")


def new_of(kind: Any, args: Any) -> Any:
    """An object of this class, made by what Python itself brings; raises UntrustedResult."""
    if not isinstance(kind, type) or not isinstance(args, tuple):
        raise untrusted("an object of what is no class")
    where = f"{kind.__module__}.{kind.__qualname__}"
    if hasattr(kind, "__del__"):
        raise untrusted(f"{where} with a __del__ of its own")
    made_by = kind.__new__
    if isinstance(made_by, types.BuiltinFunctionType):
        taken = _MAKERS.get(made_by.__self__) if isinstance(made_by.__self__, type) else None
        if taken is None or not all(type(one) in taken for one in args):
            raise untrusted(f"an odd {where}")
        if made_by.__self__ is frozenset and not all(are_keys(one) for one in args):
            raise untrusted(f"an odd {where}")
        return made_by(kind, *args)
    if issubclass(kind, tuple) and getattr(made_by, "__module__", "").startswith("namedtuple_"):
        return tuple.__new__(kind, args)
    raise untrusted(f"{where} with a __new__ of its own")


def fill(made: Any, state: Any) -> None:
    """Put an object's attributes in place; raises UntrustedResult."""
    kind = type(made)
    if kind.__module__.partition(".")[0] == "numpy":
        _numpy_fill(made, state)
        return
    if isinstance(made, type | enum.Enum | types.FunctionType | types.BuiltinFunctionType | types.ModuleType):
        raise untrusted("a change of a class, a member of an enumeration or a function")
    if isinstance(made, BaseException):
        if isinstance(state, dict):
            made.__dict__.update(_named(state))
        return
    own = getattr(kind, "__setstate__", None)
    if own is not None:
        if getattr(own, "__module__", None) not in ("dataclasses", "uuid"):
            raise untrusted(f"{kind.__module__}.{kind.__qualname__} with a __setstate__ of its own")
        own(made, state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        made.__dict__.update(_named(attributes))
    for name, value in _named(slots or {}).items():
        place = next((vars(one)[name] for one in kind.__mro__ if name in vars(one)), None)
        if not isinstance(place, types.MemberDescriptorType):
            raise untrusted(f"an attribute {name!r} that {kind.__qualname__} has no place for")
        place.__set__(made, value)


def is_protocol(name: str) -> bool:
    """True if others act on an object's attribute of this name: `__reduce_ex__` names code to run where it is sent on,
    `__array_interface__` an address of this process that numpy reads and writes, `_as_parameter_` one for ctypes."""
    return name == "_as_parameter_" or (name.startswith("__") and name.endswith("__") and name not in _HARMLESS)


def _named(state: Any) -> dict[str, Any]:
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise untrusted("attributes without names")
    for name in state:
        if is_protocol(name):
            raise untrusted(f"an attribute {name}, which Python or numpy would act on")
    return state


def _kind_of(array: Any) -> Any:
    return getattr(getattr(array, "dtype", None), "kind", "")


def _is_deep(one: Any) -> bool:
    """True if Python ends this with all that is directly inside, however deep that is."""
    return isinstance(one, DEEP) or (type(one).__module__ == "numpy" and _kind_of(one) == "O")


def _copied(name: str, args: tuple[Any, ...]) -> Any:
    if name == "__newobj__" and args:
        return new_of(args[0], args[1:])
    if name == "_reconstructor" and len(args) == 3:
        kind, base, state = args
        return new_of(kind, () if base is object else (state,))
    raise untrusted(f"copyreg.{name}")


def _enum_member(kind: enum.EnumMeta, args: tuple[Any, ...]) -> Any:
    if len(args) != 1 or not are_keys(args):
        raise untrusted(f"a call of {kind.__qualname__}")
    if getattr(kind._missing_, "__module__", None) == "enum":  # type: ignore[attr-defined]
        return kind(args[0])
    member: enum.Enum
    for member in kind.__members__.values():
        if member.value == args[0]:
            return member
    raise untrusted(f"a value that {kind.__qualname__} has not")


def _flags(some: Any, more: Any) -> Any:
    """The members of an enumeration of flags together, as Python 3.11 pickles them; more: members, or bits without."""
    if not isinstance(some, enum.Flag):
        raise untrusted("operator.or_ of what is no flag")
    bits = more.value if type(more) is type(some) else more
    if type(some.value) is not int or type(bits) is not int:
        raise untrusted("operator.or_ of odd flags")
    return _enum_member(type(some), (some.value | bits,))


def _exception(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """As Python's own base of it makes it: an `__init__` that somebody else wrote is not called."""
    if kind.__module__ == "builtins" or (is_of_python(kind.__module__) and all(type(one) in _SIMPLE for one in args)):
        return kind(*args)
    if hasattr(kind, "__del__"):
        raise untrusted(f"{kind.__qualname__} with a __del__ of its own")
    base = next(one for one in kind.__mro__ if one.__module__ == "builtins")
    made: BaseException = base.__new__(kind, *args)
    try:
        base.__init__(made, *args)  # type: ignore[misc]  # on purpose: not the subclass's
    except TypeError:
        BaseException.__init__(made, *args)
    return made


# --- numpy: what it makes of a pickle by itself believes every size and flag in it ----------------


def _numpy_made(called: Any, name: str, args: tuple[Any, ...]) -> Any:
    numpy = importlib.import_module("numpy")  # there only where somebody has it

    if name == "dtype" and isinstance(args[0], str) and _DTYPE.fullmatch(args[0]):
        return numpy.dtype(args[0], bool(args[1:2] == (True,)), True)
    if name == "_reconstruct" and args[0] is numpy.ndarray:
        return numpy.empty((0,), "b")
    if name == "scalar" and len(args) == 2 and isinstance(args[1], bytes) and _is_plain_dtype(args[0]):
        return numpy.frombuffer(args[1], args[0], 1)[0]
    if name == "_frombuffer" and len(args) == 4 and _is_plain_dtype(args[1]) and args[3] in ("C", "F"):
        return numpy.frombuffer(args[0], args[1]).reshape(args[2], order=args[3])
    if name == "_frombuffer" and len(args) == 5 and _is_plain_dtype(args[1]) and args[3] == "K":
        return numpy.frombuffer(args[0], args[1]).reshape(args[2]).transpose(args[4])
    raise untrusted(f"numpy's {name} with odd arguments")


def _is_plain_dtype(kind: Any) -> bool:
    numpy = importlib.import_module("numpy")

    return isinstance(kind, numpy.dtype) and not kind.hasobject and kind.itemsize > 0


def _numpy_fill(made: Any, state: Any) -> None:
    numpy = importlib.import_module("numpy")

    is_sound = isinstance(state, tuple) and (
        _is_dtype_state(made, state) if isinstance(made, numpy.dtype) else _is_array_state(state)
    )
    if not is_sound:
        raise untrusted(f"an odd {type(made).__qualname__} of numpy")
    made.__setstate__(state)


def _is_dtype_state(kind: Any, state: tuple[Any, ...]) -> bool:
    if len(state) not in (DTYPE_STATE, DTYPE_STATE + 1) or state[0] not in (3, 4):
        return False
    order, sub_array, names, fields, size, alignment, flags = state[1:DTYPE_STATE]
    if order not in ("<", ">", "|", "=") or sub_array is not None or not isinstance(size, int):
        return False
    if names is not None or fields is not None:
        return kind.kind == "V" and flags in _STRUCT_FLAGS and _are_fields(names, fields, size, alignment)
    if flags not in _FLAGS.get(kind.kind, (0,)):
        return False
    if kind.kind in "Mm":
        return size == alignment == -1 and len(state) == DTYPE_STATE + 1 and _is_datetime(state[DTYPE_STATE])
    sizes = (kind.itemsize, kind.alignment) if kind.kind in "SUV" else (-1, -1)
    return len(state) == DTYPE_STATE and (size, alignment) == sizes


def _is_datetime(metadata: Any) -> bool:
    return (
        isinstance(metadata, tuple)
        and len(metadata) == 2
        and isinstance(metadata[1], tuple)
        and len(metadata[1]) == 4
        and _is_unit(metadata[1][0])
        and all(isinstance(one, int) for one in metadata[1][1:])
    ) or (
        isinstance(metadata, tuple)
        and len(metadata) == 4
        and _is_unit(metadata[0])
        and all(isinstance(one, int) for one in metadata[1:])
    )


def _is_unit(found: Any) -> bool:
    return isinstance(found, bytes) and found in _UNITS


def _are_fields(names: Any, fields: Any, size: int, alignment: Any) -> bool:
    if not isinstance(names, tuple) or not isinstance(fields, dict) or not all(isinstance(one, str) for one in names):
        return False
    if set(names) != set(fields):
        return False
    if not 0 < size < 1 << 31 or not isinstance(alignment, int) or alignment not in (1, 2, 4, 8, 16):
        return False
    for field in fields.values():
        if not isinstance(field, tuple) or len(field) != 2 or not _is_plain_dtype(field[0]):
            return False
        if not isinstance(field[1], int) or not 0 <= field[1] <= size - field[0].itemsize:
            return False
    return True


def _is_array_state(state: tuple[Any, ...]) -> bool:
    numpy = importlib.import_module("numpy")

    if len(state) != ARRAY_STATE or not isinstance(state[1], tuple) or not isinstance(state[2], numpy.dtype):
        return False
    count = 1
    for length in state[1]:
        if not isinstance(length, int) or length < 0:
            return False
        count *= length
    items = state[4]
    if state[2].kind == "O":
        return isinstance(items, list) and len(items) == count
    return _is_plain_dtype(state[2]) and isinstance(items, bytes) and len(items) == count * state[2].itemsize
