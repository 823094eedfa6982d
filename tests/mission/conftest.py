"""Prints, after the mission's tests: sentence, command, result; and the sentences that are still open."""

import pytest

from tests.mission.sentences import BY_ID, SENTENCES

KEY = "sentence"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of `make mission`."""
    results: dict[str, set[str]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and (report.when == "call" or not report.passed):
                for name, value in report.user_properties:
                    if name == KEY:
                        results.setdefault(str(value), set()).add(report.outcome)
    if not results:
        return
    terminalreporter.section("the mission, sentence by sentence")
    for sentence in SENTENCES:
        if sentence.id in results:
            word = "works" if results[sentence.id] == {"passed"} else "/".join(sorted(results[sentence.id])).upper()
            _print(terminalreporter, word, sentence.text, f"shown by: {sentence.shows}")
    for sentence in SENTENCES:
        if sentence.id not in results and sentence.elsewhere:
            _print(terminalreporter, "elsewhere", sentence.text, f"shown by: {sentence.elsewhere}")
    open_ = [sentence for sentence in SENTENCES if sentence.missing]
    for sentence in open_:
        _print(terminalreporter, "open", sentence.text, f"missing: {sentence.missing}")
    shown = sum(found == {"passed"} for found in results.values())
    terminalreporter.line(f"{shown} of {len(BY_ID)} sentences shown here, {len(open_)} open")


def _print(terminalreporter: pytest.TerminalReporter, word: str, text: str, more: str) -> None:
    terminalreporter.line(f"{word:<10} {text}")
    terminalreporter.line(f"{'':<10}   {more}")
