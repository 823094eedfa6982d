"""Writes docs/cli.md, the reference of the commands: `python -m tests.architecture.cli_pages`."""

import argparse
import textwrap
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer.main

from windrow.cli import main
from windrow.cli.exits import table
from windrow_access import config as access
from windrow_agent.app import config as agent
from windrow_master import config as master
from windrow_master.recovery import command as recovery

PAGE: Final = Path(__file__).parents[2] / "docs" / "cli.md"
AGENT_DIR: Final = "/var/lib/windrow-agent, for another user than root in ~/.local/share"
ALIASES: Final = {"machine": "cluster"}
HEAD: Final = """# Commands

Every command with its options; `--help` after each prints the same. The beginning of an id, or a name, is enough. The
programs themselves write this page, by `make conditions`.

"""


def page() -> str:
    """The page: `windrow` verb by verb, then the programs of hosts, relays and the market."""
    main.load_commands(["up"])
    root: Any = typer.main.get_command(main.app)
    verbs = [
        part
        for name, verb in sorted(root.commands.items())
        if not verb.hidden
        for part in _verb(f"windrow {name}", verb)
    ]
    daemons = [
        *(*_daemon(master.command_line({})), *_daemon(recovery.command_line(), has_head=False)),
        *(*_daemon(access.command_line()), *_daemon(agent.command_line())),
    ]
    return "\n\n".join([HEAD + _filled(table()), "## windrow", _options(root), *verbs, *daemons]) + "\n"


def _verb(name: str, verb: Any) -> Iterator[str]:
    inner = getattr(verb, "commands", None)
    alias = ALIASES.get(name.removeprefix("windrow "))
    yield f"### {name}" if name.count(" ") == 1 else f"#### {name}"
    yield _filled(verb.help or "")
    if alias:
        yield f"Its verbs are those of [windrow {alias}](#windrow-{alias})."
    elif inner:
        yield from filter(None, (_options(verb), _examples(verb.epilog or "")))
        for word, each in sorted(inner.items()):
            if not each.hidden:
                yield from _verb(f"{name} {word}", each)
    else:
        yield f"    {verb.get_usage(verb.make_context(name, [], resilient_parsing=True)).removeprefix('Usage: ')}"
        yield from filter(None, (_arguments(verb), _options(verb), _examples(verb.epilog or "")))


def _arguments(verb: Any) -> str:
    return "\n".join(
        f"- **{(one.metavar or one.name).strip('[]').upper()}**: {_cell(one.help)}"
        for one in verb.params
        if one.param_type_name == "argument" and not one.hidden and one.help
    )


def _options(verb: Any) -> str:
    rows = [
        ([*one.opts, *one.secondary_opts], "" if one.is_flag else _value(one), one.help or "")
        for one in verb.params
        if one.param_type_name == "option" and not one.hidden
    ]
    return _table(rows)


def _value(option: Any) -> str:
    """Its placeholder: its words where it takes a few, else the option's own name."""
    kinds = typing.get_args(option.type_descriptor.annotation)
    words = "|".join(map(str, kinds)) if kinds and all(isinstance(one, str) for one in kinds) else None
    return option.metavar or words or option.opts[0].lstrip("-").upper()


def _table(rows: list[tuple[list[str], str, str]]) -> str:
    """Of options: their names, the placeholder of the value, what they do."""
    named = (
        (", ".join(f"`{one}`" for one in names), f" `{_cell(value)}`" * bool(value), what)
        for names, value, what in rows
    )
    lines = [f"| {names}{value} | {_cell(what)} |" for names, value, what in named]
    return "\n".join(["| option | what |", "|---|---|", *lines]) if lines else ""


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("*", "\\*")


def _examples(epilog: str) -> str:
    lines = textwrap.dedent(epilog.partition("Examples:\n")[2]).strip()
    return f"```\n{lines}\n```" if lines else ""


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()).replace("*", "\\*"), 120, break_on_hyphens=False)


def _daemon(parser: argparse.ArgumentParser, level: int = 2, has_head: bool = True) -> Iterator[str]:
    """has_head: False for further verbs of the program before."""
    if has_head:
        yield f"{'#' * level} {parser.prog}"
    if has_head and parser.description:
        yield _filled(parser.description)
    rows = [
        (list(one.option_strings), "" if one.nargs == 0 else str(one.metavar or one.dest.upper()), _help(one))
        for one in parser._actions
        if one.option_strings and one.help != argparse.SUPPRESS and not isinstance(one, argparse._HelpAction)
    ]
    if rows:
        yield _table(rows)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, inner in action.choices.items():
                inner.description = inner.description or said.get(name)
                yield from _daemon(inner, level + 1)


def _help(action: argparse.Action) -> str:
    if action.choices is not None and not action.help:
        return " or ".join(map(str, action.choices))
    return (action.help or "").replace(str(agent.default_data_dir()), AGENT_DIR)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
