"""Output of the command: tables and JSON on standard output, progress and errors on standard error."""

import json
import re
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from windrow import __version__
from windrow.cli.flags import as_flags
from windrow.config import OWN_TOKEN
from windrow.errors import ApiProblem, WindrowClientError

ABSENT = "–"
LINES_MAX = 20
"""Reasons that an error prints: fields of a form may have many."""
PIPE_WIDTH = 400
"""Columns where nobody looks at a screen: a row stays on one line for grep and awk."""

_IDS: Final = re.compile(r"\S*://\S*|\b[a-z]{2,12}_[0-9a-f]{32}\b|\b(?:GPU|MIG|MPS)-[0-9a-f]{8}-[0-9a-f-]+")

err = Console(stderr=True, highlight=False, emoji=False)
out = Console(
    highlight=False, emoji=False, soft_wrap=True, width=None if sys.stdout and sys.stdout.isatty() else PIPE_WIDTH
)


def plain(value: Any) -> str:
    """A value as one line of printable text: a stranger's name cannot move the cursor or change colours."""
    if value is None or value == "":
        return ABSENT
    text = str(value)
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def brief(text: Any) -> Any:
    """The same text with its ids short; those in an address stay whole. Every command takes short ones."""
    from windrow.cli.resolving import short  # which reads this module

    return text and _IDS.sub(lambda match: match[0] if "://" in match[0] else short(match[0]), str(text))


def shown(text: str, to: Console) -> str:
    """The text as it goes there: a person at a terminal has its ids short, a file or a pipe has them whole."""
    return str(brief(text)) if to.file.isatty() else text


def print_ids(ids: Iterable[str]) -> None:
    """Ids on standard output, one a line."""
    sys.stdout.write("".join(f"{shown(one, out)}\n" for one in ids))


def print_json(value: Any) -> None:
    """Returns one JSON document, indented for a terminal, with control characters as escapes."""
    text = json.dumps(value, indent=2 if sys.stdout.isatty() else None, ensure_ascii=False)
    if not text.replace("\n", "").isprintable():
        text = "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Name and value, a pair a line."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in pairs:
        table.add_row(f"[bold]{escape(name)}[/]", escape(shown(plain(value), out)))
    out.print(table)


def say(text: str) -> None:
    """A line for the person, on standard error; of no text, an empty one."""
    _tell(escape(shown(plain(text), err)) if text else "")


def _tell(markup: str) -> None:
    """A line on standard error: whole where no terminal shows it, so that a search of a log finds its words."""
    err.print(markup, soft_wrap=not err.is_terminal)


def print_whole(text: str, to: Console = out) -> None:
    """A line that is not broken however narrow the screen is: an address is for copying."""
    to.print(escape(shown(plain(text), to)), soft_wrap=True)


def print_error(error: WindrowClientError) -> None:
    """Prints the error, the reasons where there are any, and the id to quote when asking somebody."""
    said, *more = (as_flags(error.detail) if isinstance(error, ApiProblem) else str(error)).splitlines() or [""]
    print_problem(said)
    for line in more[:LINES_MAX]:
        print_whole(f"  {line}", err)
    if isinstance(error, ApiProblem):
        for line in error.lines[:LINES_MAX]:
            print_whole(f"  - {as_flags(line)}", err)
        if error.request_id:
            _tell(f"  [dim]code {escape(error.code)}, request {escape(error.request_id)}[/]")


def print_problem(text: str) -> None:
    """Prints what ended the command."""
    _tell(f"[red]Error:[/] {escape(shown(plain(text), err))}")


def print_bug(error: Exception) -> None:
    """Prints in one line what of ours failed, and where, without the values of any variable."""
    at = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" at {Path(at[0].filename).name}:{at[0].lineno}" if at else ""
    words = re.sub(OWN_TOKEN, "***", str(error))
    print_problem(
        f"This is a fault of windrow {__version__}: {type(error).__name__}{where}: {words[:200]}. Please report it, "
        "with the output of the same command under WINDROW_TRACEBACK=1."
    )


def size_text(count: Any) -> str:
    """Bytes for people, in powers of 1024; absent stays absent."""
    if count is None:
        return ABSENT
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return ABSENT


def field_text(value: Any, unit: str) -> str:
    """A field of a GPU for people, by the API's unit; absent stays absent."""
    if value is None:
        return ABSENT
    if unit == "bool":
        return "yes" if value else "no"
    if unit == "ratio":
        return ratio_text(value)
    if unit in ("By", "By/s"):
        return size_text(value) + unit.removeprefix("By")
    if unit == "Hz":
        return f"{value / 1e6:.0f} MHz"
    shown = {"Cel": "°C", "1": ""}.get(unit, unit)
    return f"{value:g} {shown}".strip() if isinstance(value, int | float) else str(value)


def rate_text(bits_per_s: Any) -> str:
    """Bits per second for people; absent stays absent."""
    if bits_per_s is None:
        return ABSENT
    value = float(bits_per_s)
    for unit in ("bit/s", "kbit/s", "Mbit/s", "Gbit/s"):
        if value < 1000 or unit == "Gbit/s":
            return f"{value:.0f} {unit}"
        value /= 1000
    return ABSENT


def ratio_text(ratio: Any) -> str:
    """A ratio in [0, 1] as percent; absent stays absent."""
    return ABSENT if ratio is None else f"{float(ratio) * 100:.0f} %"
