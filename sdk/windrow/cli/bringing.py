"""Brings files back for a command, and tells a person which came, which did not, and how to get the rest."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from windrow.cli.exits import EXIT_FAILURE
from windrow.cli.output import say
from windrow.client import Client
from windrow.folder.returning import Report, lines
from windrow.folder.transfer import bring

AllowExecutables = Annotated[bool, typer.Option("--allow-executables", help="Keep the executable flag of new files.")]
IncludeSecrets = Annotated[
    bool, typer.Option("--include-secrets", help="Also send files that look like secrets: .env, keys.")
]


def bring_cluster(
    api: Client, cluster_id: str, into: Path, *, changed: bool, rank: int = 0, allow_executables: bool = False
) -> Report:
    """Write the files of a member of a cluster to a folder. Raises WindrowClientError."""
    report = bring(
        api.files(cluster_id, changed=changed, rank=rank), cluster_id, into, allow_executables=allow_executables
    )
    for problem in _problems(api.cluster(cluster_id), rank):
        report.missing.append(("some of its files", f"they are not kept: {problem}"))
    return report


def _problems(cluster: dict[str, Any], rank: int) -> Iterator[str]:
    """Why not everything of a member that has ended is kept."""
    for workload in cluster.get("workloads") or []:
        if int(workload.get("rank") or 0) == rank and (problem := (workload.get("results") or {}).get("problem")):
            yield str(problem)


def say_report(report: Report, again: str, into: Path | None = None) -> None:
    """Tell it. again: the command that fetches the rest; into: where the files went, if that is not the folder here."""
    for line in lines(report, "" if into is None else f" to {into}", again):
        say(f"  {line}")


def exit_unless_whole(report: Report) -> None:
    """Exit where something is missing."""
    if not report.is_whole:
        raise typer.Exit(EXIT_FAILURE)
