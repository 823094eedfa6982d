"""Finds words on a command line that look like secrets and that others would read. Pure; it never repeats what it
found.

A command stands in lists, on the pages of operators and on its host; so do the names of variables, not their values.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from windrow.config import OWN_TOKEN

OWNER: Final = "The host's owner can read whatever runs there."
_TOKEN: Final = re.compile(
    r"\bhf_[A-Za-z0-9]{16,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\b[sr]k[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}|"
    r"\bgh[opsru]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}|"
    r"\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{30,}|\bnvapi-[\w-]{16,}|"
    r"\br8_[A-Za-z0-9]{30,}|\bdop_v1_[0-9a-f]{32,}|\bSG\.[\w-]{16,}\.[\w-]{16,}|"
    rf"{OWN_TOKEN}|"
    r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.|-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY"
)
"""How the tokens of known services look."""
_IN_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/@:]*:[^\s/@]+@", re.IGNORECASE)
_SECRET_NAME: Final = re.compile(
    r"(?:^|[-_])(?:token|passwd|password|passphrase|passwort|pwd|secret|credentials?|(?:api|access|secret|private|auth)"
    r"[-_]?key|apikey|secret[-_]?access[-_]?key|bearer)$",
    re.IGNORECASE,
)
_PATHS: Final = frozenset(
    {"cp", "docker", "install", "jupyter", "mkdir", "podman", "read", "rsync", "scp", "ssh", "tar"}
)
"""Their -p is no password."""
_NO_SECRET: Final = re.compile(
    r"[\d.:,]*|(?:true|false|none|null|yes|no)|[$@~/.].*|<.*>|\*+", re.IGNORECASE | re.DOTALL
)
"""Numbers, ports, files, what a shell fills in there, and blanks to be filled."""


def found(argv: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """One line for each place of a command and of variables written beside it that looks like a secret."""
    lines = []
    for place in dict.fromkeys(_in_command(argv)):
        words = "looks like a secret, and a command is seen in lists and on its host"
        lines.append(f"{place} {words}: give it as --env NAME, from your own environment. {OWNER}")
    for name, value in env.items():
        if _TOKEN.search(name):
            lines.append(f"The name of a variable looks like a secret, and names are seen in lists. {OWNER}")
        elif _is_secret(name, value):
            words = "looks like a secret, and stays in your shell's history"
            lines.append(f"The value of {name} {words}: --env {name} takes it from your own environment. {OWNER}")
    return tuple(lines)


def _in_command(argv: Sequence[str]) -> Iterator[str]:
    """A word with words in it is what a shell, or another program, is told to do."""
    inner = [_words(word) for word in argv]
    for number, words in enumerate(inner, 1):
        if len(words) > 1:
            yield from (f"Word {number} of the command" for _ in _in_words(words))
    yield from _in_words([word if len(words) <= 1 else "" for word, words in zip(argv, inner, strict=True)])


def _in_words(words: Sequence[str]) -> Iterator[str]:
    program, is_value = "", False
    for number, word in enumerate(words, 1):
        after = words[number] if number < len(words) else ""
        name, equals, value = word.partition("=")
        is_named = name.startswith("-") or (bool(equals) and name.isidentifier())
        if is_value:
            is_value = False
        elif _TOKEN.search(name) or (not is_named and (_TOKEN.search(word) or _IN_URL.search(word))):
            yield f"Word {number} of the command"
        elif equals and is_named and _is_secret(name.lstrip("-"), value):
            yield f"The value of {name}"
        elif not equals and name.startswith("-") and _is_password(name, after, program):
            is_value = True
            yield f"The value of {name}"
        program = program if word.startswith("-") or equals else word.rsplit("/", 1)[-1]


def _is_password(option: str, value: str, program: str) -> bool:
    """True if this option of a program takes a secret, and has one."""
    if option == "-p":
        is_one = program not in _PATHS and "/" not in value
    else:
        is_one = bool(_SECRET_NAME.search(option.lstrip("-")))
    is_one = is_one or (option.startswith("--") and bool(_TOKEN.search(value)))
    return is_one and not value.startswith("-") and not _NO_SECRET.fullmatch(value)


def _is_secret(name: str, value: str) -> bool:
    is_named = bool(_SECRET_NAME.search(name)) and bool(value) and not _NO_SECRET.fullmatch(value)
    return is_named or bool(_TOKEN.search(value) or _IN_URL.search(value))


def _words(text: str) -> list[str]:
    """Splits a line as a shell would, as far as the line is valid."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
