"""Writes the runbook, the page of XIDs, the command's words of both, and the rules of Prometheus, from their tables:
`python -m tests.architecture.condition_pages`.
"""

import json
import textwrap
from pathlib import Path
from typing import Final

from windrow_master.watch.rules import RULES, Rule
from windrow_proto import xids
from windrow_proto.conditions import PAGE, ConditionCode, Scope

ROOT = Path(__file__).parents[2]
ALERTS: Final = "deploy/prometheus/alerts.yml"
WORDS: Final = "sdk/windrow/conditions.py"
XID_WORDS: Final = "sdk/windrow/xids.py"
HEAD: Final = """# Conditions

This page is the runbook: what is not as it should be, what follows, and what to do. `make conditions` writes it from
`proto/windrow_proto/conditions.py`; change it there.

Conditions are shown by `windrow host show HOST`, `windrow gpu show GPU`, `windrow doctor` and `windrow up`, on the
pages of the host and of Health, and in the API (`conditions`), each with its remedy. Each that a person has to look at
is a rule of [alerts](alerts.md), too. `/metrics` counts them as `windrow_conditions{code, scope, severity}`.

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
ROWS: Final = tuple(xids.XIDS[code] for code in sorted(xids.XIDS))
WORDS_HEAD: Final = '''\
"""A paragraph for each condition of hosts, GPUs, relays and the Master; `make conditions` writes it. Pure."""

from typing import Final

CONDITIONS: Final[dict[str, str]] = {
'''
XID_WORDS_HEAD: Final = '''\
"""A paragraph for each XID, the errors of NVIDIA's driver; `make conditions` writes it. Pure."""

from typing import Final

XIDS: Final[dict[str, str]] = {
'''
XIDS_HEAD: Final = """# XIDs

An XID is the number of an error that NVIDIA's driver reports of a GPU. The page of the GPU lists them, each as an event
`gpu.xid` that says whom it is put down to: the program that rents the GPU, or the host. `windrow explain xid-79` prints
the same. `make conditions` writes this page from `proto/windrow_proto/xids.py`; change it there.

| cause | what follows |
|---|---|
| program | the renter pays on, and the GPU stays on offer; nobody is blamed while nobody rents it |
| hardware, driver | the host's; unless it is only a record, the GPU is faulty, its lease ends, it is verified again |

A number that is not here is put down to the host. Source of the facts: NVIDIA, "Xid Errors", section "Analyzing Xid
Errors with the Xid Catalog", and for older cards its section about older GPUs. The words are ours. A code is
the program's if NVIDIA's device plugin for Kubernetes ignores it, or if the catalogue says that applications cause it.
"""
ALERTS_HEAD: Final = """# Written by `make conditions` from master/windrow_master/watch/rules.py; change it there.
# The Master decides what is told: silences, maintenance and what is grouped count here, too.
groups:
  - name: windrow-master
    rules:
      - alert: WindrowMasterDown
        expr: up{job="windrow-master"} == 0
        for: 1m
        labels: {severity: page}
        annotations: {summary: "The Master does not answer.", description: "`systemctl status windrow-master` on its \
machine, then its log. Until it is back nobody else tells of anything.", runbook: "docs/operating.md"}
      - alert: WindrowStoreFails
        expr: increase(windrow_store_failures_total[5m]) > 0
        for: 0m
        labels: {severity: page}
        annotations: {summary: "The Master could not write to its database.", description: "Look at the database and \
its disk. Alerts that were not written are told once it works.", runbook: "docs/operating.md"}
  - name: windrow-alerts
    rules:
"""


def page() -> str:
    """The runbook: one section for each scope, one heading for each condition."""
    return HEAD + "".join(_section(scope) for scope in Scope)


def xid_page() -> str:
    """The page of XIDs: one heading for each."""
    return XIDS_HEAD + "".join(
        f"\n### `xid-{one.code}`\n{one.meaning[0].upper()}{one.meaning[1:]}. ({one.cause})\n\n{one.remedy}\n"
        for one in ROWS
    )


def alerts() -> str:
    """One rule of Prometheus for each of the Master's, which fires while the Master's alert does."""
    return ALERTS_HEAD + "".join(_rule(rule) for rule in RULES.values())


def written() -> tuple[tuple[Path, str], ...]:
    """Each file with what it has to hold."""
    pages, words_of = ((PAGE, page()), (xids.PAGE, xid_page())), ((WORDS, words()), (XID_WORDS, xid_words()))
    return tuple((ROOT / path, text) for path, text in (*pages, (ALERTS, alerts()), *words_of))


def words() -> str:
    """What `windrow explain` says of each, as a module of the SDK, which does without windrow_proto."""
    return WORDS_HEAD + "".join(_paragraph(code, f"{code.words} {code.remedy}") for code in ConditionCode) + "}\n"


def xid_words() -> str:
    """The same of XIDs."""
    said = ((f"xid-{one.code}", f"{one.name}. Mostly caused by the {one.cause}. {one.remedy}") for one in ROWS)
    return XID_WORDS_HEAD + "".join(_paragraph(code, text) for code, text in said) + "}\n"


def _paragraph(code: str, text: str) -> str:
    """As the formatter leaves it: in one line where it fits, else in parentheses."""
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


def _rule(rule: Rule) -> str:
    name = "Windrow" + "".join(part.title() for part in rule.code.replace(".", "_").split("_"))
    known = next((code.runbook for code in ConditionCode if code == rule.code), "docs/alerts.md")
    notes = {"summary": f"{rule.title}.", "description": rule.remedy, "runbook": known}
    annotations = ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in notes.items())
    return (
        f"      - alert: {name}\n"
        f'        expr: sum by (severity) (windrow_alerts{{rule="{rule.code}",state=~"firing|acknowledged"}}) > 0\n'
        f"        for: 0m\n"
        f"        annotations: {{{annotations}}}\n"
    )


if __name__ == "__main__":
    for path, text in written():
        path.write_text(text, encoding="utf-8")
