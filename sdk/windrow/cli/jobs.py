"""`windrow job`: submit a command, a script or a folder; look, hold, follow the log, fetch what it left, cancel."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from windrow import routing
from windrow.cli import completing, quoting, resolving
from windrow.cli.bringing import AllowExecutables, IncludeSecrets, exit_unless_whole, say_report
from windrow.cli.cluster_text import print_plan, print_refusal, request_facts, state_text, try_rows, usage_rows
from windrow.cli.clusters import Env, EnvFile, Gpu, Login, await_volumes, login_part
from windrow.cli.context import AsJson, Yes, client
from windrow.cli.exits import EXIT_FAILURE, EXIT_OK
from windrow.cli.findings import print_findings
from windrow.cli.flags import options
from windrow.cli.kept import variables
from windrow.cli.output import facts, print_ids, print_json, say, size_text
from windrow.cli.queueing import NotThere, Weights, explain_work, queue_rows
from windrow.cli.request import body, name_from, parse_array, parse_begin, parse_gpu, parse_span, read_requirements
from windrow.cli.routes import forecast_text
from windrow.cli.streams import ProgramOutput, Raw, say_unsent_input
from windrow.cli.tables import Column, Table, View, id_column, lists, money_column, time_column
from windrow.client import Client
from windrow.errors import ApiProblem, InvalidInput, WindrowClientError, refusal_lines
from windrow.fields import JOB
from windrow.folder import transfer
from windrow.folder.sending import Parcel, named, single, survey
from windrow.folder.transfer import bring
from windrow.words import counted, money_text, seconds_text, state_name

job_app = typer.Typer(
    help="Jobs: commands that wait for a GPU, run to the end, and keep their log and files.", no_args_is_help=True
)

Which = Annotated[str, typer.Argument(metavar="NAME|ID", help="Name or id of the job.", autocompletion=completing.jobs)]
Argv = Annotated[list[str] | None, typer.Argument(help="The command, after --.")]
Attempt = Annotated[int | None, typer.Option("--attempt", min=1, help="Number of the attempt; default: the last one.")]
Script = Annotated[Path | None, typer.Option("--script", help="Python or shell script to run; only this file is sent.")]
Folder = Annotated[Path | None, typer.Option("--folder", help="Folder to send; default: the current one.")]
Files = Annotated[bool, typer.Option(help="Send the folder.")]
Requirements = Annotated[
    Path | None, typer.Option("--requirements", help="File that lists Python packages to install before the command.")
]
With = Annotated[list[str] | None, typer.Option("--with", help="Python package to install, as numpy==2.4; repeatable.")]
Array = Annotated[
    str | None,
    typer.Option(
        "--array",
        metavar="N|N%M",
        help="Start N copies, numbered by WINDROW_ARRAY_INDEX from 0; with %M at most M of them run at once.",
    ),
]

Optimize = Annotated[
    Literal["balanced", "cost", "speed"] | None,
    typer.Option("--optimize", help="Let the Master choose the place, by this. Without --gpu it gets no GPU."),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        min=0.01,
        help="With --optimize or --backend: leave out places that cost more, and end it before it costs more, in USD "
        "for each job.",
    ),
]
Hours = Annotated[
    float | None, typer.Option("--hours", help="With --optimize: how long it runs, so that its cost is known.")
]

WAIT_S = 7 * 86_400.0
AFTER = {"after": "Comes after", "after_any": "After the end of", "after_failure": "After the failure of"}
"""Fields that name jobs, and how they are shown."""
ENDED = resolving.JOB_ENDED
WAITING = ("Submitted", "Queued", "Migrating")
"""States in which a job can be held and released."""
HOLDING = ("Starting", "Running", "Checkpointing")
GOING = (*WAITING, *HOLDING)


def job_id(api: Client, name: str, *, shows: bool = False) -> str:
    """The id of a job, or of the newest of this name; `shows` as for `found`. Raises NotFound, InvalidInput."""
    return resolving.found(api, resolving.JOBS, name, newest=True, shows=shows)


def _meant(api: Client, text: str, states: Sequence[str]) -> list[str]:
    """The ids of the jobs that a verb is about: of the name of an array, all of it in one of these states; else of the
    newest of this name that has not ended. Raises NotFound, InvalidInput."""
    found = resolving.found(api, resolving.LIVING_JOBS, text, newest=True)
    one = api.job(found)
    if text != one["name"] or not one["request"]["array_size"]:
        return [found]
    copies = (job for job in api.items("/jobs", name=text) if job["group_id"] == one["group_id"])
    return [job["id"] for job in copies if job["state"] in states] or [found]


def _acted(context: typer.Context, job: str, verb: str, states: Sequence[str], as_json: bool) -> None:
    api = client(context)
    items = [api.request("POST", f"/jobs/{one}/{verb}") for one in _meant(api, job, states)]
    if as_json:
        print_json(items if len(items) > 1 else items[0])
        return
    said = [f"held by {one['held_by']}" if one["held_by"] else one["reason"] for one in items]
    if len(items) > 1:
        totals = Counter(
            state_name(one["state"]) + (f" ({str(why).rstrip('.')})" if why else "")
            for one, why in zip(items, said, strict=True)
        )
        told = "; ".join(f"{count} {state}" for state, count in totals.items())
        say(f"{counted(len(items), 'job')} of {items[0]['name']}: {told}.")
    else:
        say(state_text(resolving.job_label(items[0]), items[0]["state"], said[0]))


def _each_id(api: Client, names: Iterable[str]) -> list[str]:
    """The ids of these jobs; a name that an array has means all of it. Raises NotFound, InvalidInput."""
    found = ((name, job_id(api, name)) for name in names)
    return [each for name, one in found for each in ([one] if name == one else api.whole_array(name, one))]


def script_command(script: Path) -> list[str]:
    """How a script is run, by its name's end. Raises InvalidInput."""
    runner = {".py": "python", ".sh": "sh"}.get(script.suffix)
    if runner is None or not script.is_file():
        raise InvalidInput(f"--script {script}: name a file that ends with .py or .sh.")
    return [runner, script.name]


def _command(script: Path | None, argv: list[str] | None) -> list[str]:
    found = [*(script_command(script) if script else []), *(argv or [])]
    if not found:
        raise InvalidInput("Give a command: windrow job submit -- python train.py")
    return found


def _parcel(script: Path | None, root: Path | None, files: bool, include_secrets: bool) -> Parcel | None:
    if script is not None:
        return single(script.resolve())
    return survey((root or Path.cwd()).resolve(), include_secrets=include_secrets) if files else None


@job_app.command("submit", context_settings={"allow_interspersed_args": False})
@options(JOB)
def job_submit(
    context: typer.Context,
    argv: Argv = None,
    script: Script = None,
    root: Folder = None,
    files: Files = True,
    include_secrets: IncludeSecrets = False,
    gpu: Gpu = None,
    login: Login = None,
    env: Env = None,
    env_file: EnvFile = None,
    requirements: Requirements = None,
    packages: With = None,
    array: Array = None,
    optimize: Optimize = None,
    max_cost: MaxCost = None,
    hours: Hours = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only show where it would run, and the price.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay and print the log.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Submit a batch job; uploads this folder and returns at once."""
    api = client(context)
    command = _command(script, argv)
    say_unsent_input()
    asked |= {
        "argv": command,
        "name": name_from(script.name if script else command[0]) if asked["name"] is None else asked["name"],
        "env": variables(command, env, env_file),
        "await_files": files or script is not None,
        **{name: _each_id(api, asked[name] or []) or None for name in AFTER},
        **(parse_array(array) if array is not None else {}),
        "begin_at": asked["begin_at"] and parse_begin(asked["begin_at"], datetime.now().astimezone()),
        "host_id": resolving.host(api, asked["host_id"]),
        "packages": [*(read_requirements(requirements) if requirements else []), *(packages or [])] or None,
    }
    request = body(JOB, asked) | (parse_gpu(gpu) if gpu is not None else {})
    parcel = _parcel(script, root, files, include_secrets)
    if request.get("backend") is not None:
        request = routing.elsewhere(request, optimize, max_cost=max_cost, hours=hours)
    elif optimize is not None:
        code = routing.program_of(command, script.parent if script else root or Path.cwd())
        limits = {"max_cost": max_cost, "hours": hours}
        request, best = routing.following(api, request, optimize, **limits, code=code, keeps=not plan)
        say(routing.said(best))
    elif max_cost is not None or hours is not None:
        raise InvalidInput("--max-cost and --hours go with --optimize cost, --optimize speed or --optimize balanced.")
    if plan:
        _show_plan(api.request("POST", "/jobs/plan", body=request), as_json)
        return
    copies = request.get("array_at_once") or request.get("array_size") or 1
    quoting.quoted(lambda: api.request("POST", "/jobs/plan", body=request), yes, is_silent=as_json, copies=copies)
    found = _submitted(api, request | login_part(login), parcel, as_json)
    if follow:
        raise typer.Exit(_followed(api, str(found[0]["id"]), ProgramOutput(is_beside=as_json)))


def _submitted(api: Client, request: dict[str, Any], parcel: Parcel | None, as_json: bool) -> list[dict[str, Any]]:
    found = api.submit_job(request)
    if parcel is not None:
        _send(api, [str(one["id"]) for one in found], parcel)
        found = [api.job(str(one["id"])) for one in found]
    if as_json:
        print_json(found)
    else:
        say(f"{counted(len(found), 'job')} submitted. Follow: windrow job logs -f {found[0]['id']}")
        refusal = found[0].get("refusal")
        if refusal is not None:
            say("Waiting in the queue.")
            print_refusal(refusal)
            print_elsewhere(found[0])
        print_ids(str(one["id"]) for one in found)
    return found


def print_elsewhere(job: dict[str, Any]) -> None:
    """Say where else a job that finds no room here is tried."""
    backend = job.get("request", {}).get("backend")
    if backend:
        where = "every backend that this project may use" if backend == "any" else backend
        say(f"A place at {where} is looked for instead. See each try: windrow job show {job['id']}")


def _show_plan(answer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    print_plan(answer)
    if not answer["fits"]:
        say("The job would wait in the queue until a host can run it.")


def _send(api: Client, jobs: list[str], parcel: Parcel) -> None:
    for line in parcel.left.lines():
        say(f"  {line}")
    say(f"  sending {counted(parcel.files, 'file')}, {size_text(parcel.size_bytes)}")
    before = len(parcel.left.odd)
    transfer.send(parcel, jobs, lambda file: api.put_job_folder(jobs[0], file))
    if late := parcel.left.odd[before:]:
        say(f"  left out: {named(late)}")


def _followed(api: Client, job: str, output: ProgramOutput) -> int:
    for data in api.job_logs(job, follow=True):
        output.write(data)
    output.end()
    ended = api.wait_job(job, WAIT_S)
    for cluster in resolving.last_cluster(ended):
        await_volumes(api, cluster, job)
    return _code(ended)


def _code(job: dict[str, Any]) -> int:
    """Returns the exit code for the shell: 0 only where it succeeded."""
    if job["state"] == "Succeeded":
        return EXIT_OK
    code = job["exit_code"]
    return code if code is not None and 0 < code <= 255 else EXIT_FAILURE


JOBS = Table(
    (
        id_column(),
        Column("NAME", resolving.job_label, most=24),
        Column("STATE", lambda j: j["state"], show=state_name),
        Column("EXIT", lambda j: j["exit_code"], 2),
        money_column("COST", lambda j: j["cost_so_far"]),
        time_column("CREATED", lambda j: j.get("created_at"), 3),
        Column("TRIES", lambda j: len(j["attempts"]), 4),
        Column("REASON", lambda j: j["reason"], 1, 20),
    ),
    "No jobs. Try: windrow job submit -- python -V",
    name=lambda j: j["name"],
    states=lambda j: (j["state"],),
    state_words=(
        *("Submitted", "Queued", "Starting", "Running", "Checkpointing", "Migrating"),
        *ENDED,
    ),
    at=lambda j: j.get("created_at"),
    owner=lambda j: j.get("account_id"),
    has_ended=lambda j: j["state"] in ENDED,
)


@job_app.command("ls")
@lists(JOBS)
def job_ls(context: typer.Context, view: View) -> None:
    """List jobs, newest first."""
    api = client(context)
    view.print(api, api.items("/jobs", name=view.exact_name))


@job_app.command("show")
def job_show(context: typer.Context, job: Which, as_json: AsJson = False) -> None:
    """Show everything about one job."""
    api = client(context)
    item = api.job(job_id(api, job, shows=True))
    used = [member for one in resolving.last_cluster(item, goes_on=True) for member in api.usage(one)]
    if as_json:
        print_json(item | {"usage": used})
        return
    asked = item["request"]
    facts(
        [
            ("Job", f"{resolving.job_label(item)} ({resolving.short(item['id'])})"),
            ("State", f"{state_name(item['state'])} {item['reason'] or ''}"),
            *queue_rows(item.get("queue")),
            *_waits(item.get("refusal")),
            *try_rows(item.get("tries")),
            *request_facts(asked, resolving.called(api, "/hosts", host) if (host := asked.get("host_id")) else None),
            *([("Packages", ", ".join(asked["packages"]))] if asked["packages"] else []),
            ("Exit code", item["exit_code"]),
            ("Cost so far", money_text(item["cost_so_far"])),
            *_forecast(api, asked.get("route_id"), str(item["id"])),
            ("Deadline", asked["deadline"]),
            ("Begins", asked.get("begin_at")),
            *[
                (title, resolving.called(api, "/jobs", one))
                for name, title in AFTER.items()
                for one in asked.get(name, ())
            ],
            ("Class", None if asked.get("priority_class") == "normal" else asked.get("priority_class")),
            ("Held by", item.get("held_by")),
            *[(f"Attempt {one['number']}", _attempt(one)) for one in item["attempts"]],
            *usage_rows(used),
            *(_impact(api, str(item["id"])) if asked["gpus"] else ()),
        ]
    )


def _forecast(api: Client, route_id: str | None, job: str) -> Iterator[tuple[str, str]]:
    """Returns what was forecast of its cost by the route that it follows; nothing where that is forgotten."""
    if route_id is not None:
        with suppress(ApiProblem):
            yield "Forecast", forecast_text(api.get(f"/routes/{route_id}"), job)


def _waits(refusal: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Returns why a job finds no place now, and what would fit."""
    if refusal is not None:
        yield "Waits", refusal["detail"]
        for line in refusal_lines(refusal):
            yield "", f"- {line}"


def _impact(api: Client, job: str) -> Iterator[tuple[str, str]]:
    """Returns the effect of its last attempt on each of its GPUs, a line for each stretch of time; nothing where
    history is away."""
    try:
        found = api.request("GET", f"/jobs/{job}/impact")
    except WindrowClientError as error:
        yield "GPUs", f"what it did to them cannot be told now: {error}"
        return
    for card in found["gpus"]:
        yield f"GPU {card['gpu'][:12]}", f"on {card['host_name']}, attempt {found['attempt']}"
        for when in ("before", "during", "after"):
            yield f"  {when}", _stretch(card[when])


def _stretch(one: dict[str, Any]) -> str:
    use, memory, power = one["utilization_ratio"], one["memory_used_bytes"], one["power_watts"]
    if use["mean"] is None and memory["mean"] is None and power["mean"] is None:
        return "nothing was read"
    said = [
        "use -" if use["mean"] is None else f"use {use['mean']:.0%}, at most {use['max']:.0%}",
        "memory -" if memory["mean"] is None else f"memory {size_text(round(memory['max']))}",
        "power -" if power["mean"] is None else f"power {power['mean']:.0f} W, at most {power['max']:.0f} W",
        "" if one["throttled_ratio"] is None else f"held back {one['throttled_ratio']:.0%} of the time",
    ]
    return "; ".join(part for part in said if part)


def _attempt(one: dict[str, Any]) -> str:
    left = f"log {size_text(one['log_bytes'])}, files {size_text(one['files_bytes'])}"
    place, said = one.get("place"), one["outcome"] or "goes on"
    machine = "run" if place and place["service"] else f"machine {resolving.short(one['cluster_id'])}"
    at, ran = (f" at {place['text']}" if place else ""), _ran(one)
    return f"{machine}{at}: {said}; {ran}{left}; cost {money_text(one['cost'])}"


def _ran(one: dict[str, Any]) -> str:
    """How long an attempt that has ended took."""
    if one["started_at"] is None or one["ended_at"] is None:
        return ""
    took = datetime.fromisoformat(one["ended_at"]) - datetime.fromisoformat(one["started_at"])
    return f"ran {seconds_text(took.total_seconds())}; "


@job_app.command("explain")
def job_explain(
    context: typer.Context, job: Which, host: NotThere = None, weights: Weights = None, as_json: AsJson = False
) -> None:
    """Explain why a job runs on its host, or still waits."""
    api = client(context)
    explain_work(api, job_id(api, job, shows=True), as_json, host, weights)


@job_app.command("doctor")
def job_doctor(context: typer.Context, job: Which, as_json: AsJson = False) -> None:
    """Tell what holds the GPUs of a job back: heat, power, PCIe, CPUs, data, or nothing."""
    api = client(context)
    print_findings(api, f"/jobs/{job_id(api, job, shows=True)}", as_json)


@job_app.command("logs")
def job_logs(
    context: typer.Context,
    job: Which,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until the job ends.")] = False,
    attempt: Attempt = None,
    raw: Raw = False,
) -> None:
    """Print the log of a job, also after it has ended."""
    api = client(context)
    output = ProgramOutput(is_raw=raw)
    for data in api.job_logs(job_id(api, job), follow=follow, attempt=attempt):
        output.write(data)
    output.end_colours()


@job_app.command("wait")
def job_wait(
    context: typer.Context,
    job: Which,
    timeout: Annotated[str | None, typer.Option("--timeout", help="Wait at most this long: 30m.")] = None,
    as_json: AsJson = False,
) -> None:
    """Wait until a job has ended; exits with the job's exit code."""
    api = client(context)
    item = api.wait_job(job_id(api, job), parse_span(timeout) if timeout else WAIT_S)
    if as_json:
        print_json(item)
    else:
        say(state_text(item["name"], item["state"], item["reason"]))
    raise typer.Exit(_code(item))


@job_app.command("cancel")
def job_cancel(context: typer.Context, job: Which, as_json: AsJson = False) -> None:
    """Cancel a job, or all of an array by its name; logs and files so far are kept."""
    _acted(context, job, "cancel", GOING, as_json)


@job_app.command("hold")
def job_hold(context: typer.Context, job: Which, as_json: AsJson = False) -> None:
    """Keep a job that waits from starting until it is released; by the name of an array, all of it that waits."""
    _acted(context, job, "hold", WAITING, as_json)


@job_app.command("release")
def job_release(context: typer.Context, job: Which, as_json: AsJson = False) -> None:
    """Let a job that was held start in its turn; by the name of an array, all of it that waits."""
    _acted(context, job, "release", WAITING, as_json)


@job_app.command("top")
def job_top(context: typer.Context, job: Which, as_json: AsJson = False) -> None:
    """Let a job that waits come before the others of its project and class; by its name, all of an array."""
    _acted(context, job, "top", WAITING, as_json)


@job_app.command("requeue")
def job_requeue(context: typer.Context, job: Which, as_json: AsJson = False) -> None:
    """End the attempt of a job and put it back into the queue; it goes on from its newest checkpoint; by the
    name of an array, all of it that runs."""
    _acted(context, job, "requeue", HOLDING, as_json)


@job_app.command("rerun")
def job_rerun(
    context: typer.Context, job: Which, env: Env = None, env_file: EnvFile = None, as_json: AsJson = False
) -> None:
    """Run a job again with the same folder. Give its variables again: their values were deleted when it ended."""
    api = client(context)
    values = variables([], env, env_file)
    asked = None if values is None else {"env": values}
    item = api.request("POST", f"/jobs/{job_id(api, job)}/rerun", body=asked)
    print_json(item) if as_json else print_ids([item["id"]])


@job_app.command("artefacts")
def job_artefacts(
    context: typer.Context,
    job: Which,
    into: Annotated[Path, typer.Argument(help="Folder to write to.")] = Path("."),
    attempt: Attempt = None,
    allow_executables: AllowExecutables = False,
) -> None:
    """Fetch the files that a job changed."""
    api = client(context)
    found = job_id(api, job)
    report = bring(api.job_files(found, attempt), found, into, allow_executables=allow_executables)
    say_report(report, f"windrow job artefacts {found} {into}", into)
    exit_unless_whole(report)
