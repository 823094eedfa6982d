"""The physical limit of a command: a bare gRPC round trip over the same two hops with mutual TLS and nothing else.

Three processes, as in the shipped path: `python -m bench._hops server|relay ...` are the far two.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from bench._report import percentile
from tests.support.pki import issue, make_ca

METHOD = "/bench.Echo/Say"
START_S = 20.0


def _credentials(folder: Path) -> tuple[bytes, bytes, bytes]:
    return (folder / "key.pem").read_bytes(), (folder / "cert.pem").read_bytes(), (folder / "ca.pem").read_bytes()


def _channel(folder: Path, address: str) -> grpc.aio.Channel:
    key, certificate, authority = _credentials(folder)
    options = [("grpc.ssl_target_name_override", "access.windrow")]
    return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(authority, key, certificate), options=options)


async def _serve(folder: Path, onward: str | None) -> None:
    """Echo on a stream, or pass each message on and its answer back."""

    async def say(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        if onward is None:
            async for request in requests:
                yield request
            return
        call: Any = _channel(folder, onward).stream_stream(METHOD)()
        async for request in requests:
            await call.write(request)
            yield await call.read()

    class Methods(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> Any:
            return grpc.stream_stream_rpc_method_handler(say)

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Methods(),))
    key, certificate, authority = _credentials(folder)
    credentials = grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await server.wait_for_termination()


@asynccontextmanager
async def _process(*arguments: str) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench._hops", *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            port = (await process.stdout.readline()).decode().strip()
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


async def round_trips(count: int, size: int = 600) -> dict[str, float]:
    """p50 and p99 of `count` round trips, one at a time, in milliseconds. size: bytes, about a signed command."""
    with tempfile.TemporaryDirectory(prefix="windrow-hops-") as name:
        folder = Path(name)
        identity = issue(make_ca(), "access", "access_" + "0" * 32)
        (folder / "key.pem").write_bytes(identity.key_pem)
        (folder / "cert.pem").write_bytes(identity.certificate_pem)
        (folder / "ca.pem").write_bytes(identity.ca_pem)
        async with _process("server", name) as server, _process("relay", name, server) as relay:
            channel = _channel(folder, relay)
            call: Any = channel.stream_stream(METHOD)()
            times: list[float] = []
            for number in range(count + 20):
                began = time.perf_counter()
                await call.write(b"x" * size)
                await call.read()
                if number >= 20:
                    times.append((time.perf_counter() - began) * 1000)
            call.cancel()
            await channel.close()
    return {"p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99)}


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))
