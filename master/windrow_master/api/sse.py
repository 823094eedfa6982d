"""Server-sent events: topics in process, a bounded queue per listener, and resumption by Last-Event-ID.

A listener that is too slow loses what it had not read and gets one `resync` instead: it then reads its page again.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from windrow_proto.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from fastapi import Request

QUEUE_MAX: Final = 512
"""Messages one listener may lag; at the limit it loses them all and is told to read again."""
COMMENT_S: Final = 15.0
"""A comment this often keeps proxies from closing a quiet stream, and finds dead listeners."""


@dataclass(frozen=True, slots=True)
class Message:
    """One event of a stream; `id` is what Last-Event-ID repeats, None where there is nothing to resume from.

    text: the data as JSON on one line, from a maker that has it so; `data` is then left empty.
    """

    event: str
    data: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    text: bytes | None = None
    _wire: bytes | None = field(default=None, init=False, compare=False, repr=False)

    def encode(self) -> bytes:
        """As it goes over the wire, made once for all who listen; JSON has no line breaks: one data line is enough."""
        if self._wire is None:
            head = f"id: {self.id}\n" if self.id is not None else ""
            text = self.text if self.text is not None else json.dumps(self.data, separators=(",", ":")).encode()
            object.__setattr__(self, "_wire", b"%bevent: %b\ndata: %b\n\n" % (head.encode(), self.event.encode(), text))
        assert self._wire is not None
        return self._wire


RESYNC: Final = Message("resync", {})


class Listener:
    """One subscriber's queue; iterate it. Ends when the broadcaster closes."""

    def __init__(self, broadcaster: "Broadcaster", topics: frozenset[str]) -> None:
        self._broadcaster = broadcaster
        self.topics = topics
        self._queue: deque[Message] = deque()
        self._wake = asyncio.Event()
        self._is_closed = False

    def push(self, message: Message) -> None:
        """Queue one message, or replace all by a resync when the listener lags too far."""
        if len(self._queue) >= QUEUE_MAX:
            self._queue.clear()
            message = RESYNC
            self._broadcaster.resyncs += 1
        self._queue.append(message)
        self._wake.set()

    def end(self) -> None:
        """Let the iteration end after what is queued."""
        self._is_closed = True
        self._wake.set()

    async def next(self, within_s: float) -> Message | None:
        """The next message; None when there was none in time. Raises StopAsyncIteration at the end."""
        if not self._queue and not self._is_closed:
            self._wake.clear()
            try:
                async with asyncio.timeout(within_s):
                    await self._wake.wait()
            except TimeoutError:
                return None
        if self._queue:
            return self._queue.popleft()
        raise StopAsyncIteration

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        self._broadcaster.remove(self)


class Broadcaster:
    """Topics to listeners, on one loop. A topic is a text such as `events`, `fleet` or `cluster/<id>`."""

    def __init__(self) -> None:
        self._by_topic: dict[str, set[Listener]] = {}
        self._count = 0
        self._is_closed = False
        self.resyncs = 0

    @property
    def listeners(self) -> int:
        """How many streams are open."""
        return self._count

    def has_listeners(self, topic: str) -> bool:
        """Return whether anybody would hear; lets publishers skip making what nobody reads."""
        return bool(self._by_topic.get(topic))

    def topics(self, prefix: str) -> list[str]:
        """The topics that somebody listens to and that begin so."""
        return [topic for topic in self._by_topic if topic.startswith(prefix)]

    def publish(self, topics: Iterable[str], message: Message) -> None:
        """Queue the message once for everybody who listens to any of these topics."""
        heard: set[Listener] = set()
        for topic in topics:
            heard |= self._by_topic.get(topic, set())
        for listener in heard:
            listener.push(message)

    def listen(self, *topics: str) -> Listener:
        """A new listener; use it as a context manager. Raises Unavailable once the broadcaster is closed. How many
        there may be is sharing.py's."""
        if self._is_closed:
            raise Unavailable("This Master is stopping.")
        listener = Listener(self, frozenset(topics))
        for topic in listener.topics:
            self._by_topic.setdefault(topic, set()).add(listener)
        self._count += 1
        return listener

    def remove(self, listener: Listener) -> None:
        """Forget a listener; safe to call twice."""
        removed = False
        for topic in listener.topics:
            found = self._by_topic.get(topic)
            if found is not None and listener in found:
                found.discard(listener)
                removed = True
                if not found:
                    del self._by_topic[topic]
        self._count -= removed

    def close(self) -> None:
        """End every stream: the Master stops."""
        self._is_closed = True
        for found in list(self._by_topic.values()):
            for listener in list(found):
                listener.end()


def last_event_id(request: "Request") -> int | None:
    """The number a returning listener saw last; None for a new one."""
    text = request.headers.get("last-event-id", "")
    if not text:
        return None
    if not text.isdecimal() or len(text) > 18:
        raise InvalidInput("Last-Event-ID is not one of ours.")
    return int(text)


async def encoded(messages: AsyncIterator[Message]) -> AsyncIterator[bytes]:
    """These messages as they go over the wire, as they come."""
    # Said at once, so that the browser knows the stream is open before the first event.
    yield b": open\n\n"
    async for message in messages:
        yield message.encode() if message.event else b": alive\n\n"


ALIVE: Final = Message("", {})
"""Sent as a comment."""


async def follow(listener: Listener, first: Iterable[Message] = ()) -> AsyncIterator[Message]:
    """`first`, then what the listener hears until the broadcaster closes, with a comment in quiet times."""
    with listener:
        for message in first:
            yield message
        while True:
            try:
                message_or_none = await listener.next(COMMENT_S)
            except StopAsyncIteration:
                return
            yield message_or_none or ALIVE
