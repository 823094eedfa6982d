"""The `windrow` command. Further verbs are found by the entry point group `windrow.commands` (`up` comes with
windrow-up)."""

import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from windrow import __version__
from windrow.cli.context import Options
from windrow.cli.exits import EXIT_FAILURE, EXIT_OK, EXIT_SIGNAL, EXIT_USAGE, exit_code, table
from windrow.cli.output import print_bug, print_error, print_problem, say
from windrow.cli.signals import Ended
from windrow.cli.streams import UNWRITTEN, flushed, have_streams, unwritten
from windrow.cli.verbs import ACCOUNT, OPERATE, VERBS, VerbGroup
from windrow.config import wants_traceback
from windrow.errors import WindrowClientError

GROUP = "windrow.commands"
FIRST: Final = """Examples:
  windrow login https://market.example
  windrow gpus --vram 24GB
  windrow run --gpu 24GB -- python train.py
  windrow machine create --name lab --gpu 24GB
  windrow open lab"""
WORDS_OF_OTHERS: Final = {
    "rm": ("delete", "cancel", "retire"),
    "delete": ("rm", "cancel", "retire"),
    "remove": ("delete", "rm", "cancel", "retire"),
    "kill": ("stop", "cancel", "delete"),
    "stop": ("cancel", "cluster stop"),
    "list": ("ls", "ps"),
    "ls": ("ps",),
    "ps": ("ls",),
    "status": ("show",),
    "describe": ("show",),
    "inspect": ("show",),
    "get": ("show",),
    "create": ("add", "submit", "cluster create"),
    "run": ("submit", "create"),
    "exec": ("cluster exec",),
    "htop": ("top",),
    "error": ("explain",),
}
"""Verbs of other programs, and ours for them: the first that there is, behind the noun that was written or alone."""

app = typer.Typer(
    name="windrow",
    help="Rent GPUs and look after hosts.",
    epilog=f"{FIRST}\n\n{table()}",
    cls=VerbGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    add_completion=True,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        version()
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(help="Address of the Master; default: WINDROW_URL, .windrow/ here or above, or your login."),
    ] = None,
    is_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Rent GPUs and look after hosts. Alone: what runs, what is left, what needs somebody."""
    context.obj = Options(url=url)
    if context.invoked_subcommand is None:
        from windrow.cli.status import front  # which no verb needs

        front(context)


@app.command("version", rich_help_panel=ACCOUNT)
def version() -> None:
    """Print the version."""
    sys.stdout.write(__version__ + "\n")


def load_commands(words: Sequence[str]) -> None:
    """Add what other distributions bring: each entry point names a function with typed parameters or a typer.Typer.

    words: of the command line. Where they ask for a command of ours nothing is added, so that it starts at once.
    """
    if not words or _asked(words) in {*VERBS, *(one.name for one in app.registered_commands)}:
        return
    from importlib.metadata import entry_points  # which is slow, and no verb of ours needs

    for entry in entry_points(group=GROUP):
        found = entry.load()
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=entry.name, rich_help_panel=OPERATE)
        else:
            app.command(entry.name, rich_help_panel=OPERATE)(found)


def _asked(words: Sequence[str]) -> str | None:
    """The command among these words; None where an option decides, as --help does, or there is none."""
    rest = list(words)
    while rest and rest[0].startswith("--url"):
        del rest[: 2 if rest[0] == "--url" else 1]
    return None if not rest or rest[0].startswith("-") else rest[0]


def main() -> None:
    """Run the command and exit as exits.py says. Whatever happens, a person reads sentences."""
    have_streams()
    sys.exit(flushed(_ran(sys.argv[1:])))


def _ran(words: Sequence[str]) -> int:
    """Runs the command of these words; returns its exit code."""
    try:
        os.getcwd()
        load_commands(words)
        code = app(list(words), prog_name="windrow", standalone_mode=False)
    except WindrowClientError as error:
        print_error(error)
        code = exit_code(error)
    except typer.Abort as abort:
        # A question that was not answered by yes has no cause; Ctrl-C has.
        say("Stopped." if isinstance(abort.__cause__, KeyboardInterrupt) else "Not confirmed: nothing was done.")
        code = EXIT_FAILURE
    except typer.Exit as stop:
        code = stop.exit_code
    except Ended as end:
        code = end.exit_code
    except KeyboardInterrupt:
        code = EXIT_SIGNAL + 2
    except Exception as error:  # the top of the process
        code = _told(error, words)
    return code if isinstance(code, int) else EXIT_OK


def _told(error: Exception, words: Sequence[str]) -> int:
    """Says what is wrong with the words, with this machine or with us; returns the exit code."""
    if hasattr(error, "format_message"):  # of the parser
        return _misused(error)
    if wants_traceback():
        raise error
    if isinstance(error, UnicodeEncodeError):
        print_problem(_not_utf8(words))
        return EXIT_USAGE
    if isinstance(error, OSError) and error.strerror:
        print_problem(_of_this_machine(error))
        return EXIT_FAILURE
    print_bug(error)
    return EXIT_FAILURE


def _misused(error: Any) -> int:
    """Says what the parser refuses, in one line; where nothing was asked for, the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        of = getattr(error, "ctx", None)
        again = f" See: {of.command_path} --help" if of is not None else ""
        said = _our_word(error) or error.format_message()
        print_problem(f"{said}{'' if said.endswith(('.', '?')) else '.'}{again}")
    return EXIT_USAGE


def _our_word(error: Any) -> str | None:
    """Names our verb for one of another program; None: there is none, or it is not about a verb."""
    match = re.match(r"No such command '(\w+)'", error.format_message())
    if match is None:
        return None
    for ours in WORDS_OF_OTHERS.get(match[1], ()):
        at: Any = error.ctx.command
        for word in ours.split():
            at = getattr(at, "commands", {}).get(word)
        if at is not None:
            return f"{match[0]}. Did you mean: {error.ctx.command_path} {ours}?"
    return None


def _not_utf8(words: Sequence[str]) -> str:
    """Names the word that cannot be sent: JSON and the addresses of HTTP are UTF-8."""
    odd = [number for number, word in enumerate(words, 1) if not word.isascii() and not _is_utf8(word)]
    which = f"Word {odd[0]} of the command line" if odd else "A name or a variable"
    return f"{which} contains a byte that is not UTF-8, and cannot be sent. Write it in UTF-8."


def _is_utf8(word: str) -> bool:
    return word == word.encode(errors="ignore").decode()


def _of_this_machine(error: OSError) -> str:
    """Names the file and what the system says of it."""
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}."
    if isinstance(error, FileNotFoundError):
        return "The current folder has been removed. Change to another one."
    return unwritten(error) if error.errno in UNWRITTEN else f"{error.strerror}."
