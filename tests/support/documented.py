"""Reads command lines of the documents with the parsers of the programs themselves; nothing is run."""

import argparse
import contextlib
import io
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import typer.main

from tests.support.pages import ROOT
from windrow.cli import main
from windrow_access import config as access
from windrow_agent.app import config as agent
from windrow_master import config as master
from windrow_master.hybrid import sweep
from windrow_master.recovery import command as recovery
from windrow_master.telemetry.rebuild import service as rebuild

NUMBER: Final = re.compile(r"N|MBIT_S|SECONDS")
"""Placeholders of the pages that stand for a number."""
LEFT_OUT: Final = ("...", "…")
MAKEFILE: Final = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS: Final = frozenset(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))


def commands_in(line: str) -> list[list[str]]:
    """The words of each program of ours in a line of shell, the program's name first."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    parts = [list(words) for is_end, words in groupby(lexer, lambda word: word in ("|", "||", "&&", ";")) if not is_end]
    found = []
    for part in parts:
        while part and (part[0] in ("sudo", "exec", "-u") or re.match(r"[A-Z_]+=", part[0])):
            del part[: 2 if part[0] == "-u" else 1]
        if part and os.path.basename(part[0]) in PROGRAMS:
            found.append([os.path.basename(part[0]), *part[1:]])
    return found


def refusal(words: Sequence[str]) -> str:
    """Returns the reason for which the program refuses these words; empty: it takes them.

    A verb without any argument is a mention of it, and so is what ends with an ellipsis. Square brackets are taken off.
    """
    program, *given = (word.strip("[]") for word in words if word not in LEFT_OUT)
    given = ["1" if NUMBER.fullmatch(word) else word for word in given]
    is_mention = len(given) < len(words) - 1
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for word in given:  # where it names a file, that has to be there
            if re.fullmatch(r"[\w.]+", word):
                Path(word).touch()
        return PROGRAMS[program](given, is_mention)


@cache
def flags() -> frozenset[str]:
    """The flags of all programs of ours, and of the installer."""
    found = {flag for command in _all_commands(_windrow()) for one in command.params for flag in _flags_of(one)}
    found |= {flag for parser in _PARSERS.values() for flag in _parser_flags(parser())}
    found |= set(re.findall(r"--[a-z][a-z-]+", (ROOT / "deploy" / "install.sh").read_text(encoding="utf-8")))
    return frozenset(found)


def is_group(word: str) -> bool:
    """True if `windrow` has verbs of this noun."""
    return bool(getattr(_windrow().commands.get(word), "commands", None))


# --- windrow ----------------------------------------------------------------------------------------------------------


@cache
def _windrow() -> Any:
    main.load_commands(["up"])
    return typer.main.get_command(main.app)


def _of_windrow(words: list[str], is_mention: bool) -> str:
    command, context, rest = _windrow(), None, list(words)
    name, opened = "windrow", contextlib.ExitStack()
    try:
        while rest:
            context = command.make_context(name, rest, parent=context)
            opened.callback(context.close)
            if not getattr(command, "commands", None):
                break
            left = [*context._protected_args, *context.args]
            if not left and command.invoke_without_command:
                break
            name, command, rest = command.resolve_command(context, left)
        return ""
    except Exception as error:  # those of the parser have words for a person
        says = getattr(error, "format_message", None)
        if says is None:
            raise
        return "" if is_mention and type(error).__name__ == "MissingParameter" else str(says())
    finally:
        opened.close()


def _all_commands(command: Any) -> list[Any]:
    inner = [one for each in getattr(command, "commands", {}).values() for one in _all_commands(each)]
    return [command, *inner]


def _flags_of(parameter: Any) -> list[str]:
    return [*parameter.opts, *parameter.secondary_opts]


# --- the daemons ------------------------------------------------------------------------------------------------------

_PARSERS: Final[dict[str, Callable[[], argparse.ArgumentParser]]] = {
    "windrow-agent": agent.command_line,
    "windrow-access": access.command_line,
    "windrow-master": partial(master.command_line, {}),
    "windrow-master recovery": recovery.command_line,
    "windrow-master sweep": sweep.command_line,
    "windrow-master rebuild-history": partial(rebuild.command_line, Path()),
}


def _of_daemon(program: str, words: list[str], is_mention: bool) -> str:
    name = program
    if program == "windrow-master" and words[:1] and words[0] in recovery.NAMES:
        name = "windrow-master recovery"
    elif program == "windrow-master" and words[:1] in (["rebuild-history"], [sweep.NAME]):
        name, words = f"windrow-master {words[0]}", words[1:]
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            _PARSERS[name]().parse_args(words)
    except SystemExit:
        is_short = "arguments are required" in told.getvalue()
        return "" if is_short and (is_mention or len(words) < 2) else told.getvalue()
    return ""


def _parser_flags(parser: argparse.ArgumentParser) -> set[str]:
    found = set()
    for action in parser._actions:
        found |= set(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                found |= _parser_flags(inner)
    return found


# --- make -------------------------------------------------------------------------------------------------------------


def _of_make(words: list[str], is_mention: bool) -> str:
    for word in words:
        name, equals, _ = word.partition("=")
        if equals and f"$({name})" not in MAKEFILE and not re.search(rf"^export .*\b{name}\b", MAKEFILE, re.MULTILINE):
            return f"make reads no {name}"
        if not equals and word not in TARGETS:
            return f"make has no target {word}"
    return ""


PROGRAMS: Final[dict[str, Callable[[list[str], bool], str]]] = {
    "windrow": _of_windrow,
    "make": _of_make,
    **{name: partial(_of_daemon, name) for name in ("windrow-agent", "windrow-access", "windrow-master")},
}
