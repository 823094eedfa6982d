"""The bus over Redis or Valkey; adapter of redis. A server that is away, hangs or forgets costs speed, nothing else.

         connect, subscribe, ping              beat, ping or read fails, or is late
down ────────────────────────────▶ up ─────────────────────────────────────────────▶ down (full-jitter back-off)
               └─ everybody is woken: what was told meanwhile may have been missed
"""

import asyncio
import json
from collections.abc import Awaitable, Mapping
from typing import Any, Final

import structlog
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError

from windrow_master.store.bus import (
    BEAT_NS,
    PEERS_MAX,
    PRESENT_NS,
    TEXT_MAX,
    Buckets,
    BusHealth,
    Limit,
    Listener,
    Listeners,
    Peer,
    Taken,
    answer,
    check_url,
)
from windrow_proto.ports import Clock, Rng
from windrow_proto.together import together
from windrow_proto.units import SECOND

COUNT_S: Final = 0.1
"""How long a request waits to be counted by the server before it is counted here: a person does not notice it."""
CALL_S: Final = 2.0
"""For everything else asked of the server; one that is slower counts as gone."""
HEAR_S: Final = 1.0
"""A quiet reader looks up this often."""
BACKOFF_NS: Final = SECOND // 5
BACKOFF_NS_MAX: Final = 5 * SECOND
OUTBOX_MAX: Final = 2_048
"""Subjects waiting to be told elsewhere. Beyond it the oldest is dropped, and the others are told to look at all."""
PEERS_BYTES_MAX: Final = 2_000
CONNECTIONS_MAX: Final = 8
MICROSECOND_NS: Final = 1_000
FAILURES: Final = (RedisError, OSError, TimeoutError, ValueError, RecursionError)
"""Errors that the library raises for a server that is gone, slow, or no Redis at all."""

# Microseconds by the server's clock, which all processes share; they stay below 2**53, where Lua still counts exactly.
TAKE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local refill, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full_at = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
if full_at - now + math.max(cost, 1) * refill > burst * refill then return {0, full_at - now} end
local after = full_at + cost * refill
if cost > 0 then
  redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000) + 1)
end
return {1, after - now}
"""
BEAT: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do redis.call('HDEL', KEYS[2], id) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if ARGV[1] ~= '' then
  redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[1])
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return redis.call('HGETALL', KEYS[2])
"""

log = structlog.get_logger(__name__)


class RedisBus:
    """One process' end of a bus that goes through a server."""

    def __init__(self, url: str, name: str, clock: Clock, rng: Rng, namespace: str = "market") -> None:
        """name: of this process, unique in its market. namespace: of the market; several may share one server."""
        self._url = check_url(url)
        self._name = name
        self._clock = clock
        self._rng = rng
        self._prefix = f"windrow:{{{namespace}}}:"
        self._channel = f"{self._prefix}wake"
        self._listeners = Listeners()
        self._buckets = Buckets()
        self._outbox: dict[tuple[str, str], str] = {}
        self._has_news = asyncio.Event()
        self._beat_now = asyncio.Event()
        self._facts: dict[str, str] = {}
        self._client: Redis | None = None
        self._is_suspect = False
        self._health = BusHealth("redis", "not connected yet", clock.wall_ns())

    @property
    def health(self) -> BusHealth:
        """How it fares."""
        return self._health

    # --- what the API uses -----------------------------------------------------------------------

    def publish(self, kind: str, subject: str, text: str = "") -> None:
        """Wake this process at once and the others soon."""
        text = text[:TEXT_MAX]
        self._listeners.wake(kind, subject, text)
        self._outbox.pop((kind, subject), None)
        self._outbox[kind, subject] = text
        while len(self._outbox) > OUTBOX_MAX:
            oldest = next(iter(self._outbox))
            del self._outbox[oldest]
            self._outbox.setdefault((oldest[0], ""), "")
            self._health.dropped += 1
        self._has_news.set()

    def listen(self, kind: str, listener: Listener) -> None:
        """Be woken from now on."""
        self._listeners.add(kind, listener)

    async def take(self, key: str, limit: Limit, cost: int = 1) -> Taken:
        """Count at the server, or here when it does not answer at once."""
        name = f"{limit.name}/{key}"
        client = self._client
        if client is not None and not self._is_suspect:
            try:
                async with asyncio.timeout(COUNT_S):
                    refill = max(1, limit.refill_ns // MICROSECOND_NS)
                    is_allowed, full_in = await _script(
                        client, TAKE, [f"{self._prefix}count:{name}"], [refill, limit.burst, cost]
                    )
                return answer(limit, bool(is_allowed), int(full_in) * MICROSECOND_NS, cost)
            except FAILURES:
                # One late answer is no proof: the next beat decides, and nobody else waits until then.
                self._is_suspect = True
                self._beat_now.set()
        self._health.local_counts += 1
        return self._buckets.take(name, limit, cost, self._clock.monotonic_ns())

    def announce(self, facts: Mapping[str, str]) -> None:
        """Say what this process is, with the next beat and each after it."""
        self._facts = dict(facts)
        self._beat_now.set()

    async def peers(self) -> tuple[Peer, ...]:
        """Return the processes that the server knows of; without it, this process."""
        found: dict[str, Mapping[str, str]] = {}
        client = self._client
        if client is not None and not self._is_suspect:
            try:
                async with asyncio.timeout(CALL_S):
                    found = _peers(await _script(client, BEAT, self._presence_keys(), ["", "", 0]))
            except FAILURES:
                self._is_suspect = True
                self._beat_now.set()
        if self._facts:
            found[self._name] = dict(self._facts)
        return tuple(Peer(name, facts) for name, facts in sorted(found.items()))[:PEERS_MAX]

    # --- keeping it up ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, serve until it breaks, wait a little (jittered, longer each time), again."""
        wait_ns = BACKOFF_NS
        while True:
            before = self._health.connections
            await self._connect_and_serve()
            wait_ns = BACKOFF_NS if self._health.connections > before else min(2 * wait_ns, BACKOFF_NS_MAX)
            await self._clock.sleep_ns(int(wait_ns * self._rng.uniform()))

    async def _connect_and_serve(self) -> None:
        client, reader = self._open(CONNECTIONS_MAX), self._open(1)
        hearing = reader.pubsub(ignore_subscribe_messages=True)
        try:
            async with asyncio.timeout(CALL_S):
                await hearing.subscribe(self._channel)
                await self._beat(client)
            self._up(client)
            await together(self._hear(hearing), self._say(client), self._beats(client))
        except* FAILURES as errors:
            self._down(_reason(errors))
        finally:
            self._client = None
            await _quietly(hearing.aclose())  # type: ignore[no-untyped-call] # so the library declares it
            for pool in (client.connection_pool, reader.connection_pool):
                await _quietly(pool.disconnect())

    def _open(self, connections: int) -> Redis:
        pool: BlockingConnectionPool = BlockingConnectionPool.from_url(
            self._url,
            max_connections=connections,
            timeout=CALL_S,
            socket_connect_timeout=CALL_S,
            # Every call has our deadline. The library's own is a wait_for, which on 3.11 loses a cancellation that
            # comes in the very turn in which the bytes are out.
            socket_timeout=None,
            retry=Retry(NoBackoff(), 0),
            client_name="windrow-master",
        )
        return Redis(connection_pool=pool)

    def _up(self, client: Redis) -> None:
        self._client = client
        self._is_suspect = False
        self._health.connections += 1
        self._health.problem = self._health.since_ns = None
        log.info("bus_up", bus="redis", connections=self._health.connections)
        self._listeners.wake_all()

    def _down(self, reason: str) -> None:
        if reason != self._health.problem:
            log.warning("bus_down", bus="redis", reason=reason)
        was_up, self._health.problem = self._health.problem is None, reason
        if was_up:
            self._health.since_ns = self._clock.wall_ns()
            self._listeners.wake_all()

    async def _hear(self, hearing: PubSub) -> None:
        while True:
            message = await hearing.get_message(ignore_subscribe_messages=True, timeout=HEAR_S)
            if message is not None and message["type"] == "message":
                self._heard(message["data"])

    def _heard(self, data: bytes) -> None:
        try:
            sender, kind, subject, text = json.loads(data)
        except (ValueError, TypeError, RecursionError):
            return  # not from us: whoever may write to this server may at most cause a look that finds nothing
        words = (sender, kind, subject, text)
        if sender != self._name and all(isinstance(word, str) and len(word) <= TEXT_MAX for word in words):
            self._health.heard += 1
            self._listeners.wake(kind, subject, text)

    async def _say(self, client: Redis) -> None:
        while True:
            while self._outbox:
                (kind, subject), text = next(iter(self._outbox.items()))
                async with asyncio.timeout(CALL_S):
                    await client.publish(self._channel, json.dumps([self._name, kind, subject, text]))
                self._health.sent += 1
                if self._outbox.get((kind, subject)) == text:
                    del self._outbox[kind, subject]
            self._has_news.clear()
            await self._has_news.wait()

    async def _beats(self, client: Redis) -> None:
        while True:
            self._beat_now.clear()
            try:
                async with asyncio.timeout(BEAT_NS / SECOND):
                    await self._beat_now.wait()
            except TimeoutError:
                pass
            async with asyncio.timeout(CALL_S):
                await self._beat(client)
            self._is_suspect = False

    async def _beat(self, client: Redis) -> None:
        facts = json.dumps(self._facts)[:PEERS_BYTES_MAX] if self._facts else ""
        said: list[str | int] = [self._name if facts else "", facts, PRESENT_NS // 1_000_000]
        await _script(client, BEAT, self._presence_keys(), said)

    def _presence_keys(self) -> list[str]:
        return [f"{self._prefix}present:until", f"{self._prefix}present:facts"]


async def _script(client: Redis, source: str, keys: list[str], arguments: list[str | int]) -> Any:
    # EVAL sends the text each time: some hundred bytes, and nothing to load again after the server forgot.
    return await client.eval(source, len(keys), *keys, *arguments)


def _peers(flat: list[bytes]) -> dict[str, Mapping[str, str]]:
    """Names and facts as the server lists them, without what is not ours."""
    found: dict[str, Mapping[str, str]] = {}
    for name, facts in zip(flat[::2], flat[1::2], strict=False):
        try:
            read = json.loads(facts)
        except (ValueError, RecursionError):
            continue
        if isinstance(read, dict):
            found[name.decode(errors="replace")] = {str(key): str(value)[:TEXT_MAX] for key, value in read.items()}
    return found


async def _quietly(closing: Awaitable[None]) -> None:
    """Close within the deadline; a connection that does not is dropped."""
    try:
        async with asyncio.timeout(CALL_S):
            await closing
    except FAILURES:
        pass


def _reason(errors: BaseExceptionGroup[BaseException]) -> str:
    first: BaseException = errors
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    if isinstance(first, TimeoutError):
        return "the server does not answer in time"
    if isinstance(first, AuthenticationError):
        return "the server refuses our name or password"
    return f"the server cannot be reached ({type(first).__name__})"
