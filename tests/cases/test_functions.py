"""Functions of every shape run on a cluster of the market, and give what they give here."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rental import Renter
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

SHAPES = """
import asyncio, collections, dataclasses, enum, functools, json, sys, typing
import windrow

FACTOR = 3
Pair = collections.namedtuple("Pair", "a b")

class Colour(enum.Enum):
    RED = 1

class Perm(enum.Flag):
    R = 1
    W = 2

class Typed(typing.NamedTuple):
    x: int

@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    tags: tuple = ()

class Adder:
    def __init__(self, n): self.n = n
    def add(self, m): return self.n + m
    def __call__(self, m): return self.n * m
    @staticmethod
    def twice(m): return 2 * m
    @classmethod
    def made(cls, n): return cls(n).n

def doubled(function):
    @functools.wraps(function)
    def inner(*args): return 2 * function(*args)
    return inner

def plain(a, b=2, *more, c=3, **named): return [a, b, more, c, named]
def uses_global(n): return n * FACTOR
def calls_other(n): return uses_global(n) + helper(n)
def helper(n): return n + 1
@doubled
def decorated(n): return n + 1
@functools.cache
def cached(n): return n * n
@functools.lru_cache(maxsize=2)
def cached_some(n): return n * n
async def later(n):
    await asyncio.sleep(0)
    return n + 1
def recursive(n): return 1 if n < 2 else n * recursive(n - 1)
def inner_function(n):
    def inner(m): return n + m
    return inner(1)
def closure(n):
    seen = []
    def inner(m):
        seen.append(m)
        return n + m, list(seen)
    return inner
def moved(point): return dataclasses.replace(point, x=point.x + 1)
def paired(pair): return Pair(pair.b, pair.a)
def typed(one): return Typed(one.x + 1)
def coloured(colour): return colour, Colour.RED
def allowed(perm): return perm | Perm.W
def nested(value): return {"in": [value, (value,), {value}], None: b"bytes", 1.5: 2 + 3j}
def nothing(): return None
def typing_of(n: "int | None" = None) -> "list[int]": return [n or 0]
def unicode_(word): return word[::-1]

CALLS = [
    (plain, (1,), {}), (plain, (1, 5, 6), {"c": 7, "d": 8}), (uses_global, (2,), {}), (calls_other, (2,), {}),
    (decorated, (1,), {}), (cached, (4,), {}), (cached, (4,), {}), (cached_some, (5,), {}), (recursive, (10,), {}),
    (inner_function, (2,), {}), (closure(5), (2,), {}), (lambda: 1, (), {}), (lambda n, m=2: n * m + FACTOR, (4,), {}),
    (moved, (Point(1, ("t",)),), {}), (paired, (Pair(1, 2),), {}), (typed, (Typed(1),), {}),
    (coloured, (Colour.RED,), {}), (allowed, (Perm.R,), {}), (nested, (1,), {}), (nothing, (), {}),
    (typing_of, (), {}), (unicode_, ("\\u65e5\\u672c",), {}), (Adder(2).add, (3,), {}), (Adder(2), (3,), {}),
    (Adder.twice, (3,), {}), (Adder.made, (3,), {}), (functools.partial(plain, 1, c=9), (2,), {}), (len, ("abc",), {}),
    (json.dumps, ([1],), {}), (functools.reduce, (max, [1, 3, 2]), {}), (str.upper, ("a",), {}), (Point, (4,), {}),
]

def main():
    box = windrow.cluster(name=sys.argv[1]).up_if_not()
    wrong = []
    for number, (function, args, named) in enumerate(CALLS):
        there = windrow.function(function).to(box)(*args, **named)
        here = function(*args, **named)
        if here != there or type(here) is not type(there):
            wrong.append([number, repr(function), repr(here), repr(there)])
    if windrow.function(later).to(box)(1) != 2:
        wrong.append("async")
    if list(windrow.function(plain).to(box).map([1, 2], [3, 4])) != [plain(1, 3), plain(2, 4)]:
        wrong.append("map")
    print(json.dumps([len(CALLS) + 2, wrong]))

if __name__ == "__main__":
    main()
"""
BARE = """
import sys, windrow
def add(a, b): return a + b
box = windrow.cluster(name=sys.argv[1]).up_if_not()
print(windrow.function(add).to(box)(1, 2))
"""


@pytest.fixture(scope="module")
def box(renter: Renter) -> Iterator[str]:
    """The name of a cluster that the tests of this module share; it is away at the end."""
    name = f"calls-{uuid.uuid4().hex[:6]}"
    yield name
    for one in renter.all("/clusters", name=name):
        renter.delete(one["id"])


def _ran(renter: Renter, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    own = {"WINDROW_URL": renter.stack.cli["url"], "WINDROW_TOKEN": renter.stack.cli["token"]}
    own |= {"XDG_STATE_HOME": str(folder / ".venv")}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=os.environ | own, capture_output=True, text=True,
        timeout=PATIENCE_S * 3, check=False,
    )  # fmt: skip


@pytest.mark.case("B-G4")
@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("calls.py", ("calls.py",)),
        ("my-calls.py", ("my-calls.py",)),
        ("pack/calls.py", ("-m", "pack.calls")),
        ("pack/__main__.py", ("-m", "pack")),
    ],
)
def test_functions_of_every_shape_give_there_what_they_give_here(
    renter: Renter, box: str, tmp_path: Path, file: str, words: tuple[str, ...]
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(SHAPES)

    done = _ran(renter, tmp_path, *words, box)

    assert done.returncode == 0, done.stderr
    calls, wrong = json.loads(done.stdout.splitlines()[-1])
    assert (wrong, calls) == ([], 34)


@pytest.mark.case("B-G10")
def test_a_script_without_its_guard_is_told_so_in_a_sentence(renter: Renter, box: str, tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(BARE)

    done = _ran(renter, tmp_path, "bare.py", box)

    assert done.returncode != 0
    assert 'if __name__ == "__main__":' in done.stderr.splitlines()[-1]
