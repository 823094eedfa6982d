"""docs/architecture/limits.md says what the code does: each value is its constant's, and no queue is missing."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from windrow_master.shares import ShareLimits
from windrow_proto.units import DAY, GIB, HOUR, KIB, MIB, MILLISECOND, MINUTE, SECOND

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "architecture" / "limits.md"
PACKAGES = tuple(f"{name}/windrow_{name}" for name in ("agent", "access", "master", "proto", "tunnel", "up"))
QUEUES = {"deque", "Queue", "SimpleQueue", "LifoQueue", "PriorityQueue"}
ROW = re.compile(
    r"^\| `(?P<module>[a-z_.]+)(?::(?P<name>[A-Za-z_.]+))?` \| (?P<value>[^|]+) \| [^|]+ \| [^|]+ \|$", re.M
)
BYTES = ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
SPANS = ((366 * DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (MILLISECOND, "ms"))


def rows() -> list[re.Match[str]]:
    return list(ROW.finditer(PAGE.read_text(encoding="utf-8")))


def shown(name: str, value: int, is_bytes: bool) -> str:
    """A constant as the page writes it: in the largest unit that divides it, by what it is."""
    if is_bytes or "bytes" in name.lower():
        size, unit = next((one for one in BYTES if value % one[0] == 0), (1, "B"))
        return f"{value // size:,} {unit}"
    if "_ns" in name.lower():
        size, unit = next(one for one in SPANS if value % one[0] == 0)
        return f"{value // size * (366 if unit == 'd' else 1):,} {unit}"
    return f"{value:,}"


def queues() -> Iterator[str]:
    """The modules that make a queue."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                named = node.func if isinstance(node, ast.Call) else None
                name = getattr(named, "attr", getattr(named, "id", ""))
                is_made_later = isinstance(node, ast.keyword) and getattr(node.value, "id", "") in QUEUES
                if name in QUEUES or is_made_later:
                    yield ".".join(path.relative_to(ROOT / package.split("/")[0]).with_suffix("").parts)


def constant(row: re.Match[str]) -> int:
    found = importlib.import_module(row["module"])
    for part in row["name"].split("."):
        found = getattr(found() if isinstance(found, type) else found, part)
    assert isinstance(found, int | float) and found == int(found)
    return int(found)


@pytest.mark.parametrize("row", [row for row in rows() if row["name"]], ids=lambda row: row[0].split("`")[1])
def test_the_page_gives_the_codes_value(row: re.Match[str]) -> None:
    assert row["value"] == shown(row["name"], constant(row), is_bytes=row["value"].endswith("iB"))


def test_every_line_of_the_tables_is_read() -> None:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert len(lines) == len(rows()) >= 60


def test_every_module_that_queues_has_a_line() -> None:
    told = {row["module"] for row in rows()}
    found = set(queues())
    assert len(found) >= 20
    assert not found - told


def test_every_thing_that_accounts_share_has_its_three_lines() -> None:
    told = {f"{row['module']}:{row['name']}" for row in rows()}
    found = list(shared_things())
    assert len(found) >= 14
    for where, limits in found:
        wanted = {"limit", "per_account", *(["reserve"] if limits.reserve else [])}
        assert {f"{where}.{part}" for part in wanted} <= told
        assert limits.per_account + limits.reserve < limits.limit, f"one account takes all of {where}"


def shared_things() -> Iterator[tuple[str, ShareLimits]]:
    """The constants of the Master that divide something between accounts."""
    for path in sorted((ROOT / "master" / "windrow_master").rglob("*.py")):
        if "ShareLimits(" in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(ROOT / "master").with_suffix("").parts)
            module = importlib.import_module(name)
            for constant_name, value in vars(module).items():
                if isinstance(value, ShareLimits):
                    yield f"{name}:{constant_name}", value
