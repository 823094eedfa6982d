"""The closing table of the cases: by kind how many rows there are and passed, then each row that did not."""

from collections import Counter, defaultdict

import pytest

from tests.cases.rows import KINDS, ROWS

KEY = "case"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its rows, so that a worker's report carries them."""
    for item in items:
        rows = [str(row) for marker in item.iter_markers(KEY) for row in marker.args]
        if rows and KEY not in dict(item.user_properties):
            item.user_properties.append((KEY, rows))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A row has passed when at least one test played it and none failed."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in ("passed", "failed", "error", "skipped", "xfailed", "xpassed"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", ()):  # a module that cannot be read has none
                if name == KEY and isinstance(value, list):
                    for row in value:
                        counts[row][outcome] += 1
    terminalreporter.section("cases")
    terminalreporter.line(f"  {'kind':<62} rows  passed")
    passed = {row for row, count in counts.items() if count["passed"] and not count["failed"] + count["error"]}
    for kind, said in KINDS.items():
        rows = [row for row in ROWS.values() if row.kind == kind]
        terminalreporter.line(f"  {kind:<8}{said:<56}{len(rows):>3}{sum(row.id in passed for row in rows):>8}")
    for row in ROWS.values():
        if row.id not in passed:
            told = ", ".join(f"{number} {outcome}" for outcome, number in counts[row.id].items()) or "not played"
            terminalreporter.line(f"  {row.id:<6} {row.scenario[:80]}: {told}")
    terminalreporter.line(f"  {len(passed)} of {len(ROWS)} rows passed")
