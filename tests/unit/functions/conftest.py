"""A worker for the tests of this folder, and a module that is here and there."""

import sys
import types
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import windrow
from tests.support.worker import Worker, working
from windrow.remote.function import Function

CODE = """
import os, signal, subprocess, sys, threading, time

LOADED = []

class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")

class Mute(Exception):
    def __str__(self): raise OSError("no words")

class Rude(BaseException): pass

class Glued(Exception):
    def __reduce__(self): raise SystemExit(9)

class Noted(Exception):
    @property
    def __notes__(self): raise OSError("no notes")

class Point:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x == other.x

def number(): return 1
def add(a, b=0): return a + b
def twice(point): return Point(point.x * 2)
def pid(_=None): return os.getpid()
def family(): return os.getpid(), os.getppid()
def remember(item):
    LOADED.append(item)
    return list(LOADED)
def together(folder, count):
    open(os.path.join(folder, str(os.getpid())), "w").close()
    while len(os.listdir(folder)) < count: time.sleep(0.01)
    return os.getpid()
def sleep(folder):
    print("begun")
    open(os.path.join(folder, "begun"), "w").close()
    time.sleep(600)
def deaf(folder):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    open(os.path.join(folder, "begun"), "w").close()
    while True: time.sleep(0.1)
def busy(folder):
    subprocess.Popen(["sleep", "600"])
    deaf(folder)
def offspring():
    return subprocess.Popen(["sleep", "600"]).pid
def unpicklable(): return threading.Lock()
def a_lambda(): return lambda: 1
def a_program(): return subprocess.CompletedProcess([], 0)
def odd(): raise Odd(1, 2)
def mute(): raise Mute
def rude(): raise Rude("rude")
def glued(): raise Glued("glued")
def noted(): raise Noted("noted")
def several(): raise ExceptionGroup("several", [ValueError("one of them"), Odd(1, 2)])
def undecodable(): raise ValueError("\\udcff")
class Unspeakable(Exception):
    def __repr__(self): return "r" * (8 << 20)
    __str__ = __repr__

def wordy(): raise ValueError("w" * (8 << 20))
def colourful(): raise ValueError("\\U0001f3a8" * 20_000)
def unspeakable(): raise Unspeakable
def annotated():
    error = ValueError("annotated")
    error.add_note("n" * (8 << 20))
    raise error
def chained():
    try: wordy()
    except ValueError as error: raise KeyError("chained") from error
def renamed(): raise type("N" * (1 << 20), (Exception,), {})("renamed")
def ping(left): return pong(left - 1)
def pong(left): return ping(left - 1) if left else fails()
def deep(): return ping(401)
def fails(): raise KeyError("nothing")
def exits(): sys.exit(3)
def dies(): os.kill(os.getpid(), signal.SIGKILL)
def leaves(): os._exit(5)
def binary():
    os.write(1, b"\\xff\\x00 a\\n")
    os.write(2, b"to the other\\n")
def endless(size):
    line = b"x" * 1023 + b"\\n"
    for _ in range(size // 1024): os.write(1, line)
def one_line(size): os.write(1, b"x" * size)
def huge(size): return bytes(size)
def said():
    print("one"); print("two", file=sys.stderr); print("three", end="")
async def later(n): return n + 1
def told(name): return os.environ.get(name), os.getcwd()
def recursion(): return recursion()
"""


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with working(tmp_path_factory.mktemp("worker")) as found:
        yield found


class Code:
    """A module in a folder of its own, here and there."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name, self.module = folder, name, types.ModuleType(name)
        self.write(CODE)

    def write(self, text: str) -> None:
        path = self.folder / f"{self.name}.py"
        path.write_text(text)
        self.module.__dict__.update(__file__=str(path))
        exec(compile(text, str(path), "exec"), self.module.__dict__)

    def on(self, worker: Worker, name: str, **more: Any) -> Function[..., Any]:
        return windrow.function(getattr(self.module, name)).to(worker.cluster(**more))


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Code:
    (tmp_path / "code").mkdir()
    made = Code(tmp_path / "code", f"module_{uuid.uuid4().hex[:8]}")
    monkeypatch.setitem(sys.modules, made.name, made.module)
    return made


@pytest.fixture
def there(tmp_path: Path) -> Path:
    folder = tmp_path / "there"
    folder.mkdir()
    return folder


def gathered(function: Function[..., Any]) -> tuple[Function[..., Any], list[tuple[int, bytes]]]:
    found: list[tuple[int, bytes]] = []
    return function.options(on_output=lambda stream, data: found.append((stream, data))), found
