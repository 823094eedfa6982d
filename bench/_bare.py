"""The limit of `api`: a bare Starlette on uvicorn that answers with given bytes and passes one message to its streams.

`python -m bench._bare FILE` says its port on its first line; GET /page, GET /stream, POST /tell.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

KEEP_ALIVE_S = 75


def application(page: bytes) -> Starlette:
    """The smallest application that does the same for a caller."""
    queues: set[asyncio.Queue[bytes]] = set()

    async def get(_: Request) -> Response:
        return Response(page, media_type="application/json")

    async def stream(_: Request) -> Response:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queues.add(queue)

        async def messages() -> AsyncIterator[bytes]:
            yield b": open\n\n"
            while True:
                yield await queue.get()

        return StreamingResponse(messages(), media_type="text/event-stream")

    async def tell(request: Request) -> Response:
        body = await request.body()
        for queue in queues:
            queue.put_nowait(body)
        return Response(status_code=204)

    return Starlette(routes=[Route("/page", get), Route("/stream", stream), Route("/tell", tell, methods=["POST"])])


def main(path: str) -> None:
    """Serve until killed."""
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    page = application(Path(path).read_bytes())
    # Connections stay open as long as the Master's do.
    config = uvicorn.Config(page, log_config=None, access_log=False, lifespan="off", timeout_keep_alive=KEEP_ALIVE_S)
    asyncio.run(uvicorn.Server(config).serve([listening]))


if __name__ == "__main__":
    main(sys.argv[1])
