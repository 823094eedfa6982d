"""The messages of agent and Master in a checkpoint channel, and the layout of a checkpoint in a folder. Pure.

A workload writes a checkpoint into a folder of any other name and renames it to `step-<number>` when it is whole
(docs/checkpoints.md). Control messages are lines of JSON on stream 0, bytes of objects go on stream 1.

save     M: order {after_step, data_key}      A: found {step, pieces}     then for each piece
         M: put {key, call}                   A: sealed bytes here, or by the call to the store;   done {bytes, sha256}
restore  M: order {step, data_key, pieces}    then for each piece
         M: get {key, call, sha256}, and the sealed bytes where there is no call;   A: done, at the end restored {step}
settled  M: settled                           A: settled

A volume's versions move likewise (docs/volumes.md): the orders name it, all of its folder is meant, and `seen` says
how the folder looked, so that one that still looks so is not sent again. `settled`: all volumes are in place and the
work may start, or all are saved and its folders may go.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from windrow_proto.errors import InvalidInput, TooLarge
from windrow_proto.units import GIB, KIB, MIB
from windrow_proto.volumes import volume_name

FOLDER: Final = "ckpt"
"""In the working folder of a workload; its environment names it as CKPT_DIR."""
CONTROL_STREAM: Final = 0
BYTES_STREAM: Final = 1
PIECE_BYTES: Final = 256 * MIB
"""Of one object: what a broken connection makes again. S3 takes 5 GiB in one call."""
FILES_MAX: Final = 10_000
CHECKPOINT_BYTES_MAX: Final = 64 * GIB
PIECES_MAX: Final = 10_000
NAME_BYTES_MAX: Final = 1 * KIB
LINE_BYTES_MAX: Final = 16 * MIB
"""Of a line: 10,000 pieces with names of the longest kind."""
STEP_MAX: Final = 10**18 - 1
LEFT_MAX: Final = 8
"""Of what cannot be saved, so many are named; the rest is counted."""
LEFT_CHARS_MAX: Final = 160

_STEP: Final = re.compile(r"step-([0-9]{1,18})")


def step_of(name: str) -> int | None:
    """The step of a whole checkpoint by its folder's name; None for every other name."""
    found = _STEP.fullmatch(name)
    return int(found[1]) if found else None


def folder_name(step: int) -> str:
    """How the folder of a restored checkpoint is called."""
    return f"step-{step}"


def file_name(text: object) -> str:
    """A file's path within a checkpoint, if it leads nowhere else. Raises InvalidInput."""
    if not isinstance(text, str) or not text or "\0" in text or "\\" in text:
        raise InvalidInput("A file of a checkpoint has a name.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput("The name of a file of a checkpoint is not UTF-8.") from error
    if size > NAME_BYTES_MAX:
        raise InvalidInput(f"The name of a file of a checkpoint has at most {NAME_BYTES_MAX} bytes.")
    if any(part in {"", ".", ".."} for part in text.split("/")):
        raise InvalidInput(f"{text[:64]!r} leads out of the checkpoint.")
    return text


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of one file of a checkpoint, which becomes one object. offset, size_bytes: in the file."""

    name: str
    offset: int
    size_bytes: int


def pieces_of(files: Iterable[tuple[str, int]], piece_bytes: int = PIECE_BYTES) -> tuple[Piece, ...]:
    """Every file, by name, cut into pieces of at most `piece_bytes`; an empty file is one empty piece.

    Raises TooLarge for more than a checkpoint may have, InvalidInput for names that lead elsewhere.
    """
    found: list[Piece] = []
    total = 0
    for name, size in sorted(files):
        file_name(name)
        total += size
        if total > CHECKPOINT_BYTES_MAX:
            raise TooLarge(f"A checkpoint has at most {CHECKPOINT_BYTES_MAX} bytes.")
        for offset in range(0, max(size, 1), piece_bytes):
            found.append(Piece(name, offset, min(piece_bytes, size - offset)))
            if len(found) > PIECES_MAX:
                raise TooLarge(f"A checkpoint has at most {PIECES_MAX} files, or pieces of {piece_bytes} bytes.")
    return tuple(found)


def check_pieces(pieces: tuple[Piece, ...]) -> None:
    """True if these are the pieces of some files, in order and without holes. Raises InvalidInput or TooLarge."""
    sizes: dict[str, int] = {}
    for piece in pieces:
        if sizes.get(file_name(piece.name), 0) != piece.offset:
            raise InvalidInput(f"The pieces of {piece.name[:64]!r} do not follow each other.")
        sizes[piece.name] = piece.offset + piece.size_bytes
    if len(pieces) > PIECES_MAX or sum(sizes.values()) > CHECKPOINT_BYTES_MAX:
        raise TooLarge(f"A checkpoint has at most {PIECES_MAX} pieces and {CHECKPOINT_BYTES_MAX} bytes.")


# --- what is said -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """An HTTP call that the store answers to whoever has it."""

    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SaveOrder:
    """Find the newest whole checkpoint after this step (-1: any) and send it. data_key: its 32 bytes.

    volume: send all of this volume's folder instead, as the step after this one, unless it looks as `seen`.
    takes_torn: files that are written to while they are read go as they were read, and are named.
    """

    after_step: int
    data_key: bytes = field(repr=False)
    volume: str = ""
    seen: str = ""
    takes_torn: bool = False


@dataclass(frozen=True, slots=True)
class RestoreOrder:
    """Make the folder of this step, or a volume's, from these pieces, which follow one by one."""

    step: int
    data_key: bytes = field(repr=False)
    pieces: tuple[Piece, ...]
    volume: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint that is to be saved; step None: nothing new that is whole. seen: how a volume's folder looks.

    left: what of it cannot be saved and why, a line for each of the first LEFT_MAX. left_count: how many there are.
    """

    step: int | None
    pieces: tuple[Piece, ...] = ()
    seen: str = ""
    left: tuple[str, ...] = ()
    left_count: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """Seal the next piece as the object `key` and send it, or take it in and open it. call None: over this channel.

    sealed_bytes, sealed_sha256: of what is taken in; 0 and "" for what is sent.
    """

    key: str
    call: Call | None
    sealed_bytes: int = 0
    sealed_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    """The piece is there. Of the sealed object. is_torn: its file was written to while it was read."""

    sealed_bytes: int
    sealed_sha256: str
    is_torn: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """The folder of this step is there, whole. seen: how a volume's folder looks now."""

    step: int
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing more is done about the volumes of this workload before it goes on: to its start, or to its end."""


Message = SaveOrder | RestoreOrder | Found | Move | Moved | Restored | Settled


def encode(message: Message) -> bytes:
    """One line of JSON."""
    return json.dumps(_record(message), separators=(",", ":")).encode() + b"\n"


def _record(message: Message) -> dict[str, Any]:
    match message:
        case SaveOrder():
            named = {"volume": message.volume, "seen": message.seen, "takes_torn": message.takes_torn}
            of = named if message.volume else {}
            return {"say": "save", "after_step": message.after_step, "data_key": message.data_key.hex(), **of}
        case RestoreOrder():
            what = {"pieces": _listed(message.pieces), **({"volume": message.volume} if message.volume else {})}
            return {"say": "restore", "step": message.step, "data_key": message.data_key.hex(), **what}
        case Found():
            left = {"left": list(message.left), "left_count": message.left_count} if message.left_count else {}
            listed = _listed(message.pieces)
            return {"say": "found", "step": message.step, "pieces": listed, "seen": message.seen, **left}
        case Move():
            call = message.call
            shown = None if call is None else [call.method, call.url, [list(header) for header in call.headers]]
            sealed = {"bytes": message.sealed_bytes, "sha256": message.sealed_sha256}
            return {"say": "move", "key": message.key, "call": shown, **sealed}
        case Moved():
            torn = {"torn": True} if message.is_torn else {}
            return {"say": "moved", "bytes": message.sealed_bytes, "sha256": message.sealed_sha256, **torn}
        case Restored():
            return {"say": "restored", "step": message.step, "seen": message.seen}
        case Settled():
            return {"say": "settled"}


def decode(line: bytes) -> Message:
    """The message of a line; raises InvalidInput for what is none."""
    try:
        return _message(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput("This is no message of a checkpoint channel.") from error


def _message(record: dict[str, Any]) -> Message:
    match record["say"]:
        case "save":
            of = _volume(record), _text(record.get("seen", "")), record.get("takes_torn") is True
            return SaveOrder(_number(record["after_step"], -1), bytes.fromhex(record["data_key"]), *of)
        case "restore":
            what = _pieces(record["pieces"]), _volume(record)
            return RestoreOrder(_number(record["step"]), bytes.fromhex(record["data_key"]), *what)
        case "found":
            step, seen = record["step"], _text(record.get("seen", ""))
            left = tuple(_text(one)[:LEFT_CHARS_MAX] for one in record.get("left", [])[:LEFT_MAX])
            count = max(len(left), _number(record.get("left_count", 0)))
            return Found(None if step is None else _number(step), _pieces(record["pieces"]), seen, left, count)
        case "move":
            return Move(_text(record["key"]), _call(record["call"]), _number(record["bytes"]), _text(record["sha256"]))
        case "moved":
            return Moved(_number(record["bytes"]), _text(record["sha256"]), record.get("torn") is True)
        case "restored":
            return Restored(_number(record["step"]), _text(record.get("seen", "")))
        case "settled":
            return Settled()
        case _:
            raise ValueError("unknown message")


class Lines:
    """Cuts what comes into lines."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now. Raises TooLarge for one that does not end."""
        first, *others = data.split(b"\n")
        self._held += first  # what is held is not copied until its line is whole: it may come byte by byte
        lines = []
        if others:
            lines = [bytes(self._held), *others[:-1]]
            self._held = bytearray(others[-1])
        if len(self._held) > LINE_BYTES_MAX:
            raise TooLarge("A message of a checkpoint channel has no end.")
        return lines


def _listed(pieces: tuple[Piece, ...]) -> list[list[object]]:
    return [[piece.name, piece.offset, piece.size_bytes] for piece in pieces]


def _pieces(listed: list[list[object]]) -> tuple[Piece, ...]:
    found = tuple(Piece(file_name(name), _number(offset), _number(size)) for name, offset, size in listed)
    check_pieces(found)
    return found


def _call(shown: list[Any] | None) -> Call | None:
    if shown is None:
        return None
    method, url, headers = shown
    return Call(_text(method), _text(url), tuple((_text(name), _text(value)) for name, value in headers))


def _volume(record: dict[str, Any]) -> str:
    name = _text(record.get("volume", ""))
    return volume_name(name) if name else ""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text expected")
    return value


def _number(value: object, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= STEP_MAX:
        raise ValueError("a number expected")
    return value
