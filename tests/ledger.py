"""The pytest plugin that says which services are used and, at the end, what was proved on this machine and what not.

A test declares what it shows with `@pytest.mark.proves("containers on a real Docker")`, and where something else than
`make test` would show it, with `by="the command"`.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from tests.services import PROVISIONED, found

KEY = "proves"
DEFAULT_COMMAND = PROVISIONED
LONG_COMMAND = "make long"


@dataclass(slots=True)
class Claim:
    """The outcome of the tests of one claim."""

    command: str
    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)

    @property
    def is_proved(self) -> bool:
        return self.passed > 0 and self.failed == 0 and not self.skipped


def pytest_report_header() -> list[str]:
    """One line that names what the suites run on."""
    parts = [f"{service.name} {service.version or 'absent'}" for service in found().values()]
    return ["services: " + "; ".join(parts)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each item its claims; `make test` (SHORT=1) plays no long one."""
    for item in items:
        if is_left_out(item):
            item.add_marker(pytest.mark.skip(reason=f"`{LONG_COMMAND}` plays it"))
        for marker in item.iter_markers(KEY):
            command = LONG_COMMAND if is_left_out(item) else str(marker.kwargs.get("by", DEFAULT_COMMAND))
            item.user_properties.append((KEY, [*map(str, marker.args), command]))


def is_left_out(item: pytest.Item) -> bool:
    """Whether it is a long test in a short run."""
    return is_short() and item.get_closest_marker("long") is not None


def is_short() -> bool:
    """Whether this is `make test`."""
    return os.environ.get("SHORT", "") not in {"", "0"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table: proved here, not proved here, the command that would."""
    reports = (
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
    )
    claims = gather(reports)
    if claims:
        terminalreporter.section("proved on this machine")
        for line in table(claims):
            terminalreporter.line(line)


def gather(reports: Iterable[pytest.TestReport]) -> dict[str, Claim]:
    """Sum up by claim. Setups and teardowns count only when they did not pass."""
    claims: dict[str, Claim] = {}
    for report in reports:
        for name, value in report.user_properties:
            if name != KEY or not isinstance(value, list):
                continue
            what, command = str(value[0]), str(value[-1])
            claim = claims.setdefault(what, Claim(command))
            if report.failed:
                claim.failed += 1
            elif report.skipped:
                claim.skipped.append(_reason(report))
            elif report.when == "call":
                claim.passed += 1
    return claims


def table(claims: dict[str, Claim]) -> list[str]:
    """The closing table as lines; what is not proved comes last, each with its reason and its command."""
    proved, missing = [], []
    width = max(map(len, claims), default=0)
    for what, claim in sorted(claims.items()):
        if claim.is_proved:
            proved.append(f"  yes  {what:<{width}}  tests: {claim.passed}")
        else:
            reason = f"{claim.failed} failed" if claim.failed else next(iter(claim.skipped), "did not run")
            missing += [f"  NO   {what:<{width}}  {reason}", f"       would be proved by: {claim.command}"]
    return [*proved, *missing]


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr or "skipped")
    return text.removeprefix("Skipped: ").splitlines()[0]
