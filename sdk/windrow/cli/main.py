"""The `windrow` command. Further verbs are found by the entry point group `windrow.commands` (`up` comes with
windrow-up)."""

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Annotated

import typer

from windrow import __version__
from windrow.cli import (
    accesses,
    account,
    artefacts,
    audit,
    clusters,
    doctor,
    forward,
    host_bandwidth,
    host_facts,
    hosts,
    jobs,
    people,
    run,
    stopping,
    templates,
    volumes,
)  # fmt: skip
from windrow.cli.context import Options
from windrow.cli.output import EXIT_FAILURE, EXIT_OK, EXIT_USAGE, err, exit_code, print_error
from windrow.cli.signals import Ended
from windrow.errors import WindrowClientError

GROUP = "windrow.commands"

app = typer.Typer(
    name="windrow",
    help="Rent GPUs and look after hosts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)
for name, group in (
    ("host", hosts.host_app),
    ("gpu", hosts.gpu_app),
    ("offer", hosts.offer_app),
    ("cluster", clusters.cluster_app),
    ("template", templates.template_app),
    ("volume", volumes.volume_app),
    ("artefact", artefacts.artefact_app),
    ("checkpoint", artefacts.checkpoint_app),
    ("job", jobs.job_app),
    ("command", hosts.command_app),
    ("event", hosts.event_app),
    ("receipt", account.receipt_app),
    ("ledger", account.ledger_app),
    ("token", account.token_app),
    ("account", people.people_app),
    ("credit", people.credit_app),
    ("audit", audit.audit_app),
    ("access", accesses.access_app),
):
    app.add_typer(group, name=name)
hosts.host_app.command("facts")(host_facts.host_facts)
hosts.host_app.command("bandwidth")(host_bandwidth.host_bandwidth)
clusters.cluster_app.command("stop")(stopping.cluster_stop)
clusters.cluster_app.command("start")(stopping.cluster_start)
clusters.cluster_app.command("forward")(forward.cluster_forward)
clusters.cluster_app.command("ssh", context_settings={"allow_interspersed_args": False})(forward.cluster_ssh)
app.command("run", cls=run.RunCommand, context_settings={"allow_interspersed_args": False})(run.run)
app.command("login")(account.login)
app.command("doctor")(doctor.doctor)


@app.callback(invoke_without_command=False)
def options(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(help="Address of the Master; default: WINDROW_URL, .windrow/ here or above, or your login."),
    ] = None,
) -> None:
    """Rent GPUs and look after hosts."""
    context.obj = Options(url=url)


@app.command("version")
def version() -> None:
    """Print the version."""
    sys.stdout.write(__version__ + "\n")


def load_commands(words: Sequence[str]) -> None:
    """Add what other distributions bring: each entry point names a function with typed parameters or a typer.Typer.

    words: of the command line. Where they ask for a command of ours nothing is added, so that it starts at once.
    """
    if _asked(words) in {*(one.name for one in app.registered_groups), *(one.name for one in app.registered_commands)}:
        return
    for entry in entry_points(group=GROUP):
        found = entry.load()
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=entry.name)
        else:
            app.command(entry.name)(found)


def _asked(words: Sequence[str]) -> str | None:
    """The command among these words; None where an option decides, as --help does, or there is none."""
    rest = list(words)
    while rest and rest[0].startswith("--url"):
        del rest[: 2 if rest[0] == "--url" else 1]
    return None if not rest or rest[0].startswith("-") else rest[0]


def main() -> None:
    """Run the command and exit as output.py says."""
    load_commands(sys.argv[1:])
    try:
        code = app(standalone_mode=False)
    except WindrowClientError as error:
        print_error(error)
        code = exit_code(error)
    except typer.Abort as abort:
        # A question that was not answered by yes has no cause; Ctrl-C has.
        err.print(
            "Stopped." if isinstance(abort.__cause__, KeyboardInterrupt) else "\nNot confirmed: nothing was done."
        )
        code = EXIT_FAILURE
    except typer.Exit as stop:
        code = stop.exit_code
    except Ended as end:
        code = end.exit_code
    except KeyboardInterrupt:
        code = 130
    except Exception as error:  # the top of the process: usage errors of the parser are shown as it shows them
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        code = EXIT_USAGE
    sys.exit(code if isinstance(code, int) else EXIT_OK)
