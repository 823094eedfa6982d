"""The values of this package: keys of objects, an object's size and age, and the manifest that makes a checkpoint
exist.

Pure. A key is parsed once, here; whatever took one as a value may build a path or an address from it.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, Final

from windrow_master.clusters.model import Artefact as Artefact
from windrow_master.clusters.model import ObjectKey as ObjectKey
from windrow_proto.checkpoints import PIECES_MAX, file_name
from windrow_proto.errors import InvalidInput
from windrow_proto.units import GIB, MIB

KEY_BYTES_MAX: Final = 512
"""Of a whole key: S3 takes 1,024 bytes, and a folder's own path comes before it."""
PART_BYTES_MAX: Final = 128
"""Between two slashes; most file systems take 255."""
SMALL_BYTES_MAX: Final = 8 * MIB
"""The most bytes of an object that is created only if absent, in one piece: a manifest of 10,000 parts has some 2
MiB."""
ARTEFACT_BYTES_MAX: Final = 64 * GIB
"""Of one artefact, plain; S3 takes 78 GiB in parts of 8 MiB."""
LIST_MAX: Final = 1000
"""Objects of one page; S3 gives no more at once (ListObjectsV2, MaxKeys)."""

_PART: Final = re.compile(r"[A-Za-z0-9_=+-][A-Za-z0-9._=+-]*")
_HASH: Final = re.compile(r"[0-9a-f]{64}")


def object_key(text: str) -> ObjectKey:
    """The key, if it is one. A part never begins with a dot, so that none is `..` or hidden. Raises InvalidInput."""
    if not text or len(text) > KEY_BYTES_MAX:
        raise InvalidInput(f"The key of an object has 1 to {KEY_BYTES_MAX} bytes.", subject=text[:64])
    for part in text.split("/"):
        if not _PART.fullmatch(part) or len(part) > PART_BYTES_MAX:
            raise InvalidInput(
                f"{part[:64]!r} cannot be part of an object's key: 1 to {PART_BYTES_MAX} letters, digits and "
                ". _ = + -, the first no dot.",
                subject=text[:64],
            )
    return ObjectKey(text)


def key_prefix(text: str) -> str:
    """The prefix, if it is "" or whole parts with a slash at the end. Raises InvalidInput."""
    if text == "":
        return text
    if not text.endswith("/"):
        raise InvalidInput("A prefix of keys ends with a slash.", subject=text[:64])
    return object_key(text[:-1]) + "/"


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """The facts of a store about one object; modified_ns: its own clock's, in nanoseconds since 1970."""

    key: ObjectKey
    size_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """Objects in the order of their keys' bytes; `after` continues behind them, None: there are no more."""

    objects: tuple[ObjectStat, ...]
    after: ObjectKey | None


@dataclass(frozen=True, slots=True)
class Presigned:
    """A call that whoever holds this may make until it expires: method, address, and headers that must go with it."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a checkpoint, or a piece of it, and the object that holds it, sealed. offset: of the piece.

    sealed_bytes, sealed_sha256: of the object as it lies in the store, so that it can be judged without its key.
    """

    name: str
    offset: int
    size_bytes: int
    key: ObjectKey
    sealed_bytes: int
    sealed_sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The parts that a checkpoint is made of. A checkpoint exists when, and only when, its manifest does.

    step: >= 0, grows; of two manifests the one with the larger step is the newer. wrapped_key: the data key of its
    parts, sealed by the Master. attempt: which upload of this step won.
    """

    owner: str
    step: int
    attempt: str
    made_ns: int
    wrapped_key: str
    parts: tuple[Part, ...]


MANIFEST_VERSION: Final = 1


def encode_manifest(manifest: Manifest) -> bytes:
    """As JSON, keys sorted, and a line with its SHA-256: a manifest that rotted is none."""
    parts = [
        {
            "name": part.name,
            "offset": part.offset,
            "key": part.key,
            "size_bytes": part.size_bytes,
            "sealed_bytes": part.sealed_bytes,
            "sealed_sha256": part.sealed_sha256,
        }
        for part in manifest.parts
    ]
    record = {
        "version": MANIFEST_VERSION,
        "owner": manifest.owner,
        "step": manifest.step,
        "attempt": manifest.attempt,
        "made_ns": manifest.made_ns,
        "wrapped_key": manifest.wrapped_key,
        "parts": parts,
    }
    content = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    return content + b"\n" + hashlib.sha256(content).hexdigest().encode()


def parse_manifest(content: bytes) -> Manifest:
    """Read it back; raises InvalidInput for whatever is not a whole manifest of this version."""
    if len(content) > SMALL_BYTES_MAX:
        raise InvalidInput(f"A manifest has at most {SMALL_BYTES_MAX} bytes.")
    content, _, digest = content.rpartition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != digest:
        raise InvalidInput("This is not the manifest of a checkpoint, or not all of it as it was written.")
    try:
        record = json.loads(content)
        if record["version"] != MANIFEST_VERSION or len(record["parts"]) > PIECES_MAX:
            raise InvalidInput("This manifest is of another version, or has too many parts.")
        return Manifest(
            owner=_text(record["owner"]),
            step=_count(record["step"]),
            attempt=_text(record["attempt"]),
            made_ns=_count(record["made_ns"]),
            wrapped_key=_text(record["wrapped_key"]),
            parts=tuple(_part(one) for one in record["parts"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput("This is not the manifest of a checkpoint.") from error


def _part(record: dict[str, Any]) -> Part:
    digest = _text(record["sealed_sha256"])
    if not _HASH.fullmatch(digest):
        raise ValueError("no SHA-256")
    return Part(
        name=file_name(record["name"]),
        offset=_count(record["offset"]),
        key=object_key(_text(record["key"])),
        size_bytes=_count(record["size_bytes"]),
        sealed_bytes=_count(record["sealed_bytes"]),
        sealed_sha256=digest,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text expected")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("a number from 0 expected")
    return value


@dataclass(frozen=True, slots=True)
class Usage:
    """The space that an account's artefacts take, in plain bytes; the few that sealing adds are not counted."""

    artefacts: int
    size_bytes: int
    quota_bytes: int
