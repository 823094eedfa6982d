"""One request to partition a card: performed on the backend's thread, answered once the facts are read anew."""

import asyncio

from windrow_agent.core.gpu_port import CutRefusedError, GpuBackend


class PartitionRequest:
    """A card and the profiles it is to be cut into."""

    def __init__(self, uuid: str, profiles: tuple[str, ...]) -> None:
        self.uuid, self.profiles = uuid, profiles
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_begun = self.is_ended = False
        self._refused: CutRefusedError | None = None

    def perform(self, backend: GpuBackend) -> CutRefusedError | None:
        """Cut it, on the backend's thread; returns why not, or None."""
        try:
            backend.cut(self.uuid, self.profiles)
        except CutRefusedError as error:
            return error
        return None

    def end(self, refused: CutRefusedError | None) -> None:
        """The backend has answered."""
        self.is_ended, self._refused = True, refused

    def tell(self) -> None:
        """Let whoever waits go on, if it has ended."""
        if self.done.done() or not self.is_ended:
            return
        if self._refused is not None:
            self.done.set_exception(self._refused)
        else:
            self.done.set_result(None)
