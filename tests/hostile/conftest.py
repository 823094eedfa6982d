"""The closing table of cases: each row of rows.py with how many tests guard it and how they went."""

from collections import Counter, defaultdict

import pytest

from tests.hostile import IS_LONG
from tests.hostile.rows import OPEN, ROWS
from tests.ledger import is_left_out
from tests.support.schema import migrated_once as migrated_once

KEY = "row"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its rows, so that a worker's report carries them."""
    for item in items:
        rows = [str(row) for marker in item.iter_markers(KEY) for row in marker.args]
        is_new = "/hostile/" in str(item.path) and KEY not in dict(item.user_properties)
        if rows and is_new and not is_left_out(item):
            item.user_properties.append((KEY, rows))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line under `make test`; the whole table under `make hostile`."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", ()):  # a module that cannot be read has none
                if name == KEY and isinstance(value, list):
                    counts.update({row: counts[row] + Counter([outcome]) for row in value})
    if not counts:
        return
    terminalreporter.section("hostile cases")
    held = [row for row, count in counts.items() if count["passed"] and set(count) == {"passed"}]
    if IS_LONG:
        for row in ROWS:
            told = ", ".join(f"{number} {outcome}" for outcome, number in counts[row].items()) or OPEN.get(
                row, "not played"
            )
            terminalreporter.line(f"  {'held' if row in held else 'OPEN'}  {row:<4} {ROWS[row]:<72} {told}")
    terminalreporter.line(f"  {len(held)} of {len(ROWS)} cases held, {sum(map(Counter.total, counts.values()))} tests")
