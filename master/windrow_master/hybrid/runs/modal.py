"""Runs code at Modal, as Sandboxes: the adapter of Modal's library.

It comes with the extra `modal`, is imported at the first call and runs on a thread of its own. Each market has one app,
each purchase one sandbox of its name. Modal lists only what runs: what has ended is known while this process lives.
Processors and memory are billed by what is used where that is more than was asked for: so no more may be used.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from windrow_master.hybrid.backends.port import (
    TAG_EPOCH,
    TAG_MARKET,
    TAG_PURCHASE,
    Doubtful,
    Finding,
    Leftover,
    Machine,
    MachineOffer,
    MachineState,
    Order,
    PurchaseId,
    Refused,
    RefusedFor,
    Wanted,
    in_order,
)
from windrow_master.hybrid.purchases.model import LIVING_MAX
from windrow_master.hybrid.runs.modal_prices import PROVIDER, offers_of
from windrow_master.hybrid.runs.port import Stream, start_of
from windrow_master.prices.book import PriceBook
from windrow_proto.errors import InvalidInput
from windrow_proto.ports import Clock
from windrow_proto.redact import redacted
from windrow_proto.units import GIB, MINUTE, SECOND, money_text

T = TypeVar("T")

CALL_S: Final = 60.0
CREATE_S: Final = 100.0
"""Modal answers once the sandbox has a place; its library gives up after 21 minutes, and ends what it made."""
DAY_S: Final = 24 * 3600
"""The longest time of a sandbox."""
CONSOLE_CHARS: Final = 16 * 1024
TAG_OFFER: Final = "windrow-offer"
TAG_AT: Final = "windrow-asked-at"
DEFAULT_IMAGE: Final = "python:3.12-slim"
SAID: Final = {
    "AuthError": RefusedFor.AUTH,
    "PermissionDeniedError": RefusedFor.AUTH,
    "ResourceExhaustedError": RefusedFor.QUOTA,
    "ConflictError": RefusedFor.LIMIT,
    "InvalidError": RefusedFor.LIMIT,
    "NotFoundError": RefusedFor.LIMIT,
    "RequestSizeError": RefusedFor.LIMIT,
    "ImageBuildError": RefusedFor.LIMIT,
}
"""Errors of Modal's library in our words; all others leave it open whether anything was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModalSettings:
    """environment: of the workspace; empty: its default. Without token_id the credentials are those that Modal's own
    library finds."""

    environment: str = ""
    image: str = DEFAULT_IMAGE
    token_id: str = ""
    token_secret: str = field(default="", repr=False)


def read_settings(settings: Mapping[str, str], secrets: Mapping[str, str]) -> ModalSettings:
    """The settings and secrets of an operator. Raises InvalidInput."""
    environment, image = settings.get("environment", ""), settings.get("image") or DEFAULT_IMAGE
    token_id, token_secret = secrets.get("token_id", ""), secrets.get("token_secret", "")
    if environment and not (environment.replace("-", "").replace("_", "").isalnum() and environment.isascii()):
        raise InvalidInput("environment: It has letters, digits and dashes.", subject="environment")
    if not image.isprintable() or " " in image or not image.isascii():
        raise InvalidInput("image: It is the name of an image, such as python:3.12-slim.", subject="image")
    if bool(token_id) != bool(token_secret):
        raise InvalidInput("token_id and token_secret are given together, or neither.", subject="token_secret")
    for name, value, begins in (("token_id", token_id, "ak-"), ("token_secret", token_secret, "as-")):
        if value and not value.startswith(begins):
            raise InvalidInput(f"{name}: It begins with {begins}.", subject=name)
    return ModalSettings(environment=environment, image=image, token_id=token_id, token_secret=token_secret)


class Modal:
    """Sandboxes of one workspace. See `Runs`."""

    kind = PROVIDER
    list_lag_ns = MINUTE

    def __init__(self, settings: ModalSettings, clock: Clock, book: PriceBook, *, call_s: float = CALL_S) -> None:
        """Asks Modal nothing yet."""
        self._settings, self._clock, self._book, self._call_s = settings, clock, book, call_s
        self._opening = asyncio.Lock()
        self._client: Any = None
        self._seen: dict[str, Machine] = {}
        """By id, the sandboxes that this process has seen, LIVING_MAX at most."""

    # ----- the port -----

    async def offers(self, wanted: Wanted) -> Sequence[MachineOffer]:
        """GPUs at the price book's current prices, and sizes without one; each with its processors and memory."""
        today = datetime.fromtimestamp(self._clock.wall_ns() // SECOND, UTC).date()
        return in_order(wanted, offers_of(self._book, today))

    async def provision(self, order: Order) -> Machine:
        """One sandbox, of the purchase's name; of a name that runs already it is that one."""
        known = next((one for one in self._seen.values() if one.purchase_id == order.purchase_id), None)
        if known is not None:
            return known
        now = next(iter(await self.offers(Wanted(offer_id=order.offer.offer_id))), None)
        if now is None or now.price_per_hour > order.dearest_per_hour:
            costs = "has no current price" if now is None else f"costs {money_text(now.price_per_hour)} USD an hour now"
            raise Refused(RefusedFor.PRICE, f"{order.offer.offer_id} {costs}.")
        try:
            sandbox = await self._ask(lambda: self._create(order), CREATE_S)
        except _Exists:
            sandbox = await self._ask(lambda: self._named(order))
        return self._kept(await self._machine(sandbox, _tags(order, self._clock)))

    async def describe(self, market_id: str) -> Sequence[Machine]:
        """Those that run, and those that this process has seen run."""

        async def listed() -> list[Any]:
            modal, app = await self._app(market_id)
            found = modal.Sandbox.list.aio(app_id=app.app_id, tags={TAG_MARKET: market_id}, client=await self._opened())
            return [one async for one in found]

        running = {one.object_id: one for one in await self._ask(listed)}
        gone = [one for one in self._seen.values() if one.market_id == market_id and one.machine_id not in running]
        for one in gone:
            if one.state is not MachineState.TERMINATED:
                found = await self._ask(partial(self._by_id, one.machine_id))
                self._kept(await self._machine(found, {}))
        for sandbox in running.values():
            self._kept(await self._machine(sandbox, {}))
        return [one for one in self._seen.values() if one.market_id == market_id]

    async def terminate(self, machine_id: str) -> None:
        """Ask for the end of a sandbox."""

        async def end() -> None:
            sandbox = await self._by_id(machine_id)
            await sandbox.terminate.aio()

        await self._gone(end)

    async def leftovers(self, _market_id: str) -> Sequence[Leftover]:
        """Nothing is left of a sandbox."""
        return ()

    async def remove(self, leftover: Leftover) -> None:
        """There is none."""

    async def console(self, machine_id: str) -> str:
        """The last of what the helper said."""
        said: list[bytes] = []

        async def read() -> None:
            async for piece in self.follow(machine_id, Stream.WORDS):
                said.append(piece)

        try:
            async with asyncio.timeout(min(self._call_s, 5.0)):
                await self._gone(read)
        except TimeoutError:
            pass  # it runs, and says more later
        return b"".join(said).decode(errors="replace")[-CONSOLE_CHARS:]

    async def check(self) -> Sequence[Finding]:
        """Ask for the market's app, which nobody pays for."""
        way_out = "Give a token of the workspace: modal token new prints one."
        try:
            await self._ask(lambda: self._app("check"))
        except (Refused, Doubtful) as error:
            return [Finding("credentials", False, str(error), way_out)]
        return [Finding("credentials", True, "Modal takes the token.")]

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close.aio()

    async def follow(self, run_id: str, stream: Stream) -> AsyncGenerator[bytes]:
        """As Modal keeps it: UTF-8."""
        sandbox = await self._ask(lambda: self._by_id(run_id))
        try:
            async for piece in sandbox.stdout if stream is Stream.LOG else sandbox.stderr:
                yield piece.encode()
        except Exception as error:
            raise self._translated(error) from None

    # ----- what is asked -----

    async def _create(self, order: Order) -> Any:
        modal, app = await self._app(order.market_id)
        start, offer = start_of(order.user_data), order.offer
        image = modal.Image.from_registry(start.image or self._settings.image).entrypoint([])
        cores, mib = offer.cpus / 2, int(offer.memory_bytes // (GIB // 1024))
        left_s = (order.ends_at_ns - self._clock.wall_ns()) // SECOND
        return await modal.Sandbox.create.aio(
            *("python3", "-c", HELPER),
            app=app,
            name=order.purchase_id,
            tags=dict(_tags(order, self._clock)),
            image=image,
            env={"WINDROW_ORDERS": start.orders},
            timeout=max(1, min(left_s, DAY_S)),
            gpu=_gpu(offer),
            cpu=(cores, cores),
            memory=(mib, mib),
            client=await self._opened(),
        )

    async def _named(self, order: Order) -> Any:
        modal, _ = await self._app(order.market_id)
        environment = self._settings.environment or None
        where = {"environment_name": environment, "client": await self._opened()}
        return await modal.Sandbox.from_name.aio(_app_name(order.market_id), order.purchase_id, **where)

    async def _by_id(self, sandbox_id: str) -> Any:
        if not sandbox_id.startswith("sb-"):
            raise Refused(RefusedFor.LIMIT, "That is no sandbox.")
        client = await self._opened()
        return await _library().Sandbox.from_id.aio(sandbox_id, client=client)

    async def _app(self, market_id: str) -> tuple[Any, Any]:
        client, modal = await self._opened(), _library()
        environment = self._settings.environment or None
        named = {"create_if_missing": True, "environment_name": environment, "client": client}
        return modal, await modal.App.lookup.aio(_app_name(market_id), **named)

    async def _opened(self) -> Any:
        async with self._opening:
            if self._client is None:
                modal = await asyncio.to_thread(_library)
                tokens = self._settings.token_id, self._settings.token_secret
                made = modal.Client.from_credentials.aio(*tokens) if tokens[0] else modal.Client.from_env.aio()
                self._client = await made
        return self._client

    async def _machine(self, sandbox: Any, tags: Mapping[str, str]) -> Machine:
        known = self._seen.get(sandbox.object_id)
        if not tags and known is None:
            tags = await self._ask(sandbox.get_tags.aio)
        code = await self._ask(sandbox.poll.aio)
        state = MachineState.RUNNING if code is None else MachineState.TERMINATED
        said = "running" if code is None else f"ended with {code}"
        if known is not None:
            ended_ns = known.ended_at_ns or (None if code is None else self._clock.wall_ns())
            return Machine(
                **{name: getattr(known, name) for name in Machine.__slots__}
                | {"state": state, "said": said, "ended_at_ns": ended_ns}
            )
        at, epoch = tags.get(TAG_AT, ""), tags.get(TAG_EPOCH, "")
        return Machine(
            machine_id=sandbox.object_id,
            state=state,
            said=said,
            market_id=tags.get(TAG_MARKET, ""),
            purchase_id=PurchaseId(tags.get(TAG_PURCHASE, "")),
            epoch=_whole(epoch) or 0,
            offer_id=tags.get(TAG_OFFER, ""),
            launched_at_ns=_whole(at),
        )

    def _kept(self, machine: Machine) -> Machine:
        self._seen[machine.machine_id] = machine
        while len(self._seen) > 2 * LIVING_MAX:
            self._seen.pop(next(iter(self._seen)))
        return machine

    async def _ask(self, call: Callable[[], Awaitable[T]], limit_s: float | None = None) -> T:
        """The answer to a call. Raises Refused, Doubtful."""
        try:
            async with asyncio.timeout(limit_s or self._call_s):
                return await call()
        except TimeoutError:
            raise Doubtful("Modal did not answer in time.") from None
        except (Refused, Doubtful, _Exists):
            raise
        except Exception as error:
            raise self._translated(error) from None

    async def _gone(self, call: Callable[[], Awaitable[None]]) -> None:
        """A call about what may be gone, or never was."""
        try:
            await self._ask(call)
        except Refused as no:
            if no.reason is not RefusedFor.LIMIT:
                raise

    def _translated(self, error: Exception) -> Exception:
        name, text = type(error).__name__, str(error)
        for secret in (self._settings.token_id, self._settings.token_secret):
            text = text.replace(secret, "...") if secret else text
        text = f"{name}: {redacted(text)!s}"[:300]
        if name == "AlreadyExistsError":
            return _Exists(text)
        if name in SAID:
            is_full = name == "ResourceExhaustedError" and "capacity" in text.lower()
            return Refused(RefusedFor.CAPACITY if is_full else SAID[name], text)
        return Doubtful(text)


class _Exists(Exception):
    """There is a sandbox of this name, and it runs."""


HELPER: Final = (Path(__file__).parent / "helper.py").read_text()


def _library() -> Any:
    """Modal's library, set to the sandboxes that have GPUs too."""
    logging.getLogger("hpack").setLevel(logging.INFO)  # at DEBUG it shows the token
    try:
        import modal
    except ImportError:
        raise Refused(RefusedFor.LIMIT, "Modal needs a package: python -m pip install modal") from None
    modal.config.config.override_locally("sandbox_v2", "0")
    return modal


def _whole(text: str) -> int | None:
    """The whole number of a tag that the Master wrote; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else None


def _gpu(offer: MachineOffer) -> str | None:
    """As Modal names it: H100:2."""
    return offer.offer_id.removeprefix("gpu=") if offer.gpu_count else None


def _app_name(market_id: str) -> str:
    return f"windrow-{market_id}"[:60]


def _tags(order: Order, clock: Clock) -> Mapping[str, str]:
    return {**order.tags, TAG_OFFER: order.offer.offer_id, TAG_AT: str(clock.wall_ns())}
