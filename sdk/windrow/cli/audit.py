"""`windrow audit`: who did what, and whether the log still says what it said."""

import json
import os
import re
from datetime import UTC
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.cli import resolving
from windrow.cli.context import AsJson, client
from windrow.cli.exits import EXIT_FAILURE
from windrow.cli.output import facts, print_json, say
from windrow.cli.tables import Column, Table, View, lists, spoken, time_column
from windrow.errors import WindrowClientError

audit_app = typer.Typer(help="The audit log.", no_args_is_help=True)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


ENTRIES = Table(
    (
        Column("NUMBER", lambda e: e["number"]),
        time_column("AT", lambda e: e["at"]),
        Column("ACTION", lambda e: e.get("title") or spoken(e["action"])),
        Column("SUBJECT", lambda e: resolving.named(e["subject"], e.get("names")), show=resolving.shortened),
        Column("ACTOR", lambda e: resolving.actor_name(e["actor"], e.get("names")), 1, show=resolving.shortened),
        Column("REASON", lambda e: resolving.named(e.get("reason") or "", e.get("names")), 2, 20, resolving.shortened),
        Column(
            "FIELDS",
            lambda e: " ".join(
                f"{key}={resolving.named(_text(value), e.get('names'))}"
                for key, value in sorted((e.get("fields") or {}).items())
            ),
            3,
            20,
            lambda text: re.sub(r"\b\w+(?==)", lambda key: str(spoken(key[0])), resolving.shortened(text)),
        ),
    ),
    "No such entry.",
    at=lambda e: e["at"],
)


@audit_app.command("ls")
@lists(ENTRIES, limit=200)
def audit_ls(
    context: typer.Context,
    view: View,
    subject: Annotated[
        str | None, typer.Option(help="Only about this host, machine or job, by name or id, or about this id.")
    ] = None,
    actor: Annotated[str | None, typer.Option(help="Only entries by this actor, for example user/user_1.")] = None,
    action: Annotated[
        str | None, typer.Option(help="Only this action, or all of a kind, as host or host.drain.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only before this time (RFC 3339).")] = None,
) -> None:
    """List entries of the audit log, newest first."""
    api = client(context)
    about = None if subject is None else resolving.subject(api, subject)
    since = None if view.since is None else view.since.astimezone(UTC).isoformat().replace("+00:00", "Z")
    wanted = {"subject": about, "actor": actor, "action": action, "since": since, "until": until}
    view.print(api, api.items("/audit", **wanted))


@audit_app.command("verify")
def audit_verify(
    context: typer.Context,
    head_file: Annotated[
        Path | None,
        typer.Option(
            "--head", help="File of yours with the last entry seen; it must still be in the log. Updated afterwards."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify the hash chain and the anchor of the audit log; exits with 1 and names the first broken entry."""
    kept = _kept(head_file) if head_file is not None else {}
    found: dict[str, Any] = client(context).get("/audit/verify", **kept)
    if as_json:
        print_json(found)
    else:
        head, anchor = found.get("head") or {}, found.get("anchor") or {}
        facts(
            [
                ("Audit log", "intact" if found["intact"] else "NOT INTACT"),
                ("Entries", found["entries"]),
                ("First broken entry", found.get("first_broken")),
                ("Anchored up to", anchor.get("number") and f"{anchor['number']} at {anchor['at']}"),
                ("Head", head.get("chain")),
            ]
        )
    if not found["intact"]:
        say(found["problem"])
        raise typer.Exit(EXIT_FAILURE)
    if head_file is not None and found.get("head"):
        _keep(head_file, found["head"])


@audit_app.command("reanchor")
def audit_reanchor(
    context: typer.Context,
    reason: Annotated[str, typer.Option(help="Why you accept the log; recorded in it.")],
) -> None:
    """Accept a damaged audit log as it is from now on, once you know the cause (operators)."""
    found: dict[str, Any] = client(context).request("POST", "/audit/reanchor", body={"reason": reason})
    anchor = found.get("anchor") or {}
    say(
        f"The audit log is accepted as it is; the new anchor is entry {anchor.get('number')}; this is "
        "recorded in the log."
    )
    if not found["intact"]:
        say(f"The damage before it stays, and `windrow audit verify` still reports it: {found['problem']}")


def _kept(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        record = json.loads(path.read_text())
        return {"number": int(record["number"]), "chain": str(record["chain"])}
    except (ValueError, KeyError, TypeError):
        raise WindrowClientError(f"{path} was not written by `windrow audit verify --head`.") from None


def _keep(path: Path, head: dict[str, Any]) -> None:
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(json.dumps({"number": head["number"], "chain": head["chain"]}) + "\n")
    os.replace(draft, path)
