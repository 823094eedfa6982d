"""Packs files into a tar, a Debian package or a file that unpacks itself; the same files give the same bytes."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

LEVEL: Final = 6
AR_MAGIC: Final = b"!<arch>\n"
DIGEST_HEX: Final = 12
"""Of the archive's SHA-256, as the name of the folder that it is unpacked into."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: its bytes, or where it leads."""

    content: bytes = b""
    is_program: bool = False
    link: str = ""


def tar_gz(files: Mapping[str, Entry], top: str = "") -> bytes:
    """An archive owned by root, times at zero. top: put before each path, with its slash."""
    folders = {part for path in files for part in _parents(f"{top}{path}")}
    held = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=held, mode="wb", compresslevel=LEVEL, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        for folder in sorted(folders):
            made = tarfile.TarInfo(folder)
            made.type, made.mode, made.uname, made.gname = tarfile.DIRTYPE, 0o755, "root", "root"
            archive.addfile(made)
        for path, entry in sorted(files.items()):
            made = tarfile.TarInfo(f"{top}{path}")
            made.uname = made.gname = "root"
            made.mode = 0o755 if entry.is_program else 0o644
            if entry.link:
                made.type, made.linkname, made.mode = tarfile.SYMTYPE, entry.link, 0o777
                archive.addfile(made)
            else:
                made.size = len(entry.content)
                archive.addfile(made, io.BytesIO(entry.content))
    return held.getvalue()


def _parents(path: str) -> tuple[str, ...]:
    parts = path.split("/")[:-1]
    return tuple("/".join(parts[: count + 1]) for count in range(len(parts)) if parts[count] != ".") or ()


def deb(control: Sequence[tuple[str, str]], scripts: Mapping[str, bytes], files: Mapping[str, Entry]) -> bytes:
    """A Debian package (format 2.0 of deb(5)). control: fields in order; files: by path from the root, no slash in
    front."""
    size_kib = sum(-(-len(entry.content) // 1024) for entry in files.values())
    fields = "".join(f"{name}: {value}\n" for name, value in (*control, ("Installed-Size", str(size_kib))))
    sums = "".join(
        f"{hashlib.md5(entry.content, usedforsecurity=False).hexdigest()}  {path}\n"
        for path, entry in sorted(files.items())
        if not entry.link
    )
    inside = {
        "control": Entry(fields.encode()),
        "md5sums": Entry(sums.encode()),
        **{name: Entry(content, is_program=True) for name, content in scripts.items()},
    }
    members = (
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", tar_gz(inside, "./")),
        ("data.tar.gz", tar_gz(files, "./")),
    )
    return AR_MAGIC + b"".join(_member(name, content) for name, content in members)


def _member(name: str, content: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n"
    return head.encode() + content + b"\n" * (len(content) % 2)


def one_file(head: bytes, payload: bytes) -> bytes:
    """A shell script with the archive behind it. head: has the archive's @SHA256@ and @BYTES@, ends with a newline."""
    digest = hashlib.sha256(payload).hexdigest()
    return head.replace(b"@SHA256@", digest.encode()).replace(b"@BYTES@", str(len(payload)).encode()) + payload


def sums(contents: Mapping[str, bytes]) -> bytes:
    """As `sha256sum --check` reads it."""
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(contents.items()))
    return "".join(lines).encode()
