"""Writes what follows from a table elsewhere: the SDK's fields of requests, and the console's names of files that stay.

`python -m tests.architecture.request_fields`, part of `make openapi`; a test compares.
"""

import json
import textwrap
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

from windrow.folder import names, sending
from windrow_master.clusters.model import ClusterRequest
from windrow_master.jobs.model import JobRequest
from windrow_master.spec import Many, RequestField, Unit, fields_of
from windrow_proto.units import SECOND, Bytes, Microcents

ROOT = Path(__file__).parents[2]
SDK = ROOT / "sdk" / "windrow" / "fields.py"
FOLDERS = ROOT / "console" / "src" / "folders" / "names.ts"
GIVEN_BY_CALLS = {"name", "argv", "kind", "env", "await_files", "after", "optimize"}
"""Fields that a call of the SDK sets from arguments of its own."""
TYPES = {
    "text": "str",
    "whole": "int",
    "yes": "bool",
    "size": "int | str",
    "span": "float | str",
    "money": "str | Decimal | int",
    "time": "str | datetime",
    "texts": "Sequence[str]",
    "wholes": "Sequence[int]",
    "map": "Mapping[str, str]",
}
FACTS = {
    "default": None,
    "flag": "",
    "help": "",
    "least": None,
    "most": None,
    "is_filter": False,
    "may_be_empty": False,
}
"""The other properties of a field in the SDK, each with the default that is not written."""
HEAD = '''"""The fields of requests for clusters and jobs; `make openapi` writes this file from the Master's spec."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple, TypedDict


class Field(NamedTuple):
    """One field. name: in JSON. kind: of its value: text, whole, yes, size, span, money, time, texts, wholes or map.
    default: the Master's, None: nothing. flag: of the command line, empty: none, or one that a verb reads itself.
    """

    name: str
    kind: str
    default: str | float | tuple[str, ...] | None = None
    flag: str = ""
    help: str = ""
    least: int | None = None
    most: int | None = None
    is_filter: bool = False
    may_be_empty: bool = False


'''
FOLDERS_HEAD = """// What of a folder is not sent, by name, and how much is, from sdk/windrow/folder/: written by
// `python -m tests.architecture.request_fields`. SECRET_TEXT: a pattern over bytes, with the flags i and m.
"""


def kind_of(one: RequestField) -> str:
    """The kind of a field's value, as a person or a program gives it."""
    if one.many is Many.MAP:
        return "map"
    if one.kind is Bytes:
        return "size"
    if one.kind is Microcents:
        return "money"
    if one.spec.unit is not Unit.NONE:
        return "time" if one.spec.unit is Unit.TIME else "span"
    kind = {int: "whole", bool: "yes"}.get(one.kind, "text")
    return f"{kind}s" if one.many is Many.LIST else kind


def row(one: RequestField) -> str:
    """One field as a line of the SDK."""
    default = one.default.value if isinstance(one.default, StrEnum) else one.default or None
    if default and one.spec.unit is Unit.SECONDS:
        default = one.default / SECOND
    is_whole = kind_of(one) == "whole"
    facts = {
        "default": default,
        "flag": one.spec.flag,
        "help": (one.spec.help or f"{one.spec.text}.") if one.spec.flag else "",
        "least": one.spec.least if is_whole else None,
        "most": one.spec.most if is_whole else None,
        "is_filter": one.spec.is_filter,
        "may_be_empty": one.spec.may_be_empty,
    }
    said = [f"{name}={_text(value)}" for name, value in facts.items() if value != FACTS[name]]
    return f"    Field({', '.join([_text(one.name), _text(kind_of(one)), *said])}),\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def sdk() -> str:
    """The whole file of the SDK."""
    cluster, job = fields_of(ClusterRequest), fields_of(JobRequest)
    common = [one for one in cluster if one in job]
    parts = [HEAD, f"COMMON: Final = (\n{''.join(map(row, common))})\n"]
    for name, fields in (("CLUSTER", cluster), ("JOB", job)):
        own = "".join(row(one) for one in fields if one not in common)
        parts.append(f"{name}: Final = (\n    *COMMON,\n{own})\n")
    for name, fields in (("Cluster", cluster), ("Job", job)):
        lines = [f"    {one.name}: {TYPES[kind_of(one)]} | None\n" for one in fields if one.name not in GIVEN_BY_CALLS]
        said = f'"""The fields of a {name.lower()}\'s request that a call may give by name; None: not given."""'
        parts.append(f"\n\nclass {name}Fields(TypedDict, total=False):\n    {said}\n\n{''.join(lines)}")
    return "".join(parts)


def folders() -> str:
    """The whole file of the console: the names of files that are not sent, and the limits of a folder."""
    lists = {
        "LEFT_BEHIND": names.LEFT_BEHIND,
        "SECRET_FOLDERS": names.SECRET_FOLDERS,
        "SECRET_PATHS": names.SECRET_PATHS,
        "SECRET_NAMES": names.SECRET_NAMES,
        "OPEN_NAMES": names.OPEN_NAMES,
    }
    numbers = {
        "SECRET_LOOK_BYTES": names.SECRET_LOOK_BYTES,
        "NAME_BYTES_MAX": names.NAME_BYTES_MAX,
        "FOLDER_BYTES_MAX": sending.FOLDER_BYTES_MAX,
        "FILES_MAX": sending.FILES_MAX,
    }
    texts = {"ENVIRONMENT_MARK": names.ENVIRONMENT_MARK, "SECRET_TEXT": names.SECRET_TEXT.pattern.decode()}
    lines = [f"export const {name} = [\n{_lines(value)}];" for name, value in lists.items()]
    lines += [f'export const {name} = [\n{_pieces(value)}].join("");' for name, value in texts.items()]
    lines += [f"export const {name} = {value};" for name, value in numbers.items()]
    return FOLDERS_HEAD + "\n".join(lines) + "\n"


def _lines(texts: Iterable[str]) -> str:
    said = ", ".join(map(json.dumps, texts))
    return textwrap.indent(textwrap.fill(said, 116, break_long_words=False, break_on_hyphens=False), "  ") + ",\n"


def _pieces(text: str, most: int = 80) -> str:
    return "".join(f"  {json.dumps(text[at : at + most])},\n" for at in range(0, len(text), most))


WRITTEN = {SDK: sdk, FOLDERS: folders}
"""Each file and what it has to hold."""


if __name__ == "__main__":
    for path, content in WRITTEN.items():
        path.write_text(content(), encoding="utf-8")
