"""A daemon's own figures for Prometheus: the text format, and a server of it that listens on loopback only.

Small on purpose: an agent carries no client library for it. It answers GET /metrics and nothing else.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

LOOPBACK: Final = "127.0.0.1"
REQUEST_BYTES_MAX: Final = 8192
REQUEST_S: Final = 5.0
CONNECTIONS_MAX: Final = 8
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Figure:
    """One value. name: with unit, without the prefix; one of ours that ends in _total is a counter.

    prefix: of names that others chose, such as DCGM's; is_counter: for those of others that are counters."""

    name: str
    text: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    prefix: str = "windrow_"
    is_counter: bool = False


def exposition(figures: Iterable[Figure]) -> str:
    """Figures in Prometheus' text format, each family once."""
    families: dict[str, list[Figure]] = {}
    for figure in figures:
        families.setdefault(figure.prefix + figure.name, []).append(figure)
    lines = []
    for name, members in families.items():
        kind = "counter" if members[0].is_counter or name.endswith("_total") else "gauge"
        lines.append(f"# HELP {name} {_escaped(members[0].text)}")
        lines.append(f"# TYPE {name} {kind}")
        for one in members:
            labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sorted(one.labels.items()))
            lines.append(f"{name}{f'{{{labels}}}' if labels else ''} {float(one.value)!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@contextlib.asynccontextmanager
async def serving(port: int | None, figures: Callable[[], Iterable[Figure]]) -> AsyncIterator[int]:
    """Serve while this is open; yields the port. None serves nothing. Raises OSError where the port is taken."""
    if port is None:
        yield 0
        return
    open_now: set[asyncio.StreamWriter] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        try:
            if len(open_now) <= CONNECTIONS_MAX:
                async with asyncio.timeout(REQUEST_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(_answer(head.split(b"\r\n", 1)[0], figures))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            open_now.discard(writer)
            writer.close()

    server = await asyncio.start_server(answer, LOOPBACK, port, limit=REQUEST_BYTES_MAX)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in tuple(open_now):
            writer.close()


def _answer(line: bytes, figures: Callable[[], Iterable[Figure]]) -> bytes:
    method, _, rest = line.partition(b" ")
    is_found = method == b"GET" and rest.split(b" ")[0].split(b"?")[0] == b"/metrics"
    body = exposition(figures()).encode() if is_found else b"GET /metrics\n"
    status = "200 OK" if is_found else "404 Not Found"
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
