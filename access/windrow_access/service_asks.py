"""Questions to the Master for tunnels to services, over the trunk, and their answers. Used on the loop only."""

import asyncio
from collections.abc import Callable

from windrow_proto.errors import DeadlineExceeded, TooMany, Unavailable, from_code
from windrow_proto.ids import ClusterId
from windrow_proto.units import seconds
from windrow_proto.v1 import services_pb2


class ServiceAsks:
    """The questions that are not answered yet."""

    def __init__(self, say: Callable[[services_pb2.TrunkItem], bool], answer_ns: int) -> None:
        """say: puts an item on the trunk; False: there is none."""
        self._say, self._answer_ns = say, answer_ns
        self._waiting: dict[int, asyncio.Future[services_pb2.ServiceAnswer]] = {}
        self._last = 0

    async def ask(self, cluster_id: ClusterId, port: int) -> services_pb2.ServiceAnswer:
        """A tunnel to this port; raises what the Master refuses it with, Unavailable, DeadlineExceeded. Whoever is
        cancelled here does not want it any more, and the Master is told."""
        self._last += 1
        number = self._last
        asked = services_pb2.ServiceAsk(ask=number, cluster_id=cluster_id, port=port)
        if not self._say(services_pb2.TrunkItem(service_ask=asked)):
            raise Unavailable("This relay has no Master at the moment.")
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds(self._answer_ns)):
                answer: services_pb2.ServiceAnswer = await future
        except TimeoutError:
            self._leave(number)
            raise DeadlineExceeded("The Master did not answer in time.") from None
        except asyncio.CancelledError:
            self._leave(number)
            raise
        finally:
            del self._waiting[number]
        if answer.code == TooMany.code:
            raise TooMany(retry_after_ns=max(0, answer.retry_after_ns))
        if answer.code:
            raise from_code(answer.code)
        return answer

    def answered(self, answer: services_pb2.ServiceAnswer) -> None:
        """The Master has answered; what nobody waits for is dropped."""
        future = self._waiting.get(answer.ask)
        if future is not None and not future.done():
            future.set_result(answer)

    def end(self) -> None:
        """The trunk is gone, and with it every question."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Unavailable("This relay has lost its Master."))

    def _leave(self, number: int) -> None:
        self._say(services_pb2.TrunkItem(service_left=services_pb2.ServiceLeft(ask=number)))
