"""Packs a package that is installed here, editable or not, into a wheel; the same files give the same bytes."""

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MOMENT: Final = (1980, 1, 1, 0, 0, 0)
"""Of every file inside: the earliest that the format knows, so that a wheel depends on contents alone."""
MODE: Final = 0o100644 << 16


@dataclass(frozen=True, slots=True)
class Declared:
    """The metadata of a distribution. scripts: command -> `module:function`."""

    name: str
    version: str
    summary: str
    requires_python: str
    licence: str
    dependencies: tuple[str, ...]
    scripts: Mapping[str, str]

    @property
    def stem(self) -> str:
        """As the names of its files begin."""
        return f"{self.name.replace('-', '_')}-{self.version}"


def pack(declared: Declared, files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """The file name and bytes of a pure wheel. files: by path from the top of site-packages."""
    folder = f"{declared.stem}.dist-info"
    contents = {
        **files,
        f"{folder}/METADATA": _metadata(declared),
        f"{folder}/WHEEL": b"Wheel-Version: 1.0\nGenerator: windrow\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{folder}/entry_points.txt": _entry_points(declared.scripts),
    }
    ordered = sorted(contents.items())
    record = f"{folder}/RECORD"
    lines = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in ordered]
    body = "\n".join([*lines, f"{record},,"]) + "\n"
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in [*ordered, (record, body.encode())]:
            entry = zipfile.ZipInfo(path, MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = MODE
            archive.writestr(entry, content)
    return f"{declared.stem}-py3-none-any.whl", held.getvalue()


def _metadata(declared: Declared) -> bytes:
    lines: Sequence[str] = [
        "Metadata-Version: 2.4",
        f"Name: {declared.name}",
        f"Version: {declared.version}",
        f"Summary: {declared.summary}",
        f"License-Expression: {declared.licence}",
        f"Requires-Python: {declared.requires_python}",
        *(f"Requires-Dist: {requirement}" for requirement in declared.dependencies),
    ]
    return ("\n".join(lines) + "\n").encode()


def _entry_points(scripts: Mapping[str, str]) -> bytes:
    lines = [f"{command} = {target}\n" for command, target in sorted(scripts.items())]
    return ("[console_scripts]\n" + "".join(lines)).encode() if lines else b""


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
