"""Sends answers that are JSON text already: in pieces, with an entity tag, without walking through them again."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from windrow_master.api.paging import entity_tag

CHUNK_BYTES: Final = 256 << 10
"""Sent at a time: between two pieces the connection says whether it can take more, and others have their turn."""
TAG_BYTES: Final = 12


class TextAnswer(Response):
    """JSON that was put together from texts; the long body is never one piece of memory."""

    media_type = "application/json"

    def __init__(self, pieces: Sequence[bytes], headers: dict[str, str] | None = None) -> None:
        super().__init__(None, 200, headers)
        self._pieces = pieces
        self.headers["Content-Length"] = str(sum(map(len, pieces)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for chunk in chunks(self._pieces):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def chunks(pieces: Iterable[bytes]) -> Iterable[bytes]:
    """The same bytes in chunks of about CHUNK_BYTES; a longer piece stays whole."""
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= CHUNK_BYTES:
            yield b"".join(gathered)
            gathered.clear()
            size = 0
    if gathered:
        yield b"".join(gathered)


def listed(texts: Sequence[bytes], rest: bytes) -> list[bytes]:
    """The pieces of `{"items": [...], rest}`."""
    pieces = [b'{"items":[']
    for text in texts:
        pieces += (text, b",")
    if texts:
        pieces.pop()
    pieces.append(b"]," + rest + b"}")
    return pieces


def tag_of(parts: Iterable[object]) -> str:
    """One entity tag for things that each have a number which changes with them, and for whom they are shown to."""
    return hashlib.blake2b(",".join(map(str, parts)).encode(), digest_size=TAG_BYTES).hexdigest()


def tagged_text(request: Request, tag: str, pieces: Callable[[], Sequence[bytes]]) -> Response:
    """The text with its ETag; 304 when the caller has this version, and then it is not even put together."""
    wanted = entity_tag(tag)
    known = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    if wanted in known:
        return Response(status_code=304, headers={"ETag": wanted})
    return TextAnswer(pieces(), {"ETag": wanted})
