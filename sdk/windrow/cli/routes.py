"""`windrow route`: where a workload should run, what it would cost there, and why not elsewhere."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from windrow.cli.context import AsJson, client
from windrow.cli.output import out, print_json, say
from windrow.cli.tables import Column, table_lines
from windrow.errors import InvalidInput
from windrow.words import counted, money_text

FILE_MAX: Final = 1 << 20
"""Bytes of a program, and of an intent."""

Item = dict[str, Any]


def _cents(amount: str | None) -> str | None:
    return None if amount is None else money_text(amount, 2)


def _total(one: Item) -> str | None:
    cost = one["cost_estimate"]
    if cost["total"] is None:
        return None
    return f"{_cents(cost['total'])} ({_cents(cost['low'])} to {_cents(cost['high'])})"


def _starts(one: Item) -> str:
    seconds = one["availability"]["wait_seconds"]["p50"]
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


COLUMNS: Final = (
    Column("BACKEND", lambda r: r["backend"], most=32),
    Column("GPUS", lambda r: f"{r['gpu_count']} x {r['gpu']}" if r["gpu_count"] else r["gpu"], 2, 20),
    Column("USD/H", lambda r: _cents(r["cost_estimate"]["hourly"])),
    Column("TOTAL", _total),
    Column("STARTS", _starts, 1),
    Column("CONFIDENCE", lambda r: r["cost_estimate"]["confidence"], 4),
    Column("SCORE", lambda r: r["score"]),
    Column("USABLE", lambda r: "yes" if r["usable"] else "no"),
    Column("OFFER", lambda r: r["offer"], 3, 32),
)
HELD: Final[dict[bool | None, str]] = {True: "yes", False: "no", None: "-"}
KEPT: Final = (
    Column("CREATED UTC", lambda r: r["at"][:16].replace("T", " "), 1),
    Column("BACKEND", lambda r: r["backend"] or "none", most=32),
    Column("ESTIMATE USD", lambda r: r["cost_estimate"] and _total(r)),
    Column("COST USD", lambda r: _cents(r["cost"])),
    Column("IN RANGE", lambda r: HELD[r["held"]]),
    Column("STATE", lambda r: r["job_state"], 2),
    Column("JOB", lambda r: r["job_id"], most=38),
)
WHY_NOT: Final = (
    Column("BACKEND", lambda r: r["backend"], most=32),
    Column("WHY NOT", lambda r: r["reason"], most=120),
)


def route(
    context: typer.Context,
    program: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Python program; it is read and never run.")
    ] = None,
    intent: Annotated[
        Path | None, typer.Option("--intent", metavar="FILE", help="Task intent as JSON; - for standard input.")
    ] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", min=0, help="GPUs of one host; default: 1.")] = None,
    cpus: Annotated[int | None, typer.Option("--cpus", min=1, help="CPUs; default: 1.")] = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help='GPU, such as h100 or "NVIDIA A100".')] = None,
    gpu_memory_gb: Annotated[float | None, typer.Option(help="Memory of one GPU in GiB.")] = None,
    hours: Annotated[float | None, typer.Option(help="How long it runs; without it there is no total.")] = None,
    interruptible: Annotated[bool, typer.Option("--interruptible", help="Also spot, which may be taken back.")] = False,
    checkpoint_minutes: Annotated[float | None, typer.Option(help="Minutes between two checkpoints.")] = None,
    dataset_gb: Annotated[float | None, typer.Option(help="Data to be brought there, in GB.")] = None,
    results_gb: Annotated[float | None, typer.Option(help="Results to be brought home, in GB.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="The most that the run may cost, in USD.")] = None,
    optimize: Annotated[
        Literal["balanced", "cost", "speed"] | None, typer.Option("--optimize", help="What matters most.")
    ] = None,
    country: Annotated[
        list[str] | None, typer.Option("--country", metavar="CC", help="Country of the data centre; repeatable.")
    ] = None,
    kept: Annotated[
        bool, typer.Option("--kept", help="List kept estimates, each with its job and what that cost.")
    ] = False,
    why_not: Annotated[bool, typer.Option("--why-not", help="Also each place that cannot do it, and why.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say where a workload should run, what it would cost there, and why. Nothing is started."""
    if kept:
        _print_kept(client(context).items("/routes"), as_json)
        return
    needs = {
        "gpu_count": gpus,
        "cpu_count": cpus,
        "gpu": gpu,
        "gpu_memory_gb": gpu_memory_gb,
        "duration_hours_estimated": hours,
        "interruptible": interruptible or None,
        "checkpoint_frequency_minutes": checkpoint_minutes,
        "dataset_size_gb": dataset_gb,
        "results_size_gb": results_gb,
        "max_cost_usd": max_cost,
        "countries": country or None,
    }
    body = {} if intent is None else _intent(intent)
    given = {name: value for name, value in needs.items() if value is not None}
    if given:
        body["requirements"] = {**body.get("requirements", {}), **given}
    if optimize is not None:
        body["preferences"] = {**body.get("preferences", {}), "optimize_for": optimize}
    if program is not None and (code := _code(program)) is not None:
        body["code"] = code
    answer = client(context).request("POST", "/route", body=body)
    if as_json:
        print_json(answer)
        return
    _print(answer, why_not)


def forecast_text(one: Item, job: str) -> str:
    """A kept route's forecast, and whether it held where this is the job that it is set beside."""
    total = _total(one) if one["cost_estimate"] else None
    words = {True: ", cost in this range", False: ", cost not in this range", None: ""}[
        one["held"] if one["job_id"] == job else None
    ]
    if one["job_id"] not in (None, job):
        words = f", of job {one['job_id']}"
    return f"{total + ' USD' if total else 'none: its length was not known'}{words}; {one['route_id']}"


def _print_kept(items: Iterable[Item], as_json: bool) -> None:
    found = list(items)
    if as_json:
        print_json(found)
        return
    if not found:
        say("No route is kept yet. A job follows one: windrow job submit --optimize cost -- COMMAND")
        return
    for line in table_lines(KEPT, found, out.width):
        out.print(line, no_wrap=True, overflow="ignore", crop=False, markup=False, highlight=False)
    judged = [one["held"] for one in found if one["held"] is not None]
    if judged:
        say(f"{sum(judged)} of {counted(len(judged), 'job')} cost what was estimated; about 8 of 10 are expected to.")


def _print(answer: Item, why_not: bool) -> None:
    analysis = answer["analysis"]
    if analysis and analysis["reason"]:
        say(analysis["reason"])
    elif analysis:
        for fact in analysis["facts"]:
            say(f"line {fact['line']}: {fact['name'].replace('_', ' ')} {fact['value']} ({fact['confidence']})")
        if analysis["gpu_memory_gb"] is not None:
            say(f"guessed from the model's size: {analysis['gpu_memory_gb']:.0f} GiB of GPU memory")
    ranked, refused = answer["recommendations"], answer["refused"]
    if ranked:
        for line in table_lines(COLUMNS, ranked, out.width):
            out.print(line, no_wrap=True, overflow="ignore", crop=False, markup=False, highlight=False)
        best = next((one for one in ranked if one["backend"] == answer["chosen"]), ranked[0])
        for sign, words in (("+", best["pros"]), ("-", best["cons"])):
            for word in words:
                say(f"{best['backend']} {sign} {word}")
        if best.get("host"):
            say(f"Run it there: windrow run --host {best['host']} -- COMMAND")
        elif answer["chosen"]:
            say(f"Run it there: windrow job submit --tier {best['offer']} -- COMMAND, or --optimize cost")
        else:
            say("None of these can be used now: they are not connected.")
    else:
        say("No place can do this work.")
    if why_not or not ranked:
        for line in table_lines(WHY_NOT, refused, None):
            out.print(line, no_wrap=True, overflow="ignore", crop=False, markup=False, highlight=False)
    elif refused:
        say(f"Not shown, {counted(len(refused), 'place')} that cannot do it: --why-not says why.")


def _code(program: Path) -> str | None:
    """The text of a program; None, with a word about it, where it is too long to be read."""
    code = _read(program, FILE_MAX + 1)
    if len(code.encode()) <= FILE_MAX:
        return code
    say(f"{program} has more than {FILE_MAX >> 20} MiB: from your requirements only.")
    return None


def _read(path: Path, most: int) -> str:
    """The first so many bytes of a file, without the mark that editors put at the beginning."""
    try:
        if str(path) == "-":
            content = sys.stdin.buffer.read(most)
        else:
            with path.open("rb") as file:
                content = file.read(most)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}") from None
    return content.decode("utf-8-sig", "replace")


def _intent(path: Path) -> Item:
    try:
        found = json.loads(_read(path, FILE_MAX))
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is no JSON.") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} is no task intent: a JSON object is expected.")
    return found
