"""Memory that only a start needed is given back, and everything that is needed still works."""

import asyncio
import gc
import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from windrow_agent.app import memory_trim
from windrow_agent.app.memory_trim import clean_mappings, without

FIELDS = """Size:                  4 kB
Rss:                   4 kB
Anonymous:             {written} kB
AnonHugePages:         0 kB
Swap:                  {swapped} kB
SwapPss:               0 kB
VmFlags: rd ex mr mw me sd
"""
MAPS = (
    ("55e0c0000000-55e0c0001000 r--p 00000000 08:01 1311     /usr/bin/python3.11", 0, 0),
    ("55e0c0001000-55e0c0002000 r-xp 00001000 08:01 1311     /usr/bin/python3.11", 0, 0),
    ("55e0c0002000-55e0c0003000 rw-p 00002000 08:01 1311     /usr/bin/python3.11", 0, 0),
    ("55e0c1000000-55e0c1021000 rw-p 00000000 00:00 0        [heap]", 0, 0),
    ("7f0000000000-7f0000001000 r-xp 00000000 00:00 0", 0, 0),
    ("7f0000002000-7f0000004000 r-xp 00003000 08:01 77       /opt/with a space/lib.so", 0, 0),
    ("7f0000004000-7f0000005000 r--p 00003000 08:01 77       /opt/relocated/lib.so", 4, 0),
    ("7f0000004000-7f0000005000 r--p 00003000 08:01 77       /opt/swapped/lib.so", 0, 4),
    ("7f0000005000-7f0000006000 rwxp 00003000 08:01 77       /opt/written/lib.so", 0, 0),
    ("7f0000006000-7f0000007000 r-xs 00003000 08:01 78       /opt/shared/lib.so", 0, 0),
    ("7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0        [vdso]", 0, 0),
)
SMAPS = "".join(f"{head}\n{FIELDS.format(written=written, swapped=swapped)}" for head, written, swapped in MAPS)

CHILD = """
import hashlib, json, re, ssl
import cryptography.hazmat.primitives.asymmetric.ed25519 as ed
from windrow_agent.app.memory_trim import give_back
def resident():
    return int(re.search(r"RssFile:\\s+(\\d+)", open("/proc/self/status").read())[1])
known = give_back(frozenset())
before = resident()
give_back(known)
print(before, resident())
key = ed.Ed25519PrivateKey.generate()
key.public_key().verify(key.sign(b"said"), b"said")
print(hashlib.sha256(b"said").hexdigest()[:8], ssl.create_default_context().verify_mode.name)
"""


def test_only_what_lies_in_a_file_and_was_never_written_to_is_dropped():
    assert list(clean_mappings(SMAPS.splitlines())) == [
        (0x55E0C0000000, 0x55E0C0001000, "/usr/bin/python3.11"),
        (0x55E0C0001000, 0x55E0C0002000, "/usr/bin/python3.11"),
        (0x7F0000002000, 0x7F0000004000, "/opt/with a space/lib.so"),
    ]
    assert list(clean_mappings([MAPS[0][0]])) == [], "a kernel that does not say is not believed"


def test_what_was_not_there_at_the_look_before_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    dropped: list[int] = []

    def madvise(begin: int, size: int, advice: int) -> None:
        dropped.append(begin)

    library = SimpleNamespace(malloc_trim=lambda size: 1, madvise=madvise)
    monkeypatch.setattr("ctypes.CDLL", lambda name: library)
    monkeypatch.setattr(memory_trim, "SMAPS", tmp_path / "smaps")
    (tmp_path / "smaps").write_text(SMAPS)
    known = memory_trim.give_back(frozenset())
    assert dropped == []
    assert memory_trim.give_back(frozenset(sorted(known)[:1])) == known
    assert dropped == [0x55E0C0000000]


def test_a_process_is_smaller_after_giving_back_and_works_as_before():
    said = subprocess.run([sys.executable, "-c", CHILD], check=True, capture_output=True, text=True, timeout=60).stdout
    before, after, digest, mode = said.split()
    assert int(after) < int(before)
    assert (digest, mode) == ("fb46c79b", "CERT_REQUIRED")


def test_a_module_that_seems_missing_is_there_again_afterwards():
    before = importlib.import_module("json")
    with without("json", "windrow_is_no_such_module"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("json")
    assert importlib.import_module("json") is before
    assert "windrow_is_no_such_module" not in sys.modules


def test_the_agent_loads_no_coloured_console_even_where_one_is_installed():
    unwanted = {"rich", "pygments", "greenlet", "docker", "numpy", "importlib.metadata", "windrow_agent.app.doctor"}
    line = f"import windrow_agent.app.main, sys; print(sorted({unwanted} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", line], check=True, capture_output=True, text=True, timeout=60).stdout
    assert said.strip() == "[]"


async def test_a_process_that_plays_many_hosts_searches_all_of_its_memory_at_moments_of_its_own(monkeypatch):
    monkeypatch.setattr(memory_trim, "EVEN_S", ())
    monkeypatch.setattr(memory_trim, "SEARCH_EVERY_S", 0.0)
    searched = asyncio.Event()
    monkeypatch.setattr(memory_trim, "gc", SimpleNamespace(**{**vars(gc), "collect": searched.set}))
    before = gc.get_threshold()
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(memory_trim.stay_even())
            await searched.wait()
            assert gc.get_threshold() == (*before[:2], memory_trim.NEVER)
            task.cancel()
    finally:
        gc.set_threshold(*before)
