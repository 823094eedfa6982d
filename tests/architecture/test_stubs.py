"""The committed stubs are exactly what the pinned generator makes of the .proto files."""

import shutil
from pathlib import Path

from tests.architecture import stubs


def stale(out: Path, committed: Path) -> list[str]:
    """Stubs that differ, are missing, or have no source any more."""
    made = set(stubs.generate(out))
    there = {path.relative_to(committed) for path in committed.rglob(stubs.PATTERN) if path.suffix in {".py", ".pyi"}}
    differ = {path for path in made & there if (out / path).read_bytes() != (committed / path).read_bytes()}
    return sorted(map(str, differ | (made ^ there)))


def test_the_committed_stubs_are_fresh(tmp_path: Path) -> None:
    assert stale(tmp_path, stubs.SOURCES) == [], "run `make proto`"


def test_a_changed_or_missing_stub_is_seen(tmp_path: Path) -> None:
    committed = tmp_path / "committed"
    shutil.copytree(stubs.SOURCES, committed)
    first, second = sorted(committed.rglob("*_pb2.py"))[:2]
    first.write_text(first.read_text() + "\n")
    second.unlink()
    (tmp_path / "out").mkdir()
    assert stale(tmp_path / "out", committed) == sorted(str(path.relative_to(committed)) for path in (first, second))
