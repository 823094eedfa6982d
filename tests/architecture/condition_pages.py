"""Writes the runbook, the Prometheus rules and the command's words of conditions, from their table:
`python -m tests.architecture.condition_pages`.
"""

import json
import textwrap
from pathlib import Path
from typing import Final

from windrow_proto.conditions import PAGE, ConditionCode, Scope, Severity

ROOT = Path(__file__).parents[2]
RULES: Final = "deploy/prometheus/conditions.yml"
WORDS: Final = "sdk/windrow/conditions.py"
HEAD: Final = """# Conditions

This page is the runbook: what is not as it should be, what follows, and what to do. `make conditions` writes it from
`proto/windrow_proto/conditions.py`; change it there.

Conditions are shown by `windrow host show HOST`, `windrow gpu show GPU`, `windrow doctor` and `windrow up`, on the
pages of the host and of Health, and in the API (`conditions`), each with its remedy. `/metrics` counts them as
`windrow_conditions{code, scope, severity}`, and `deploy/prometheus/conditions.yml` alerts on them.

| severity | a person looks |
|---|---|
| page | at once |
| ticket | within days |
| info | never; it only explains |

| effect | on what the condition is about |
|---|---|
| none | it is offered as before |
| withhold | nothing new starts there while it lasts; what runs goes on |
| degrade | as withhold, and the health of the GPU counts as degraded in its tier |
| fault | its lease ends, and it is offered again only when it was verified |
"""
HEADINGS: Final = {
    Scope.HOST: "A host",
    Scope.GPUS: "All GPUs of a host",
    Scope.GPU: "One GPU or slice: `CODE:GPU`",
    Scope.MASTER: "The Master",
    Scope.ACCESS: "A relay",
}
LINE_CHARS: Final = 120
WORDS_HEAD: Final = '''\
"""A paragraph for each condition of hosts, GPUs, relays and the Master; `make conditions` writes it. Pure."""

from typing import Final

CONDITIONS: Final[dict[str, str]] = {
'''
RULES_HEAD: Final = """# Written by `make conditions` from proto/windrow_proto/conditions.py; change it there.
groups:
  - name: windrow-conditions
    rules:
"""
LASTS: Final = {Severity.PAGE: "0m", Severity.TICKET: "5m"}
"""How long a condition has to last before it is an alert; those for information are none."""


def page() -> str:
    """The runbook: one section for each scope, one heading for each condition."""
    return HEAD + "".join(_section(scope) for scope in Scope)


def rules() -> str:
    """One rule for each condition that a person has to look at."""
    return RULES_HEAD + "".join(_rule(code) for code in ConditionCode if code.severity in LASTS)


def written() -> tuple[tuple[Path, str], ...]:
    """Each file with what it has to hold."""
    return (ROOT / PAGE, page()), (ROOT / RULES, rules()), (ROOT / WORDS, words())


def words() -> str:
    """What `windrow explain` says of each, as a module of the SDK, which does without windrow_proto."""
    return WORDS_HEAD + "".join(_paragraph(code) for code in ConditionCode) + "}\n"


def _paragraph(code: ConditionCode) -> str:
    """As the formatter leaves it: in one line where it fits, else in parentheses."""
    text = f"{code.words} {code.remedy}"
    row = f'    "{code}": {json.dumps(text, ensure_ascii=False)},\n'
    if len(row) <= LINE_CHARS + 1:
        return row
    width = LINE_CHARS - 8
    parts = [text] if len(text) + 2 <= width else textwrap.wrap(text, width - 10, drop_whitespace=False)
    quoted = "".join(f"        {json.dumps(part, ensure_ascii=False)}\n" for part in parts)
    return f'    "{code}": (\n{quoted}    ),\n'


def _section(scope: Scope) -> str:
    rows = [code for code in ConditionCode if code.scope is scope]
    return f"\n## {HEADINGS[scope]}\n" + "".join(
        f"\n### `{code}`\n{code.words} ({code.severity}, {code.effect})\n\n{code.remedy}\n" for code in rows
    )


def _rule(code: ConditionCode) -> str:
    name = "Windrow" + code.name.title().replace("_", "")
    notes = {"summary": code.words, "description": code.remedy, "runbook": code.runbook}
    annotations = ", ".join(f"{key}: {json.dumps(value)}" for key, value in notes.items())
    return (
        f"      - alert: {name}\n"
        f'        expr: windrow_conditions{{code="{code}"}} > 0\n'
        f"        for: {LASTS[code.severity]}\n"
        f"        labels: {{severity: {code.severity}}}\n"
        f"        annotations: {{{annotations}}}\n"
    )


if __name__ == "__main__":
    for path, text in written():
        path.write_text(text, encoding="utf-8")
