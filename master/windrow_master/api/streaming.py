"""Ends long requests (event streams, logs that are followed, output of commands, uploads) when the caller loses the
right to them.

Who asks is looked at again every two seconds; a token that was revoked, a session that ended and a role that is gone
end the answer, whichever process committed that (identity keeps principals for two seconds). Its next request is told
why.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, Final, TypeVar

import structlog
from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from windrow_master.api import sse
from windrow_master.api.auth import authorise
from windrow_master.api.deps import services_of
from windrow_master.identity.model import Principal
from windrow_proto.errors import Forbidden, Unauthenticated, WindrowError
from windrow_proto.units import SECOND

LOOK_NS: Final = 2 * SECOND
"""Between two looks; one costs what any request's sign-in costs, and that is kept for all streams of a token."""

GONE: Final = "The token was revoked, or its session or account ended, while this was sent. Sign in again."

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Lasting(StreamingResponse):
    """A streamed answer that ends when its request would no longer be allowed."""

    def __init__(
        self, request: Request, pieces: AsyncIterator[bytes], *, media_type: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(pieces, media_type=media_type, headers=headers)
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the pieces end, the listener goes, or the right to them is gone.

        Raises ConnectionAbortedError where what was begun cannot be ended as it should: it said a length that will not
        come, or what it is made of is gone.
        """
        why = await self._sent(scope, receive, send)
        if why:
            log.info("stream_ended", path=scope["path"][:200], reason=why)
            raise ConnectionAbortedError(why)

    async def _sent(self, scope: Scope, receive: Receive, send: Send) -> str:
        """Return why it could not be ended as it should; empty: it was."""
        async with asyncio.TaskGroup() as group:
            try:
                async with asyncio.timeout(None) as right:
                    looking = group.create_task(_look(self._request, right))
                    await super().__call__(scope, receive, send)
            except TimeoutError:
                if not right.expired():
                    raise
                if "content-length" in self.headers:
                    return "the right to it is gone"
                log.info("stream_ended", path=scope["path"][:200], reason="the right to it is gone")
                await send({"type": "http.response.body", "body": b""})
            except WindrowError as error:
                return str(error)
            finally:
                looking.cancel()
        return ""


async def while_allowed(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do the work of a request that takes long to come. Raises Unauthenticated where the right to it goes meanwhile."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        try:
            async with asyncio.timeout(None) as right:
                looking = group.create_task(_look(request, right))
                return await work
        except Exception as error:  # a group would wrap it
            failure = Unauthenticated(GONE) if right.expired() else error
        finally:
            looking.cancel()
    raise failure


async def _look(request: Request, right: asyncio.Timeout) -> None:
    """End what `right` surrounds once the request would not be allowed any more."""
    while await is_allowed(request):
        await services_of(request).clock.sleep_ns(LOOK_NS)
    right.reschedule(asyncio.get_running_loop().time())


async def is_allowed(request: Request) -> bool:
    """Return whether who asked might ask so again now, in the same project; yes also where the store does not
    answer."""
    first: Principal | None = getattr(request.state, "principal", None)
    again = Request({**request.scope, "state": {"first": first}})  # what the request itself knows stays as it is
    try:
        await authorise(again)
        now: Principal | None = getattr(again.state, "principal", None)
        if first is not None and now is not None and now.account_id != first.account_id:
            return False
    except (Unauthenticated, Forbidden):
        return False
    except WindrowError:
        return True  # the store does not answer: the next look will tell
    return True


def stream(request: Request, messages: AsyncIterator[sse.Message]) -> Lasting:
    """Answer with these messages as they come."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return Lasting(request, sse.encoded(messages), media_type="text/event-stream", headers=headers)
