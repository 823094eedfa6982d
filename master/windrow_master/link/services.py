"""Opens tunnels to public services: an Access asks in the name of somebody who opened a service's address.

Why there is none is said by its code alone: what stands in the text is for renters, and this goes to anybody.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from windrow_master.link.wire import Trunk
from windrow_proto.errors import NotFound, TooMany, Unavailable, WindrowError
from windrow_proto.ids import ClusterId, is_id
from windrow_proto.renter_end import RenterTicket
from windrow_proto.units import SECOND
from windrow_proto.v1 import services_pb2

ASKS_MAX: Final = 256
"""Of one trunk, that wait for a host to dial; an Access asks for fewer at once."""
OpenService = Callable[[ClusterId, int], Awaitable[RenterTicket]]

log = structlog.get_logger(__name__)


class ServiceAsks:
    """Answers them. open_service: makes a tunnel to a port of a service for somebody who came with its address."""

    def __init__(self, open_service: OpenService) -> None:
        self._open_service = open_service

    def take(self, trunk: Trunk, item: services_pb2.TrunkItem, tasks: asyncio.TaskGroup) -> None:
        """A question that came by this trunk, or word that nobody waits for its answer any more."""
        asks = trunk.asks
        if item.WhichOneof("what") == "service_left":
            if (left := asks.pop(item.service_left.ask, None)) is not None:
                left.cancel()
            return
        ask = item.service_ask
        if not is_id(ask.cluster_id, "cluster") or not 0 < ask.port < 65_536:
            trunk.put_answer(_refusal(ask.ask, NotFound()))
        elif len(asks) >= ASKS_MAX or ask.ask in asks:
            trunk.put_answer(_refusal(ask.ask, TooMany(retry_after_ns=SECOND)))
        else:
            asks[ask.ask] = tasks.create_task(self._answer(trunk, ask))

    async def _answer(self, trunk: Trunk, ask: services_pb2.ServiceAsk) -> None:
        try:
            ticket = await self._open_service(ClusterId(ask.cluster_id), ask.port)
            answer = services_pb2.ServiceAnswer(
                ask=ask.ask,
                tunnel_address=ticket.address,
                grant=ticket.grant,
                host_pem=ticket.host_pem.decode(),
                secret=ticket.secret,
            )
        except WindrowError as error:
            log.info("service_refused", cluster=ask.cluster_id, port=ask.port, code=error.code, detail=error.detail)
            answer = _refusal(ask.ask, error)
        except Exception:  # the task's top level: one visitor's question does not end the trunk
            log.exception("service_ask_crashed", cluster=ask.cluster_id, port=ask.port)
            answer = _refusal(ask.ask, Unavailable())
        finally:
            trunk.asks.pop(ask.ask, None)
        trunk.put_answer(answer)


def _refusal(ask: int, error: WindrowError) -> services_pb2.ServiceAnswer:
    wait_ns = error.retry_after_ns if isinstance(error, TooMany) else 0
    return services_pb2.ServiceAnswer(ask=ask, code=error.code, retry_after_ns=wait_ns)
