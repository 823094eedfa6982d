"""`windrow secret`: values that work names, and that nobody reads back."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.cli import completing
from windrow.cli.context import AsJson, Yes, agreed, client
from windrow.cli.output import print_json, say
from windrow.cli.tables import Column, Table, View, lists, spoken, time_column
from windrow.errors import InvalidInput

secret_app = typer.Typer(help="Secrets: values that jobs and machines get by name.", no_args_is_help=True)

VALUE_BYTES_MAX = 64 * 1024
KINDS = ("text", "file", "registry_login")
STANDARD_INPUT = "-"
USES = {
    "text": "--secret {0}",
    "file": "--secret {0} (its variable holds the bytes in base64)",
    "registry_login": "--registry-secret {0}",
}
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the secret, such as HF_TOKEN.", autocompletion=completing.secrets)
]


@secret_app.command("set")
def secret_set(
    context: typer.Context,
    name: Name,
    source: Annotated[str | None, typer.Argument(metavar="[-]", help="- reads the value from standard input.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="File that holds the value.")] = None,
    kind: Annotated[
        str, typer.Option("--kind", help="text, file (any bytes; given as base64) or registry_login (NAME:PASSWORD).")
    ] = "text",
    as_json: AsJson = False,
) -> None:
    """Set a secret of the project, or replace it. The value comes from a hidden prompt, a file or standard input, and
    is never an argument: command lines are seen by others."""
    if kind not in KINDS:
        raise InvalidInput(f"--kind must be one of {', '.join(KINDS)}.")
    if source not in (None, STANDARD_INPUT):
        words = "The value of a secret is no argument, since others see command lines. If it was one, choose another."
        raise InvalidInput(f"{words} Use the prompt, --file FILE, or - for standard input.")
    raw = _value(name, source == STANDARD_INPUT, file)
    kept = client(context).set_secret(name, raw if kind == "file" else _text(raw), kind)
    print_json(kept) if as_json else say(f"{name} is set. Use it: {USES[kind].format(name)}")


SECRETS = Table(
    (
        Column("NAME", lambda s: s["name"]),
        Column("KIND", lambda s: s["kind"], show=spoken),
        Column("USED BY", lambda s: _users(s), 1, 40),
        time_column("UPDATED", lambda s: s["updated_at"], 2),
        time_column("LAST USED", lambda s: s["last_used_at"], 3),
        Column("UPDATED BY", lambda s: s["updated_by"], 4),
    ),
    "No secrets. Set one: windrow secret set NAME",
    name=lambda s: s["name"],
)


@secret_app.command("ls")
@lists(SECRETS)
def secret_ls(context: typer.Context, view: View) -> None:
    """List the secrets of the project, without their values."""
    api = client(context)
    view.print(api, api.secrets())


@secret_app.command("rm")
def secret_rm(context: typer.Context, name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a secret. Work that runs keeps the value; jobs that wait and name the secret will fail."""
    agreed(yes, f"Delete the secret {name}?")
    answer = client(context).delete_secret(name)
    if as_json:
        print_json(answer)
        return
    say(f"{name} is deleted.")
    if answer["warning"]:
        say(f"Warning: {answer['warning']}")


def _users(secret: dict[str, Any]) -> str:
    return ", ".join(f"{one['kind']} {one['name']}" for one in secret["used_by"])


def _value(name: str, from_input: bool, file: Path | None) -> bytes:
    """The bytes of the value. Of standard input one newline at the end is left out, as `echo` writes it."""
    if file is not None and from_input:
        raise InvalidInput("Give --file or -, not both.")
    if file is not None:
        try:
            with file.open("rb") as opened:
                raw = opened.read(VALUE_BYTES_MAX + 1)
        except OSError as error:
            raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None
    elif from_input:
        raw = sys.stdin.buffer.read(VALUE_BYTES_MAX + 2)
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
    elif sys.stdin.isatty():
        raw = str(typer.prompt(f"Value of {name}", hide_input=True, err=True)).encode()
    else:
        raise InvalidInput("Nobody can be asked for the value here. Give --file FILE, or - for standard input.")
    if not 1 <= len(raw) <= VALUE_BYTES_MAX:
        raise InvalidInput(f"The value of a secret has 1 to {VALUE_BYTES_MAX:,} bytes; this one is empty or longer.")
    return raw


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidInput("The value is no text in UTF-8. Keep any bytes with --kind file.") from None
