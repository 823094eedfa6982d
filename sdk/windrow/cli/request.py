"""Turns what a person writes into a request: `--gpu 24GB`, `--gpu H100:2`, `--memory 8GB`, `max_duration: 8h`. Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from stat import S_ISFIFO, S_ISREG
from typing import Any

from windrow.errors import InvalidInput
from windrow.fields import Field

_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([KMGT])(i?)B?$", re.IGNORECASE)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}
_SPAN = re.compile(r"^(\d+(?:\.\d+)?)([smhd]?)$")
_COUNT = re.compile(r"[0-9]{1,9}")
_ARRAY = re.compile(r"([0-9]{1,9})(?:%([0-9]{1,9}))?")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_LIKE_NO_NAME = re.compile(
    r"\.*|[0-9a-f]{4,}|((access|account|cluster|command|host|job|receipt|token|volume|workload)_|(GPU|MIG|MPS)-).*",
    re.IGNORECASE,
)
"""Only dots, or so like an id that the Master would refuse it."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FILE_MAX = 1 << 20
"""Bytes of a file of variables or packages; a request holds fewer."""
NAME_MAX = 40
"""Characters of a name that is made of a program's."""
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_size(text: str) -> int:
    """`24GB` is 24 * 10**9 bytes, `24GiB` 24 * 2**30; raises InvalidInput on anything else."""
    match = _SIZE.match(text.strip())
    if match is None:
        raise InvalidInput(f"{text!r} is not a size. Write for example 24GB or 512MiB.")
    number, unit, binary = match.groups()
    return int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.upper()])


def parse_span(text: str) -> float:
    """`90s`, `30m`, `8h`, `2d` or seconds; raises InvalidInput on anything else."""
    match = _SPAN.match(text.strip())
    if match is None or float(match[1]) <= 0:
        raise InvalidInput(f"{text!r} is not a time. Write for example 90s, 30m, 8h or 2d.")
    return float(match[1]) * _SECONDS[match[2]]


def parse_gpu(text: str) -> dict[str, Any]:
    """`24GB` (one GPU with at least that), `2` (two of any), `H100:2` (two of that model), `24GB:2`."""
    what, _, count = text.strip().partition(":")
    if not what:
        raise InvalidInput("--gpu has no value. Leave it out for no GPU, or write 24GB, H100, H100:2 or a number.")
    if count and not (_COUNT.fullmatch(count) and 1 <= int(count) <= 1024):
        raise InvalidInput(f"--gpu {text!r}: {count!r} is not a number of GPUs.")
    gpus = int(count or 1)
    if not count and _COUNT.fullmatch(what):
        return {"gpus": int(what)}
    if _SIZE.match(what):
        return {"gpus": gpus, "gpu_memory_bytes": parse_size(what)}
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,63}", what):
        raise InvalidInput(f"--gpu {text!r}: write a memory size (24GB), a model (H100), or either with :count.")
    return {"gpus": gpus, "gpu_model": what}


def parse_array(text: str) -> dict[str, int]:
    """`1000` (so many copies), `1000%20` (of which 20 run at once); raises InvalidInput on anything else."""
    match = _ARRAY.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(
            f"--array {text!r}: write the number of copies (1000), or also how many run at once (1000%20)."
        )
    if int(match[1]) == 0:
        raise InvalidInput("--array 0 would start no job. Write a number from 1, or leave it out for one job.")
    return {"array_size": int(match[1])} | ({"array_at_once": int(match[2])} if match[2] else {})


def parse_begin(text: str, now: datetime) -> str:
    """`18:00` is the next moment at which clocks here say so, after `now`; anything else is as it is."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        try:
            datetime.fromisoformat(text)
        except ValueError:
            raise InvalidInput(
                f"--begin {text!r} is not a time. Write for example 18:00, or 2030-01-31T18:00:00Z."
            ) from None
        return text
    at = now.replace(hour=int(match[1]), minute=int(match[2]), second=0, microsecond=0, tzinfo=None)
    return (at + timedelta(days=at <= now.replace(tzinfo=None))).astimezone().isoformat()


def variable_name(pair: str) -> str:
    """Returns the name of `NAME=value` or NAME. Raises InvalidInput, with no more of it than could be a name: the rest
    may be a secret."""
    name, how = pair.partition("=")[0], "write NAME=value, or NAME for what your environment has."
    found = re.match(r"[A-Za-z_][A-Za-z0-9_]*", name)
    if not name:
        raise InvalidInput(f"--env has no name of a variable: {how}")
    if found is None or found[0] != name:
        shown = f"--env {found[0]}..." if found else "--env"
        raise InvalidInput(f"{shown}: a name has letters, digits and _ alone, and begins with no digit: {how}")
    return name


def parse_env(pairs: Sequence[str]) -> dict[str, str]:
    """`NAME=value` pairs."""
    return {variable_name(pair): pair.partition("=")[2] for pair in pairs}


def read_env(path: Path) -> list[tuple[str, str]]:
    """The lines of a file of variables, NAME=value or NAME each, with the words for their places, as Docker reads it: a
    value is what stands there, with its quotes; lines that begin with # say nothing. Raises InvalidInput, without a
    word of a line: it may be a secret."""
    found = []
    for number, raw in enumerate(_text_of(path).split("\n"), 1):
        line, place = raw.removesuffix("\r").lstrip(), f"{path} line {number}"
        if not line or line.startswith("#"):
            continue
        if not _NAME.fullmatch(line.partition("=")[0]):
            raise InvalidInput(f"{place}: NAME=VALUE is expected.")
        found.append((place, line))
    return found


def read_requirements(path: Path) -> list[str]:
    """The packages that a requirements file names; raises InvalidInput for options, which are the host's own."""
    lines = _text_of(path).splitlines()
    found = [line for raw in lines if (line := re.sub(r"(^|\s)#.*$", "", raw).strip())]
    for line in found:
        if line.startswith("-") or line.endswith("\\"):
            raise InvalidInput(f"{path}: {line[:80]!r} is not a package. Write one per line, as numpy or numpy==2.4.")
    return found


def _text_of(path: Path) -> str:
    """Returns a file's text without a byte order mark, which some editors write. Raises InvalidInput."""
    try:
        mode = path.stat().st_mode
        if not (S_ISREG(mode) or S_ISFIFO(mode)):  # a pipe: --env-file <(command)
            raise InvalidInput(f"{path} is no regular file. Write what it would say into one.")
        with path.open("rb") as file:
            raw = file.read(FILE_MAX + 1)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    if len(raw) > FILE_MAX:
        raise InvalidInput(f"{path} is larger than {FILE_MAX >> 20} MiB, which no such file is.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} cannot be read: it is not UTF-8.") from None


def registry_login(text: str) -> dict[str, str]:
    """`NAME:PASSWORD`, as a file or a pipe holds it; the password may have colons."""
    name, colon, password = text.strip().partition(":")
    if not colon or not name or not password:
        raise InvalidInput("A registry's login is one line of NAME:PASSWORD.")
    return {"username": name, "password": password}


def body(fields: Sequence[Field], given: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a request that these values are, by the names of its fields; None is left out. Sizes and times may be
    text such as 8GB and 30m. Raises InvalidInput, also for a name that is none."""
    known = {field.name: field for field in fields}
    for name in given:
        if name not in known:
            raise InvalidInput(f"{name!r} is no field of such a request. There are: {', '.join(sorted(known))}.")
    return {name: _value(known[name], value) for name, value in given.items() if value is not None}


def name_from(program: str) -> str | None:
    """Returns a name for the work of this program, where nobody gave one; None: it has none that a name may be."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(program).name)[:NAME_MAX].strip("-")
    return None if _LIKE_NO_NAME.fullmatch(name) else name


def _value(field: Field, value: Any) -> Any:
    """A value as JSON has it."""
    if value == "" and not field.may_be_empty:
        raise InvalidInput(f"{field.flag or field.name} has no value. Leave it out, or give it one.")
    if field.kind == "time":
        return _time(field.flag or field.name, value)
    if field.kind == "size" and isinstance(value, str):
        return parse_size(value)
    if field.kind == "span" and isinstance(value, str):
        return 0 if value == "0" else parse_span(value)
    if field.kind == "money":
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    if field.kind in ("texts", "wholes"):
        return list(value)
    return dict(value) if field.kind == "map" else value


def _time(name: str, value: datetime | str) -> str:
    """A moment as RFC 3339 has it."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise InvalidInput(f"{name} {value!r} is not a time. Write for example 2030-01-31T18:00:00Z.") from None
    if moment.tzinfo is None:
        raise InvalidInput(
            f"{name} {value} has no time zone. Write for example 2030-01-31T18:00:00Z (UTC), or +01:00 in place of Z."
        )
    return moment.isoformat()
