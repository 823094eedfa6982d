"""`windrow run -- CMD`: rent, send this folder, run, stream the log, fetch changed files, release, show the receipt."""

import re
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand
from typer.main import get_command

from windrow.cli import quoting, resolving
from windrow.cli.bringing import (
    AllowExecutables,
    IncludeSecrets,
    bring_cluster,
    exit_unless_whole,
    say_report,
)
from windrow.cli.cluster_text import ENDED, Progress, has_run, print_plan, print_tested
from windrow.cli.clusters import CREATE_TIMEOUT_S, Env, EnvFile, Gpu, Which, await_volumes
from windrow.cli.clusters import cluster_id as id_of
from windrow.cli.context import AsJson, Yes, client
from windrow.cli.exits import EXIT_CONFLICT, EXIT_FAILURE
from windrow.cli.flags import options
from windrow.cli.kept import variables
from windrow.cli.lease import CLIENT_LEASE_S, renewed, span
from windrow.cli.output import err, print_error, print_ids, print_json, say, shown, size_text
from windrow.cli.request import body, name_from, parse_gpu
from windrow.cli.signals import Ended, Signals, heard
from windrow.cli.streams import ProgramOutput, say_unsent_input
from windrow.client import Client
from windrow.errors import ApiProblem, MasterUnreachable, WindrowClientError
from windrow.fields import CLUSTER
from windrow.folder import record, transfer
from windrow.folder.returning import Report
from windrow.folder.sending import Parcel, named, survey
from windrow.soon import PAUSE_S, SOON_S, patiently
from windrow.words import counted, money_text, seconds_text

END_S: Final = 180.0
"""For a cluster to end once that was asked."""
ABSENT_S: Final = 300.0
"""For so long a run bears a Master that does not answer; its lease is longer."""
CANNOT_RUN, NO_PROGRAM = 126, 127
"""The exit codes of a command that cannot be run and of one that is not there, as shells have them."""
NOT_OF_RUNS: Final = frozenset({"kind", "ports", "hosts", "restart_members", "idle_seconds", "backend", "spot"})
"""Fields of clusters that make no sense for one command on one host that waits for nothing."""
LOG_PAUSE_S: Final = 0.5
"""Before a log that broke off is asked for again."""
HURRY_S: Final = 8.0
"""The same where a signal ends the run: who sent it kills after ten."""


class NeverRan(WindrowClientError):
    """The cluster failed before its command began. code: the exit code for the shell."""

    def __init__(self, cluster: dict[str, Any]) -> None:
        reason = str(cluster.get("reason") or "no reason was given")
        super().__init__(f"{cluster['id']} failed: {reason}")
        why = re.search(r"There is no command|could not be run: (.*)", reason)  # the words of all runtimes
        self.code = EXIT_FAILURE if why is None else CANNOT_RUN if "denied" in (why[1] or "") else NO_PROGRAM


class RunCommand(TyperCommand):
    """`windrow run fetch ID` beside `windrow run -- CMD`: a program called fetch is run by `windrow run -- fetch`."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context of the one or the other."""
        if args[:1] != ["fetch"]:
            return super().make_context(info_name, args, parent, **extra)
        return get_command(fetch_app).make_context(f"{info_name} fetch", args[1:], parent, **extra)


fetch_app = typer.Typer(add_completion=False)


@options(field for field in CLUSTER if field.name not in NOT_OF_RUNS)
def run(
    context: typer.Context,
    argv: Annotated[list[str], typer.Argument(help="The command, after --.")],
    gpu: Gpu = None,
    env: Env = None,
    env_file: EnvFile = None,
    files: Annotated[bool, typer.Option(help="Send this folder, and fetch changed files.")] = True,
    include_secrets: IncludeSecrets = False,
    allow_executables: AllowExecutables = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return at once; the work goes on without this program.")
    ] = False,
    lease: Annotated[
        int,
        typer.Option(
            "--lease", min=10, max=86_400, help="End the work when this machine is silent for this many seconds."
        ),
    ] = CLIENT_LEASE_S,
    yes: Yes = False,
    as_json: AsJson = False,
    **asked: Any,
) -> None:
    """Run one command on a rented host, in a copy of this folder. `windrow run fetch ID` brings its files once more.

    It ends with this program: by Ctrl-C, SIGTERM, a closed terminal, or 15 minutes (`--lease`) after this machine was
    last heard of. `--detach` lifts that.
    """
    api = client(context)
    here = Path.cwd()
    asked |= {
        "argv": argv,
        "name": name_from(argv[0]) if asked["name"] is None else asked["name"],
        "env": variables(argv, env, env_file),
        "await_files": files,
        "host_id": resolving.host(api, asked["host_id"]),
        "client_lease_s": None if detach else lease,
    }
    request = body(CLUSTER, asked) | (parse_gpu(gpu) if gpu is not None else {})
    parcel = survey(here, include_secrets=include_secrets) if files else Parcel(here, (), 0)
    for line in parcel.left.lines():
        say(f"  {line}")
    plan = patiently(lambda: _fitting(api, request), SOON_S, say)
    print_plan(plan)
    if not as_json:
        print_tested(plan)
    quoting.agree_to(plan, yes)
    _go(api, request, parcel, Wishes(files, allow_executables, detach, as_json, lease))


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a run is to go. lease_s: for so long it goes on without a word of this program."""

    files: bool
    allow_executables: bool
    detach: bool
    as_json: bool
    lease_s: int


def _go(api: Client, request: dict[str, Any], parcel: Parcel, wishes: Wishes) -> None:
    with heard() as signals:
        cluster_id = _created(api, request, signals)
        with nullcontext() if wishes.detach else renewed(api, cluster_id, wishes.lease_s):
            try:
                signals.release()
                if wishes.detach:
                    _send(api, cluster_id, parcel, wishes.files, Progress())
                    _say_detached(cluster_id, wishes)
                    return
                say(f"  the work ends when this machine is silent for {span(wishes.lease_s)} (--detach: never)")
                try:
                    code, report = _work(api, cluster_id, parcel, wishes)
                except NeverRan as failed:
                    print_error(failed)
                    code, report = failed.code, Report()
                if report.is_whole:
                    api.delete_cluster(cluster_id)
                    api.wait_cluster(cluster_id, lambda c: c["phase"] in ENDED, END_S)
            except BaseException as end:
                _let_go(api, cluster_id, wishes.files, HURRY_S if isinstance(end, Ended) else END_S)
                raise
    _finish(api, cluster_id, code, report, wishes.as_json)


def _finish(api: Client, cluster_id: str, code: int, report: Report, as_json: bool) -> None:
    """Show its receipt; where files are missing here, it was kept to be fetched from."""
    if not report.is_whole:
        say(
            f"  {cluster_id} is kept so that you can fetch its files. Delete it afterwards: windrow cluster "
            f"delete {cluster_id}"
        )
        if as_json:
            print_json({"exit_code": code, "receipt": None, "missing": [name for name, _ in report.missing]})
        raise typer.Exit(code or EXIT_FAILURE)
    await_volumes(api, cluster_id, cluster_id)
    receipt = api.receipt_of(cluster_id)
    if as_json:
        print_json({"exit_code": code, "receipt": receipt, "missing": []})
    else:
        say(f"  {cost_text(receipt)}")
    raise typer.Exit(code)


def cost_text(receipt: dict[str, Any]) -> str:
    """Returns a receipt in one line."""
    amount, test = (
        f"{money_text(receipt['amount'])} {receipt['currency']}",
        " (test money)" if receipt.get("test_money") else "",
    )
    rate = f"{seconds_text(receipt['running_seconds'])} at {money_text(receipt['price_per_hour'])} per hour"
    return f"cost {amount}{test}: {rate}. Receipt: windrow receipt show {receipt['id']}"


def _created(api: Client, request: dict[str, Any], signals: Signals) -> str:
    """Its id. A signal while the Master is asked counts once the id is known."""

    def ask() -> str:
        made = signals.held(lambda: api.create_cluster(request, patience_s=0))
        return str(made["id"])

    found = patiently(ask, SOON_S, say)
    signals.words = shown(f"\nEnded at once. {found} may go on: windrow cluster delete {found}\n", err)
    return found


def _let_go(api: Client, cluster_id: str, has_files: bool, within_s: float) -> None:
    """Ends the rental after any outcome, so that it costs no more and its log and files can still be had."""
    try:
        api.delete_cluster(cluster_id, keep_results=True)
        with suppress(OSError, ValueError):
            kept = f" What it changed is kept: windrow run fetch {cluster_id}" if has_files else ""
            say(f"{cluster_id} is being ended.{kept}")
            say(f"Its log: windrow cluster logs {cluster_id}")
        api.wait_cluster(cluster_id, lambda c: c["phase"] in ENDED, within_s)
    except WindrowClientError as error:
        with suppress(OSError, ValueError):  # nobody reads any more
            print_error(error)
            say(f"{cluster_id} may still be ending. Look: windrow cluster show {cluster_id}")


def _say_detached(cluster_id: str, wishes: Wishes) -> None:
    if wishes.as_json:
        print_json({"cluster_id": cluster_id})
        return
    say(f"It goes on without this program. Log: windrow cluster logs -f {cluster_id}")
    say(f"Files: windrow run fetch {cluster_id}" + ("" if wishes.files else " --into DIR"))
    say(f"End: windrow cluster delete --keep-results {cluster_id}")
    print_ids([cluster_id])


@fetch_app.command("fetch")
def fetch(
    context: typer.Context,
    cluster: Which,
    into: Annotated[
        Path | None, typer.Option("--into", help="Folder to write to; default: the one that was sent.")
    ] = None,
    allow_executables: AllowExecutables = False,
) -> None:
    """Fetch the files that a run changed. Safe to interrupt and to repeat."""
    api = client(context)
    found = id_of(api, cluster, ended=True)
    place = into or record.origin(found)
    if place is None:
        raise WindrowClientError(f"{found} was not sent from this machine by you. Name a folder: --into DIR")
    report = bring_cluster(api, found, place, changed=True, allow_executables=allow_executables)
    say_report(report, f"windrow run fetch {found}" + (f" --into {into}" if into else ""), place)
    exit_unless_whole(report)


def _fitting(api: Client, request: dict[str, Any]) -> dict[str, Any]:
    plan: dict[str, Any] = api.plan(request)
    if not plan["fits"]:
        said = {"code": "no_capacity", **(plan["refusal"] or {})}
        raise ApiProblem(409, said, PAUSE_S if plan.get("fits_soon") else 0)
    return plan


def _work(api: Client, cluster_id: str, parcel: Parcel, wishes: Wishes) -> tuple[int, Report]:
    is_input_told, output = say_unsent_input(), ProgramOutput(is_beside=wishes.as_json)
    progress = Progress()
    _send(api, cluster_id, parcel, wishes.files, progress)
    with progress:
        began = api.wait_cluster(cluster_id, _has_started, CREATE_TIMEOUT_S, progress)
    progress.say_running(began)
    try:
        ended = _followed(api, cluster_id, output)
    finally:
        output.end()
    if not is_input_told:
        say_unsent_input()  # input may have come while it ran
    if ended["phase"] == "Failed" and not has_run(ended):
        raise NeverRan(ended)
    code = _exit_code(ended)
    if ended["phase"] not in ("Finished", "Failed"):
        say(f"  {cluster_id} was ended before its command finished: {ended.get('reason') or 'somebody deleted it'}")
        code = code or EXIT_FAILURE
    if not wishes.files:
        return code, Report()
    return code, _brought(api, cluster_id, parcel.root, wishes.allow_executables)


def _followed(api: Client, cluster_id: str, output: ProgramOutput) -> dict[str, Any]:
    """Print its log until it ends; returns it as it is then. A Master or host that is away for a while ends nothing."""
    printed, away_since = 0, None
    while True:
        try:
            count, is_whole = _print_log(api, cluster_id, output, printed)
            printed += count
            found = api.cluster(cluster_id)
            if is_whole and _has_exited(found):
                return found
            away_since = None
        except (MasterUnreachable, ApiProblem) as error:
            away_since = away_since or time.monotonic()
            is_passing = not isinstance(error, ApiProblem) or error.retryable or error.status >= 500
            if not is_passing or time.monotonic() - away_since > ABSENT_S:
                raise
        time.sleep(LOG_PAUSE_S)


def _print_log(api: Client, cluster_id: str, output: ProgramOutput, offset: int) -> tuple[int, bool]:
    """Print the log from a byte on; returns how many bytes that were, and whether it came to its end."""
    count = 0
    try:
        for data in api.logs(cluster_id, follow=True, offset=offset):
            count += len(data)
            output.write(data)
    except MasterUnreachable:
        if not count:
            raise
        return count, False
    return count, True


def _brought(api: Client, cluster_id: str, root: Path, allow_executables: bool) -> Report:
    """Tells which files came back; a fetch that fails is one that lacks everything."""
    try:
        report = bring_cluster(api, cluster_id, root, changed=True, allow_executables=allow_executables)
    except WindrowClientError as error:
        report = Report(missing=[("the files", str(error))])
    say_report(report, f"windrow run fetch {cluster_id} [--into DIR]")
    return report


def _send(api: Client, cluster_id: str, parcel: Parcel, files: bool, progress: Progress) -> None:
    """Wait until it takes files, and send them."""
    if not files:
        return
    with progress:
        api.wait_cluster(cluster_id, _may_take_files, CREATE_TIMEOUT_S, progress)
    say(f"  sending {counted(parcel.files, 'file')}, {size_text(parcel.size_bytes)}")
    before = len(parcel.left.odd)
    transfer.send(parcel, [cluster_id], lambda file: api.put_files(cluster_id, file, commit=True))
    if late := parcel.left.odd[before:]:
        say(f"  left out: {named(late)}")


def _phases(cluster: dict[str, Any]) -> set[str]:
    return {workload["phase"] for workload in cluster.get("workloads") or []}


def _may_take_files(cluster: dict[str, Any]) -> bool:
    return _is_beyond(cluster, {"waiting_files", "running", "exited"})


def _has_started(cluster: dict[str, Any]) -> bool:
    return _is_beyond(cluster, {"running", "exited"})


def _is_beyond(cluster: dict[str, Any], phases: set[str]) -> bool:
    """True if all of its work is in one of these, or has ended by itself."""
    if has_run(cluster):
        return True
    if cluster["phase"] == "Failed":
        raise NeverRan(cluster)
    return bool(_phases(cluster)) and _phases(cluster) <= phases


def _has_exited(cluster: dict[str, Any]) -> bool:
    return cluster["phase"] in ENDED or (bool(_phases(cluster)) and _phases(cluster) <= {"exited", "gone", "failed"})


def _exit_code(cluster: dict[str, Any]) -> int:
    codes = [w.get("exit_code") for w in cluster.get("workloads") or []]
    known = [code for code in codes if code is not None]
    if not known:
        return EXIT_FAILURE
    worst = max(known, key=abs)
    return worst if 0 <= worst <= 255 else EXIT_CONFLICT
