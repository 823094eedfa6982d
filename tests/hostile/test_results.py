"""A host answers a function's call with a pickle of its own making: only data comes of it, and nothing runs here."""

import asyncio
import collections
import copyreg
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import pathlib
import pickle
import resource
import struct
import sys
import types
import typing
import uuid
import zoneinfo
from pathlib import Path
from typing import Any, ClassVar

import numpy
import pytest

from tests.hostile import IS_LONG
from windrow.errors import RemoteError, UntrustedResult, WorkerRefused
from windrow.remote import session
from windrow.remote.cluster import _described
from windrow.remote.code import tree_of
from windrow.remote.outcome import value_of
from windrow.remote.pickles import NOTHING, Reader
from windrow.remote.session import Ended
from windrow.remote.unmade import Unmade
from windrow.worker import frames

pytestmark = pytest.mark.row("F4")


def mine() -> frozenset[Path]:
    """This file was sent."""
    return frozenset({Path(__file__).resolve()})


def sent() -> Reader:
    return Reader(mine, None, False)


class Opened:
    """Somebody's own class, whose making acts."""

    opened: ClassVar[list[Any]] = []

    def __init__(self, path: str) -> None:
        self.path = path
        Opened.opened.append(path)


class Filled(Opened):
    """One whose filling acts."""

    def __setstate__(self, state: Any) -> None:
        Opened.opened.append(state)


class Left(Opened):
    """One whose end acts."""

    def __del__(self) -> None:
        Opened.opened.append("end")


class Made(Opened):
    """One whose `__new__` acts."""

    def __new__(cls, *args: Any) -> "Made":
        Opened.opened.append(args)
        return super().__new__(cls)


class Listed(Opened):
    """One whose methods have the names of a list's."""

    def append(self, item: Any) -> None:
        Opened.opened.append(item)

    def extend(self, items: Any) -> None:
        Opened.opened.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        Opened.opened.append((key, value))

    def add(self, item: Any) -> None:
        Opened.opened.append(item)


class Guarded:
    """One that acts when an attribute is set."""

    def __setattr__(self, name: str, value: Any) -> None:
        Opened.opened.append((name, value))

    @property
    def level(self) -> int:
        return 0

    @level.setter
    def level(self, value: int) -> None:
        Opened.opened.append(value)


class Odd(Exception):
    """An exception whose making acts."""

    def __init__(self, first: str, second: str = "") -> None:
        super().__init__(f"{first} {second}")
        self.first = first
        Opened.opened.append(first)


class Kind(type):
    """A class of classes."""


class Command(enum.Enum):
    """The values that a whole program shares."""

    LIST = "ls"


@dataclasses.dataclass(frozen=True)
class Key:
    """A value that can be a key."""

    a: Any


class Calls:
    """Pickles as a call, and perhaps a filling."""

    def __init__(self, called: Any, *args: Any, state: Any = None) -> None:
        self.answer = (called, args) if state is None else (called, args, state)

    def __reduce__(self) -> Any:
        return self.answer


def program(*parts: bytes | str) -> bytes:
    """A pickle written step by step; a text is a class or function of this module."""
    named = [part if isinstance(part, bytes) else f"c{__name__}\n{part}\n".encode() for part in parts]
    return b"\x80\x05" + b"".join(named) + b"."


@pytest.fixture(autouse=True)
def nothing_happened() -> typing.Iterator[None]:
    Opened.opened.clear()
    yield
    assert Opened.opened == []


HERE = __name__.encode()
DEEP = 200_000 if IS_LONG else 20_000
"""Python ends at a tenth of it."""
DEQUE = b"ccollections\ndeque\n)R"
OBJECTS = (
    b"cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
    b"(K\x01(K\x01tcnumpy\ndtype\n(\x8c\x02O8I00\nI01\ntR\x89]"
)
"""An array of one object, up to that."""
MANY = 3_000
"""Keys with one hash. Python compares each with all before it: a hundred thousand of them take minutes."""
ALIKE = [b"\x8a\x0c" + (n * sys.hash_info.modulus).to_bytes(12, "little") for n in range(1, MANY + 1)]
"""Whole numbers: each has the hash 0."""
ALIKE_COMPLEX = [
    b"cbuiltins\ncomplex\nG" + struct.pack(">d", -1000003.0 * n) + b"G" + struct.pack(">d", n) + b"\x86R"
    for n in range(1, MANY + 1)
]
HOSTILE = {
    "init": pickle.dumps(Calls(Opened, "x")),
    "init by newobj and build": program("Filled", b")\x81", b"}b"),
    "new": program("Made", b")\x81"),
    "del": program("Left", b")\x81"),
    "append": program("Listed", b")\x81", b"K\x01a"),
    "appends": program("Listed", b")\x81", b"(K\x01K\x02e"),
    "setitem": program("Listed", b")\x81", b"K\x01K\x02s"),
    "setitems": program("Listed", b")\x81", b"(K\x01K\x02u"),
    "additems": program("Listed", b")\x81", b"(K\x01\x90"),
    "slot state through a property": program("Guarded", b")\x81", b"N}\x8c\x05levelK\x01s\x86b"),
    "a class is changed": program("Opened", b"N}\x8c\x06openedK\x01s\x86b"),
    "a standard class is changed": b"\x80\x05cpathlib\nPath\nN}\x8c\x04openK\x01s\x86b.",
    "inst": b"(S'x'\ni" + f"{__name__}\nOpened\n".encode() + b".",
    "obj": b"(c" + f"{__name__}\nOpened\n".encode() + b"S'x'\no.",
    "newobj_ex": program("Opened", b")}\x92"),
    "reconstructor": b"\x80\x02ccopyreg\n_reconstructor\n(c%b\nMade\nc%b\nOpened\nNtR." % (HERE, HERE),
    "a method by its dotted name": b"\x80\x04\x8c%c%b\x8c\x0fListed.__init__\x93." % (len(HERE), HERE),
    "what a module imported": f"c{__name__}\nPath\n.".encode(),
    "a function of the file": program("mine", b")R"),
    "a set of a huge range": b"\x80\x05cbuiltins\nset\n(cbuiltins\nrange\n(J\xff\xff\xff\x7ftRtR.",
    "a list of a huge range": b"\x80\x05cbuiltins\nlist\n(cbuiltins\nrange\n(J\xff\xff\xff\x7ftRtR.",
    "a member of an enumeration is changed": program(
        "Command", b"\x8c\x02ls\x85R", b"}\x8c\x07_value_\x8c\x04evils", b"b"
    ),
    "one of Python's own is changed": b"\x80\x05cuuid\nSafeUUID\n(K\x00tR}\x8c\x07_value_K\x05sb.",
    "a class is made": program("Kind", b"(\x8c\x01X)}\x8c\x07__new__", "Opened", b"s", b"t\x81"),
    "an exception is made, whose making acts": program(
        "Kind", b"(\x8c\x01X", b"cbuiltins\nException\n\x85", b"}\x8c\x0a__module__\x8c\x02oss\x8c\x07__new__",
        "Opened", b"s", b"t\x81", b"\x8c\x02rm\x85R",
    ),
    "a tuple of a huge range": b"\x80\x05cbuiltins\ntuple\n(cbuiltins\nrange\n(J\xff\xff\xff\x7ftRt\x81.",
    "a frozen set of a huge range": b"\x80\x05cbuiltins\nfrozenset\n(cbuiltins\nrange\n(J\xff\xff\xff\x7ftRt\x81.",
    "bytes by their number": b"\x80\x05cbuiltins\nbytes\n(J\xff\xff\xff\x7ft\x81.",
    "more bytes than came": b"\x80\x05cbuiltins\nset\n0\x96" + (1 << 33).to_bytes(8, "little") + b".",
    "slices without an end": b"\x80\x05cbuiltins\nslice\n(cbuiltins\nslice\n(NtRNtR.",
    "a key nested without an end": b"\x80\x05})" + b"\x85" * 1_000_000 + b"Ns.",
    "a key that never ends": b"\x80\x05})" + b"2\x86" * 64 + b"Ns.",
    "an item of a set that never ends": b"\x80\x05\x8f()" + b"2\x86" * 64 + b"\x90.",
    "an item of a frozen set that never ends": b"\x80\x05()" + b"2\x86" * 64 + b"\x91.",
    "a set of what never ends": b"\x80\x05cbuiltins\nset\n])" + b"2\x86" * 64 + b"a\x85R.",
    "a member by a value that never ends": program("Command", b")" + b"2\x86" * 64 + b"\x85R"),
    "an own key that never ends": program(b"}", "Key", b")\x81}\x8c\x01a)" + b"2\x86" * 64 + b"sbNs"),
    "deques without an end": b"\x80\x05" + DEQUE * DEEP + b"a" * (DEEP - 1) + b".",
    "deques without an end, from the outer one": b"\x80\x05" + DEQUE
    + b"".join(DEQUE + b"\x94aj" + number.to_bytes(4, "little") for number in range(DEEP)) + b".",
    "dicts with defaults without an end": b"\x80\x05" + b"K\x01ccollections\ndefaultdict\nN\x85R" * DEEP
    + b"s" * (DEEP - 1) + b".",
    "arrays of objects without an end": b"\x80\x05" + OBJECTS * DEEP + b"N" + b"atb" * DEEP + b".",
    "keys with one hash": b"\x80\x05}(" + b"".join(one + b"N" for one in ALIKE) + b"u.",
    "keys with one hash, one at a time": b"\x80\x05}" + b"".join(one + b"Ns" for one in ALIKE) + b".",
    "a set of what has one hash": b"\x80\x05\x8f(" + b"".join(ALIKE_COMPLEX) + b"\x90.",
    "a frozen set of what has one hash": b"\x80\x05(" + b"".join(ALIKE_COMPLEX) + b"\x91.",
    "a set of a list of what has one hash": b"\x80\x05cbuiltins\nset\n](" + b"".join(ALIKE) + b"e\x85R.",
    "a text in an encoding that takes for ever": pickle.dumps(Calls(bytearray, "\u4e00", "punycode")),
    "a fraction that never ends": pickle.dumps(Calls(fractions.Fraction, "1e999999999")),
}  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_step_that_would_run_code_is_refused(data: bytes) -> None:
    before = dict(vars(Opened)), vars(pathlib.Path)["open"]
    with pytest.raises(UntrustedResult):
        sent().load(data)
    assert (dict(vars(Opened)), vars(pathlib.Path)["open"]) == before


ACTED_ON = ("__reduce_ex__", "__array_interface__", "__array_struct__", "__array__", "__cuda_array_interface__",
            "__dlpack__", "__copy__", "__deepcopy__", "__class__", "__fspath__", "_as_parameter_")  # fmt: skip


@pytest.mark.parametrize("name", ACTED_ON)
@pytest.mark.parametrize("kind", ["Plain", "Odd", "Slotted"])
def test_an_attribute_that_others_would_act_on_is_refused(name: str, kind: str) -> None:
    step = b"\x8c\x01x\x85R" if kind == "Odd" else b")\x81"
    state = b"}\x8c" + bytes([len(name)]) + name.encode() + b"K\x01s"
    with pytest.raises(UntrustedResult, match=name):
        sent().load(program(kind, step, (b"N" + state + b"\x86" if kind == "Slotted" else state) + b"b"))


@pytest.mark.parametrize("name", ACTED_ON)
def test_an_attribute_of_plain_data_that_others_would_act_on_is_not_handed_to_them(name: str) -> None:
    told = {"data": (id(name), False), "shape": (8,), "typestr": "|u1", "version": 3}
    found = Unmade("a.Thing", {name: told, "loss": 0.5})
    assert found.loss == 0.5 and getattr(found, name, None) is not told
    array = numpy.asarray(found)
    assert array.dtype == object and array.item() is found


def test_a_class_with_a_number_instead_of_a_name_is_refused() -> None:
    copyreg.add_extension(__name__, "Opened", 200)
    try:
        with pytest.raises(UntrustedResult):
            sent().load(b"\x80\x02\x82\xc8(S'x'\ntR.")
    finally:
        copyreg.remove_extension(__name__, "Opened", 200)


def test_a_class_of_an_environment_inside_the_project_is_never_made(tmp_path: Path, monkeypatch: Any) -> None:
    for folder in (".venv/lib/python3.11/site-packages", "env/lib/site-packages", "deep/er/dist-packages"):
        path = tmp_path / folder / "taken.py"
        path.parent.mkdir(parents=True)
        path.write_text("class Popen:\n    def __new__(cls): raise AssertionError('made')\n")
        module = types.ModuleType("taken")
        module.__dict__["__file__"] = str(path)
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
        monkeypatch.setitem(sys.modules, "taken", module)
        reader = Reader(lambda path=path: frozenset({path.resolve()}), None, False)  # type: ignore[misc]
        found = reader.load(b"\x80\x05ctaken\nPopen\n)\x81.")
        assert type(found) is Unmade and repr(found) == "<taken.Popen as plain data: >"


def test_a_class_of_a_file_that_was_not_sent_is_never_made() -> None:
    assert isinstance(sent().load(program("Opened", b")\x81")), Opened)
    with pytest.raises(UntrustedResult):
        Reader(NOTHING, None, False).load(program("Opened", b")\x81"))


def test_a_place_in_memory_that_a_pickle_names_takes_no_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for data in (b"\x80\x05Nr\xff\xff\xff\x3f.", b"\x80\x05Np1000000000\n.", b"\x80\x05]Nr\xff\xff\xff\x3fa."):
        assert sent().load(data) in (None, [None])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_an_exception_of_a_package_with_the_name_of_pythons_own_is_no_part_of_python(monkeypatch: Any) -> None:
    module = types.ModuleType("test.mine")
    module.__dict__.update(__file__=str(Path(__file__).with_name("other.py")), Odd=type("Odd", (Odd,), {}))
    module.__dict__["Odd"].__module__ = "test.mine"
    monkeypatch.setitem(sys.modules, "test.mine", module)
    with pytest.raises(UntrustedResult):
        sent().load(b"\x80\x05ctest.mine\nOdd\n\x8c\x01x\x85R.")


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_what_ends_a_program_or_its_tasks_is_not_raised_by_a_host(kind: type[BaseException]) -> None:
    record = {"status": "raised", "type": kind.__name__, "message": "0", "traceback": "x" * 1_000_000}
    ended = Ended(record, bytearray(pickle.dumps(kind(0), 5)))
    with pytest.raises(RemoteError):
        value_of(ended, sent(), Path("/proj"))


def test_an_own_exception_comes_back_without_its_init() -> None:
    found = sent().load(pickle.dumps(Calls(Odd, "only one", state={"first": "a"})))
    assert (type(found), found.args, found.first) == (Odd, ("only one",), "a")


def _numpy_states() -> dict[str, bytes]:
    """Arrays that claim to be larger, or other, than what they hold; as numpy itself believes them."""
    kind = b"cnumpy\ndtype\n(\x8c\x02%sI00\nI01\ntR"
    head = b"\x80\x05" + kind
    array = b"\x80\x05cnumpy._core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
    return {
        "flags of objects on a number": head % b"i8" + b"(K\x03\x8c\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb.",
        "no flags on objects": head % b"O8" + b"(K\x03\x8c\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb.",
        "a field beyond the item": head % b"V8"
        + b"(K\x03\x8c\x01|N(\x8c\x01at}\x8c\x01a(cnumpy\ndtype\n(\x8c\x02f8I00\nI01\ntRK\x04tsK\x08K\x01K\x00tb.",
        "more items than bytes": array + b"(K\x01(M\xe8\x03t" + kind % b"f8" + b"I00\nC\x08AAAAAAAAtb.",
        "objects out of bytes": array + b"(K\x01(K\x01t" + kind % b"O8" + b"I00\nC\x08AAAAAAAAtb.",
        "a scalar object": b"\x80\x05cnumpy._core.multiarray\nscalar\n(" + kind % b"O8" + b"C\x08AAAAAAAAtR.",
        "an array of objects in bytes": b"\x80\x05cnumpy\nndarray\n(K\x01\x85" + kind % b"O8" + b"C\x08AAAAAAAAt\x81.",
        "a type by its own call": b"\x80\x05cnumpy\ndtype\n(\x8c\x02O8t\x81.",
        **{
            f"a text at addresses of {at}": head % b"U2"
            + b"(K\x03\x8c\x01<NNNK\x08J%bK\x08tb." % at.to_bytes(4, "little")
            for at in (0, 3, 1 << 31)
        },
        "an array by its own call": b"\x80\x05cnumpy\nndarray\n(K\x01tR.",
    }  # fmt: skip


@pytest.mark.parametrize("data", _numpy_states().values(), ids=_numpy_states())
def test_an_array_that_lies_about_itself_is_refused(data: bytes) -> None:
    with pytest.raises(UntrustedResult):
        sent().load(data)


class Colour(enum.Enum):
    """An enumeration."""

    RED = "red"


class Rights(enum.Flag):
    """One whose members add up."""

    READ = 1
    WRITE = 2


Point = collections.namedtuple("Point", "x y")


class Typed(typing.NamedTuple):
    """The same with types."""

    a: int


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    """A value."""

    a: int
    b: list[int]


@dataclasses.dataclass
class Plain:
    """A value with attributes."""

    a: int = 1


class Slotted:
    """Attributes in slots and beside them."""

    __slots__ = ("__dict__", "a")

    def __init__(self) -> None:
        self.a, self.b = 1, 2


class Names(dict[str, int]):
    """A dict of one's own."""


@pytest.mark.parametrize(
    "value",
    [
        collections.deque([collections.deque([1]), collections.defaultdict(list)]), {(1, (2, "ש")): Key((1, (2,)))},
        {1 << 70: 1, 1 << 60: 2, -5 << 62: 3},
        {Key((1, (2, 3))): {(1, 2)}}, frozenset({frozenset({(1, 2)})}), [(1, 2), (3, (4,))],
        Colour.RED, Rights.READ | Rights.WRITE, Point(1, [2]), Typed(3), Frozen(1, [2]), Plain(2), Names(a=1),
        {"a": [1, (2.5, None)], "b": {1, 2}}, frozenset({1}), range(3), slice(1, 2), 2j, bytearray(b"x"), 1 << 70,
        collections.OrderedDict(a=1), collections.defaultdict(list, a=[1]), collections.deque([1, 2], 3),
        collections.Counter("aab"), datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), datetime.timedelta(1),
        decimal.Decimal("1.5"), fractions.Fraction(1, 3), uuid.UUID(int=5), Path("a/b"), zoneinfo.ZoneInfo("UTC"),
        ValueError("x", 1), OSError(2, "gone", "f"), json.JSONDecodeError("bad", "{", 1),
        ExceptionGroup("both", [KeyError("a")]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
@pytest.mark.parametrize("protocol", [4, 5])
def test_values_come_back_as_they_were(value: Any, protocol: int) -> None:
    found = sent().load(pickle.dumps(value, protocol))
    assert type(found) is type(value)
    assert repr(found) == repr(value)


def test_an_object_with_slots_keeps_its_attributes() -> None:
    found = sent().load(pickle.dumps(Slotted(), 5))
    assert (found.a, found.b) == (1, 2)


@pytest.mark.parametrize(
    "value",
    [
        numpy.arange(6, dtype=">i4").reshape(2, 3), numpy.zeros((2, 3), order="F"), numpy.array(["a", "bcd"]),
        numpy.array([b"x", b"yz"]), numpy.array(["2026-01-02"], dtype="M8[D]"), numpy.array([[1 + 2j]]),
        numpy.array([1, "a", None], dtype=object), numpy.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
        numpy.float16(1.5), numpy.datetime64("2026-01-02"), numpy.array(5), numpy.arange(10)[::2], numpy.array([]),
        numpy.array([True]), numpy.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2),
        numpy.array([(1, 2.5)], dtype=numpy.dtype([("a", "i4"), ("b", "f8")], align=True)),
    ],
    ids=lambda value: f"{value.dtype}",
)  # fmt: skip
@pytest.mark.parametrize("protocol", [4, 5])
def test_arrays_come_back_as_they_were(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    found, usual = sent().load(data), pickle.loads(data)
    assert (found.dtype, found.shape, found.flags.f_contiguous) == (usual.dtype, usual.shape, usual.flags.f_contiguous)
    assert numpy.array_equal(found, value)


def test_an_array_of_objects_in_another_comes_back_as_it_was() -> None:
    outer = numpy.empty(1, object)
    outer[0] = numpy.array([None, "a"], dtype=object)
    assert sent().load(pickle.dumps(outer, 5))[0].tolist() == [None, "a"]


def test_a_file_that_changes_while_it_is_sent_is_replaced_and_one_that_is_gone_is_left_out(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {"a.py": "0" * 64, "m.log": "1" * 64, "twin": "1" * 64})
    changed = tree.replaced("m.log", b"more")
    assert changed.manifest["twin"] == "1" * 64
    assert changed.manifest["m.log"] != "1" * 64
    assert set(tree.replaced("m.log", None).manifest) == {"a.py", "twin"}


class Endless:
    """The stream from which a worker's answer is read: one frame, again and again."""

    def __init__(self, kind: frames.Kind, payload: bytes) -> None:
        self.frame, self.count = frames.Frame(kind, 1, payload), 0

    async def next(self) -> frames.Frame:
        self.count += 1
        assert self.count < 50, "it is read on and on"
        return self.frame


@pytest.mark.parametrize("kind", [frames.Kind.DATA, frames.Kind.OUTPUT])
async def test_what_a_host_sends_without_an_end_is_not_kept(kind: frames.Kind, monkeypatch: Any) -> None:
    monkeypatch.setattr(session, "BODY_BYTES_MAX", 10 << 10)
    endless: Any = Endless(kind, b"\x01\xff\xff\xff\xff" + bytes(1 << 10))
    with pytest.raises(UntrustedResult):
        await session.Session._followed(endless, session.Asked({"run": "r"}, b"", None, lambda stream, data: None))


@pytest.mark.parametrize("files", [["a"], ["b"], [["a"]], 5])
async def test_a_host_is_given_only_files_that_it_was_offered(files: Any) -> None:
    endless: Any = Endless(frames.Kind.NEED, json.dumps({"files": files, "more": True}).encode())
    tree: Any = types.SimpleNamespace(files={"a": Path("a")})
    with pytest.raises(UntrustedResult):
        await session._needed(endless, tree)


@pytest.mark.parametrize(
    "said",
    [b"[" * 20_000, b'{"python": 3, "port": 1, "secret": "00"}', b'{"python": [3, 11], "port": 1, "secret": "zz"}',
     b'{"python": [3, 11], "port": 70000, "secret": "00"}', b'{"python": [3, 11], "port": [], "secret": "00"}', b"7",
     b'{"python": [3, 11], "port": 1, "secret": 5}', b"", b"x" * 40_000, b"\xff"],
    ids=lambda said: said[:44].decode(errors="replace"),
)  # fmt: skip
def test_a_worker_that_describes_itself_oddly_or_without_an_end_is_refused(said: bytes) -> None:
    parts = 0

    def execute(*_: Any, **__: Any) -> Any:
        nonlocal parts
        while parts < 100:
            parts += 1
            yield 1, said
            if len(said) < 40_000:
                return

    api: Any = types.SimpleNamespace(execute=execute, wait_cluster=lambda *_: {"request": {}})
    with pytest.raises(WorkerRefused, match="runs no worker"):
        _described(api, "cluster_1", 0)
    assert parts == 1
