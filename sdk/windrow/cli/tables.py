"""Lists of the command: what each can be narrowed to, and how it is shown on a screen, in a pipe and as JSON."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import wraps
from inspect import Parameter, signature
from itertools import islice, takewhile
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

import typer
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from windrow.cli.output import ABSENT, brief, out, plain, print_json, say
from windrow.cli.request import parse_span
from windrow.cli.resolving import short
from windrow.client import Client
from windrow.errors import InvalidInput
from windrow.words import money_or_none

Item = dict[str, Any]
F = TypeVar("F", bound=Callable[..., None])
Format = Literal["table", "wide", "json", "tsv"]

GAP: Final = "  "
UNITS: Final = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))
LEAST_WIDTH: Final = 4
"""Columns of the screen that a column keeps on any screen."""


class Column(NamedTuple):
    """One column of a list. read: the whole value of an item. rank: the highest is dropped first where the screen is
    narrow; 0 is never dropped. most: the widest that it is on a screen. show: the value as a screen has it.
    """

    name: str
    read: Callable[[Item], Any]
    rank: int = 0
    most: int = 32
    show: Callable[[Any], Any] = lambda value: value


class Table(NamedTuple):
    """A list. empty: the sentence where it is. name: what `--name` compares. states: what `--state` compares, and
    state_words: all that it can be. at: the time of an item of a list that is newest first, for `--since`. owner: the
    id of an item's account, for `--mine`. has_ended: true of work that only `--all` and `--state` show.
    """

    columns: Sequence[Column]
    empty: str
    name: Callable[[Item], Any] | None = None
    states: Callable[[Item], Sequence[Any]] | None = None
    at: Callable[[Item], Any] | None = None
    owner: Callable[[Item], Any] | None = None
    has_ended: Callable[[Item], bool] | None = None
    state_words: Sequence[str] = ()


def id_column(read: Callable[[Item], Any] = lambda item: item["id"], name: str = "ID", rank: int = 0) -> Column:
    """A column of ids, which a screen shows short; every command takes them so."""
    return Column(name, read, rank, show=lambda value: value and short(str(value)))


def money_column(name: str, read: Callable[[Item], Any], rank: int = 0) -> Column:
    """A column of amounts, which a screen shows rounded; absent stays absent."""
    return Column(name, read, rank, show=money_or_none)


def time_column(name: str, read: Callable[[Item], Any], rank: int = 0) -> Column:
    """A column of times, which a screen shows as the time since then."""
    return Column(name, read, rank, show=ago)


def spoken(code: Any) -> Any:
    """A code of the API in words, as a screen shows it: `timed out`; absent stays absent."""
    return code and str(code).replace("_", " ")


def roles_text(roles: Any) -> Any:
    """Roles in words, beside names that stay as they are; absent stays absent."""
    return roles and re.sub(r"\borg_(?=owner|admin|billing|auditor)", "org ", str(roles))


@dataclass(frozen=True, slots=True)
class View:
    """One list as a command line asks for it."""

    table: Table
    form: Format
    state: str | None = None
    name: str | None = None
    since: datetime | None = None
    mine: bool = False
    limit: int | None = None
    all: bool = False

    @property
    def is_json(self) -> bool:
        return self.form == "json"

    @property
    def exact_name(self) -> str | None:
        """The name, for a Master that narrows the list itself; None where it is a pattern."""
        return None if self.name is None or set("*?[") & set(self.name) else self.name

    def print(self, api: Client | None, items: Iterable[Item]) -> None:
        """Print those of the items that are asked for. api: None of a list without `--mine`."""
        hidden: list[Item] = []
        found = islice(self._wanted(api, items, hidden), self.limit)
        if self.is_json:
            print_json(list(found))
            return
        rows = list(found)
        if rows and self.form == "tsv":
            for line in tsv_lines(self.table.columns, rows):
                sys.stdout.write(line + "\n")
            sys.stdout.flush()
        elif rows:
            width = None if self.form == "wide" else out.width
            header, *lines = table_lines(self.table.columns, rows, width)
            out.print(Text(header, style="bold"), no_wrap=True, overflow="ignore", crop=False)
            for line in lines:
                out.print(Text(line), no_wrap=True, overflow="ignore", crop=False)
        if not rows:
            say("Nothing matches." if self._is_narrowed or hidden else self.table.empty)
        if hidden and (not rows or out.is_terminal):
            say(f"{len(hidden)} that ended are not shown: --all shows them.")

    @property
    def _is_narrowed(self) -> bool:
        return any((self.state, self.name, self.since, self.mine))

    def _wanted(self, api: Client | None, items: Iterable[Item], hidden: list[Item]) -> Iterator[Item]:
        table, me = self.table, api.get("/me")["account"]["id"] if self.mine and api else None
        if self.since is not None and table.at is not None:
            at, since = table.at, self.since
            items = takewhile(lambda item: not at(item) or time_of(at(item)) >= since, items)
        for item in items:
            if self.name is not None and table.name and not _is_named(str(table.name(item)), self.name):
                continue
            if me is not None and table.owner and table.owner(item) != me:
                continue
            if self.state is not None and table.states:
                words = {str(word).casefold() for word in table.states(item)}
                if self.state.casefold() not in words:
                    continue
            elif table.has_ended and not self.all and table.has_ended(item):
                hidden.append(item)
                continue
            yield item


def _is_named(name: str, pattern: str) -> bool:
    """True also of a code that is written as a screen shows it."""
    return fnmatchcase(name, pattern) or fnmatchcase(spoken(name), pattern)


def lists(table: Table, limit: int | None = None) -> Callable[[F], F]:
    """Give a command the options that fit this table; it takes them as `view`. limit: the most items, if not told."""

    def given(command: F) -> F:
        @wraps(command)
        def run(**asked: Any) -> None:
            own = {name: asked.pop(name) for name in names if name in asked}
            form = "json" if asked.pop("as_json") else asked.pop("output") or _usual_form()
            if asked.get("state") is not None:
                asked["state"] = state_of(table, asked["state"])
            if (since := asked.pop("since", None)) is not None:
                asked["since"] = since_of(since)
            asked.pop("output", None)
            command(**own, view=View(table, form, **asked))

        told = [one for one in signature(command).parameters.values() if one.name != "view"]
        names = {one.name for one in told}
        options = [one for one in _options(table, limit) if one.name not in names]
        kept = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in told]
        run.__signature__ = signature(command).replace(parameters=[*kept, *options])  # type: ignore[attr-defined]  # for Typer
        return run  # type: ignore[return-value]  # Typer calls it by name

    return given


def _usual_form() -> Format:
    return "table" if out.is_terminal else "tsv"


def _options(table: Table, limit: int | None) -> list[Parameter]:
    found: list[tuple[str, Any, Any, Any]] = []
    if table.states:
        found.append(("state", str | None, None, typer.Option("--state", help="Only those in this state.")))
    if table.name:
        found.append(("name", str | None, None, typer.Option("--name", help="Only this name; * stands for any text.")))
    if table.at:
        help_text = "Only from then on: 2h, 3d, or a time as 2027-01-15T08:00:00Z."
        found.append(("since", str | None, None, typer.Option("--since", help=help_text)))
    if table.owner:
        found.append(("mine", bool, False, typer.Option("--mine", help="Only those of your account.")))
    if table.has_ended:
        found.append(("all", bool, False, typer.Option("--all", "-a", help="Also those that ended.")))
    found.append(("limit", int | None, limit, typer.Option("--limit", min=1, help="At most this many.")))
    help_text = "table, wide (all columns, whole ids), json or tsv; default: table on a screen, else tsv."
    found.append(("output", Format | None, None, typer.Option("--output", "-o", help=help_text, show_default=False)))
    found.append(("as_json", bool, False, typer.Option("--json", help="One JSON document on standard output.")))
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
        for name, kind, default, option in found
    ]


def state_of(table: Table, text: str) -> str:
    """A state that things of this list can be in, as the Master writes it; raises InvalidInput."""
    for word in table.state_words:
        if word.casefold() == text.casefold().replace(" ", "_"):
            return word
    raise InvalidInput(f"--state {text}: there is no such state. There are: {', '.join(table.state_words)}.")


def since_of(text: str) -> datetime:
    """A span before now, or a time; raises InvalidInput."""
    try:
        return time_of(text)
    except ValueError:
        pass
    try:
        return datetime.now(UTC) - timedelta(seconds=parse_span(text))
    except (InvalidInput, OverflowError):
        raise InvalidInput(f"--since {text}: write 30m, 2h, 3d, or a time as 2027-01-15T08:00:00Z.") from None


def time_of(text: str) -> datetime:
    """A time as the Master writes it; of none told its zone, UTC. Raises ValueError."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def ago(at: Any) -> Any:
    """The time from then to now, or from now to then, with one unit; absent stays absent."""
    try:
        seconds = (datetime.now(UTC) - time_of(str(at))).total_seconds()
    except ValueError:
        return at
    size = abs(seconds)
    unit, letter = next((one for one in UNITS if size >= 2 * one[0]), UNITS[-1])
    span = f"{size / unit:.0f}{letter}"
    return f"in {span}" if seconds < 0 else f"{span} ago"


def tsv_lines(columns: Sequence[Column], rows: Iterable[Item]) -> Iterator[str]:
    """The names of all columns, and all values whole, with tabs between them; what is absent is empty."""
    yield "\t".join(column.name for column in columns)
    for item in rows:
        values = (column.read(item) for column in columns)
        yield "\t".join("" if value in (None, "", ABSENT) else plain(value) for value in values)


def table_lines(columns: Sequence[Column], rows: Sequence[Item], width: int | None) -> list[str]:
    """The names of columns, and a line for each row, as wide as the screen; width: None shows all, and whole."""
    cells = [
        [
            column.name,
            *(plain(column.read(item) if width is None else brief(column.show(column.read(item)))) for item in rows),
        ]
        for column in columns
    ]
    whole = [max(map(cell_len, column)) for column in cells]
    shown = list(range(len(columns)))
    widths = dict(zip(shown, whole, strict=True))
    if width is not None:
        widths = _fitted(columns, whole, width)
        shown = sorted(widths)
    lines = []
    for row in range(len(rows) + 1):
        parts = [_cut(cells[number][row], widths[number]) for number in shown]
        lines.append(GAP.join(parts).rstrip())
    return lines


def _fitted(columns: Sequence[Column], whole: Sequence[int], width: int) -> dict[int, int]:
    """The columns that fit, by number, with the width of each."""
    least = {number: min(whole[number], max(one.most, len(one.name))) for number, one in enumerate(columns)}
    for number in sorted(least, key=lambda number: (columns[number].rank, number), reverse=True):
        if _total(least) > width and columns[number].rank:
            del least[number]
    while _total(least) > width and max(least.values()) > LEAST_WIDTH:
        least[max(least, key=lambda number: least[number])] -= 1
    for number in least:
        least[number] = min(whole[number], least[number] + max(width - _total(least), 0))
    return least


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _cut(text: str, width: int) -> str:
    return set_cell_size(text, width) if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"
