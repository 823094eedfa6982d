"""Archives that a renter sends to a host, and that mean harm: the agent is neither filled, nor held up, nor broken."""

import tarfile
import time
from pathlib import Path

import pytest

from windrow_agent.runtimes import tar_unpack
from windrow_proto.errors import InvalidInput

pytestmark = pytest.mark.row("F15")
CAP = 1 << 30
END = bytes(1024)
LARGE = 8 << 20


def head(name: str, size: int, kind: bytes = b"0") -> bytes:
    """A header; a size below nothing is written as GNU's tar writes huge ones."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, max(size, 0)
    raw = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    if size < 0:
        raw[124:136] = (size & (1 << 96) - 1).to_bytes(12, "big")
        raw[148:156] = b" " * 8
        raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


def record(key: str, value: str) -> bytes:
    """One of a pax header."""
    body = f" {key}={value}\n".encode()
    length = len(body) + 1
    while len(str(length)) + len(body) != length:
        length = len(str(length)) + len(body)
    return str(length).encode() + body


def said(key: str, value: str, kind: bytes = b"x") -> bytes:
    """A file with a header before it that says this."""
    data = record(key, value)
    return head("h", len(data), kind) + data + bytes(-len(data) % 512) + head("x", 6) + b"theirs" + bytes(506) + END


def folded(count: int, size: int) -> bytes:
    """Files that all share one content, reached by going back behind each."""
    heads = [head(f"f{number}", size + (count - 1) * 512) for number in range(count)]
    backs = [
        head(f"j{number}", (number + 1) * 512 - (count * 512 + size + (number + 1) * 512)) for number in range(count)
    ]
    return b"".join(heads) + bytes(size) + b"".join(backs) + END


HOSTILE = {
    "one content in many files": folded(20, 1 << 20),
    "less than nothing": said("size", "-5"),
    "a header of less than nothing": head("h", -512, b"x") + head("x", 0) + END,
    "a header of 8 MiB": head("h", LARGE, b"x") + b"9" * (LARGE) + END,
    "a name of 8 MiB": head("h", LARGE, b"L") + b"n" * (LARGE) + END,
    "digits without an end": said("path", "9" * 60_000),
    "headers without an end": said("comment", "v")[:1024] * 2000 + END,
    "a header for all of 8 MiB": head("h", LARGE, b"g") + b"9" * (LARGE) + END,
    **{f"a time of {text}": said("mtime", text) for text in ("nan", "inf", "--5", "1e400")},
    **{f"GNU.sparse.{key}": said(f"GNU.sparse.{key}", "a,b") for key in ("map", "size", "major", "realsize")},
}


@pytest.mark.row("F5")
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_an_archive_that_lies_about_itself_is_refused_at_once(tmp_path: Path, data: bytes) -> None:
    archive, folder = tmp_path / "a.tar", tmp_path / "work"
    archive.write_bytes(data)
    folder.mkdir()
    began = time.process_time()
    for take in (lambda: tar_unpack.unpack(archive, folder, CAP), lambda: tar_unpack.check_archive(archive, CAP)):
        try:
            taken = take()
        except InvalidInput:
            continue
        assert (taken.files.files, taken.files.bytes) == (1, 6)
    assert time.process_time() - began < 2
    assert sum(path.stat().st_size for path in folder.rglob("*")) <= 2 << 20
