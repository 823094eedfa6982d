"""Modal as far as this market uses it: a gRPC server made from the stubs of Modal's own wheel, whose sandboxes are
processes of this machine, each in namespaces of its own where the tests may make some.

It runs in a thread with a loop of its own. A call goes wrong on order: a fault holds for all repetitions of one call,
which Modal's client makes by itself, and the same call twice (by its idempotency key) has one effect.
"""

import asyncio
import codecs
import itertools
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from grpclib import GRPCError
from grpclib.const import Status
from grpclib.server import Server
from modal_proto import api_grpc, api_pb2

from tests.support.memory_backend import Fault
from tests.support.ports import own_port

TOKEN_ID: Final = "ak-0123456789"
TOKEN_SECRET: Final = "as-abcdefghijklmnop"
APART: Final = ("unshare", "--pid", "--mount-proc", "--fork", "--kill-child")
LOOK_S: Final = 0.02


@dataclass
class Sandbox:
    """One sandbox: what was asked for, its process, and what it printed by descriptor, piece by piece."""

    sandbox_id: str
    name: str
    app_id: str
    tags: dict[str, str]
    definition: Any
    env: dict[str, str]
    created_at: float
    folder: str
    process: asyncio.subprocess.Process | None = None
    printed: dict[int, list[str]] = field(default_factory=lambda: {1: [], 2: []})
    result: Any = None
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def is_running(self) -> bool:
        return self.result is None


class ModalCloud:
    """The server. `sandboxes`: all that there ever were; `calls`: the names of the calls, in order."""

    def __init__(self, *, is_apart: bool) -> None:
        self.url, self.sandboxes, self.calls = "", dict[str, Sandbox](), list[str]()
        self._is_apart, self._numbers = is_apart, itertools.count()
        self._apps, self._secrets = dict[str, str](), dict[str, dict[str, str]]()
        self._planned = dict[str, list[Fault]]()
        self._fate = dict[str, Fault]()
        self._answers = dict[str, Any]()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        port = own_port()
        self.do(self._serve(port))
        self.url = f"http://127.0.0.1:{port}"

    def stop(self) -> None:
        self.clear()
        self.do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def then(self, call: str, fault: Fault) -> None:
        """The next such call goes so, however often it is repeated."""
        self._planned.setdefault(call, []).append(fault)

    def clear(self) -> None:
        """End all, and forget it."""
        self.do(self._end_all())
        self.sandboxes.clear()
        self.calls.clear()
        self._planned.clear()

    def kill(self, sandbox_id: str) -> None:
        """Take it back, as Modal does with what is preemptible."""
        self.do(self._end(self.sandboxes[sandbox_id], api_pb2.GenericResult.GENERIC_STATUS_INTERNAL_FAILURE))

    def do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _serve(self, port: int) -> None:
        cloud = self
        methods: dict[str, Any] = {}
        for name in api_grpc.ModalClientBase.__abstractmethods__:
            known = getattr(cloud, "_on_" + re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower(), None)

            async def answer(_self: Any, stream: Any, name: str = name, known: Any = known) -> None:
                await cloud._answer(stream, name, known)

            methods[name] = answer
        service = type("Service", (api_grpc.ModalClientBase,), methods)
        self._server = Server([service()])
        await self._server.start("127.0.0.1", port)

    async def _close(self) -> None:
        self._server.close()
        await self._server.wait_closed()
        await asyncio.sleep(LOOK_S)  # the transports close in the next turns of the loop

    async def _answer(self, stream: Any, name: str, known: Any) -> None:
        request, sent = await stream.recv_message(), dict(stream.metadata)
        key = str(sent.get("x-idempotency-key", ""))
        if not key or key + "seen" not in self._fate:
            self.calls.append(name)
            planned = self._planned.get(name)
            if planned:
                self._fate[key] = planned.pop(0)
            self._fate[key + "seen"] = Fault.LOST
        if name != "ClientHello" and (sent.get("x-modal-token-id"), sent.get("x-modal-token-secret")) != (
            TOKEN_ID,
            TOKEN_SECRET,
        ):
            raise GRPCError(Status.UNAUTHENTICATED, "Token ID is malformed or unknown")
        fate = self._fate.get(key)
        if fate is Fault.UNDONE:
            raise GRPCError(Status.UNAVAILABLE, "<html>502</html>")
        if fate is not None and fate is not Fault.LOST:
            raise GRPCError(*REFUSALS[fate])
        if known is None:
            raise GRPCError(Status.UNIMPLEMENTED, name)
        if name == "SandboxGetLogs":
            await known(request, stream)
            return
        if key not in self._answers:
            self._answers[key] = await known(request)
        if fate is Fault.LOST:
            raise GRPCError(Status.UNAVAILABLE, "the answer is lost")
        await stream.send_message(self._answers[key])

    # ----- the calls -----

    async def _on_client_hello(self, _request: Any) -> Any:
        return api_pb2.ClientHelloResponse()

    async def _on_auth_token_get(self, _request: Any) -> Any:
        return api_pb2.AuthTokenGetResponse(token="e30.eyJleHAiOjk5OTk5OTk5OTl9.e30")

    async def _on_environment_get_or_create(self, _request: Any) -> Any:
        settings = api_pb2.EnvironmentSettings(image_builder_version="2025.06")
        about = api_pb2.EnvironmentMetadata(name="main", settings=settings)
        return api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=about)

    async def _on_app_get_or_create(self, request: Any) -> Any:
        return api_pb2.AppGetOrCreateResponse(app_id=self._apps.setdefault(request.app_name, f"ap-{len(self._apps)}"))

    async def _on_image_get_or_create(self, _request: Any) -> Any:
        done = api_pb2.GenericResult(status=api_pb2.GenericResult.GENERIC_STATUS_SUCCESS)
        return api_pb2.ImageGetOrCreateResponse(image_id="im-1", result=done)

    async def _on_secret_get_or_create(self, request: Any) -> Any:
        secret_id = f"st-{len(self._secrets)}"
        self._secrets[secret_id] = dict(request.env_dict)
        return api_pb2.SecretGetOrCreateResponse(secret_id=secret_id)

    async def _on_sandbox_create(self, request: Any) -> Any:
        asked = request.definition
        for one in self.sandboxes.values():
            if one.is_running and (one.name, one.app_id) == (asked.name, request.app_id):
                raise GRPCError(Status.ALREADY_EXISTS, f"Sandbox with name {asked.name!r} already exists")
        env = {name: value for one in asked.secret_ids for name, value in self._secrets[one].items()}
        tags = {one.tag_name: one.tag_value for one in request.tags}
        sandbox_id = f"sb-{next(self._numbers):022d}"  # so many digits: a sandbox that may have GPUs
        folder = tempfile.mkdtemp(prefix="sandbox-")
        made = Sandbox(sandbox_id, asked.name, request.app_id, tags, asked, env, time.time(), folder)
        self.sandboxes[sandbox_id] = made
        await self._begin(made)
        return api_pb2.SandboxCreateResponse(sandbox_id=sandbox_id)

    async def _on_sandbox_get_task_id(self, request: Any) -> Any:
        return api_pb2.SandboxGetTaskIdResponse(task_id=f"ta-{request.sandbox_id}")

    async def _on_sandbox_get_from_name(self, request: Any) -> Any:
        app_id = self._apps.get(request.app_name)
        for one in self.sandboxes.values():
            if one.is_running and (one.name, one.app_id) == (request.sandbox_name, app_id):
                return api_pb2.SandboxGetFromNameResponse(sandbox_id=one.sandbox_id)
        raise GRPCError(Status.NOT_FOUND, "no sandbox of this name runs")

    async def _on_sandbox_list(self, request: Any) -> Any:
        wanted = {(one.tag_name, one.tag_value) for one in request.tags}
        until = request.before_timestamp or float("inf")
        found = [
            one
            for one in self.sandboxes.values()
            if (one.is_running or request.include_finished)
            and one.app_id == request.app_id
            and wanted <= set(one.tags.items())
            and one.created_at < until
        ]
        found.sort(key=lambda one: -one.created_at)
        return api_pb2.SandboxListResponse(
            sandboxes=[api_pb2.SandboxInfo(id=one.sandbox_id, created_at=one.created_at) for one in found[:2]]
        )

    async def _on_sandbox_tags_get(self, request: Any) -> Any:
        tags = self._known(request).tags.items()
        return api_pb2.SandboxTagsGetResponse(
            tags=[api_pb2.SandboxTag(tag_name=name, tag_value=value) for name, value in tags]
        )

    async def _on_sandbox_wait(self, request: Any) -> Any:
        sandbox, until = self._known(request), time.monotonic() + request.timeout
        while sandbox.is_running and time.monotonic() < until:
            await asyncio.sleep(LOOK_S)
        return api_pb2.SandboxWaitResponse(result=sandbox.result)

    async def _on_sandbox_terminate(self, request: Any) -> Any:
        await self._end(self._known(request), api_pb2.GenericResult.GENERIC_STATUS_TERMINATED)
        return api_pb2.SandboxTerminateResponse()

    async def _on_sandbox_get_logs(self, request: Any, stream: Any) -> None:
        sandbox, at = self._known(request), int(request.last_entry_id or 0)
        until = time.monotonic() + min(request.timeout, 55)
        printed = sandbox.printed[request.file_descriptor]
        while time.monotonic() < until:
            is_over = not sandbox.is_running
            while at < len(printed):
                at += 1
                items = [api_pb2.TaskLogs(data=printed[at - 1])]
                await stream.send_message(api_pb2.TaskLogsBatch(entry_id=str(at), items=items))
            if is_over:
                await stream.send_message(api_pb2.TaskLogsBatch(entry_id=str(at), eof=True))
                return
            await asyncio.sleep(LOOK_S)

    # ----- the processes -----

    def _known(self, request: Any) -> Sandbox:
        found = self.sandboxes.get(request.sandbox_id)
        if found is None:
            raise GRPCError(Status.NOT_FOUND, f"Sandbox {request.sandbox_id} not found")
        return found

    async def _begin(self, made: Sandbox) -> None:
        argv = [sys.executable if one == "python3" else one for one in made.definition.entrypoint_args]
        env = {"PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin", "HOME": made.folder, **made.env}
        made.process = await asyncio.create_subprocess_exec(
            *(APART if self._is_apart else ()),
            *argv,
            cwd=made.folder,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        made.tasks.append(self._loop.create_task(self._watch(made)))

    async def _watch(self, made: Sandbox) -> None:
        process = made.process
        assert process is not None
        read = [self._read(made.printed[1], process.stdout), self._read(made.printed[2], process.stderr)]
        try:
            async with asyncio.timeout(made.definition.timeout_secs):
                await asyncio.gather(*read)
                code = await process.wait()
        except TimeoutError:
            await self._end(made, api_pb2.GenericResult.GENERIC_STATUS_TIMEOUT)
            return
        kinds = api_pb2.GenericResult
        status = kinds.GENERIC_STATUS_FAILURE if code else kinds.GENERIC_STATUS_SUCCESS
        made.result = made.result or kinds(status=status, exitcode=code % 256)
        shutil.rmtree(made.folder, ignore_errors=True)

    async def _read(self, into: list[str], stream: Any) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        while data := await stream.read(65_536):
            if text := decoder.decode(data):
                into.append(text)

    async def _end(self, made: Sandbox, status: Any) -> None:
        if made.is_running:
            made.result = api_pb2.GenericResult(status=status, exitcode=137)
        with suppress(ProcessLookupError):
            if made.process is not None and made.process.returncode is None:
                os.killpg(made.process.pid, 9)

    async def _end_all(self) -> None:
        for one in self.sandboxes.values():
            await self._end(one, api_pb2.GenericResult.GENERIC_STATUS_TERMINATED)
        await asyncio.gather(*(task for one in self.sandboxes.values() for task in one.tasks), return_exceptions=True)


REFUSALS: Final = {
    Fault.CAPACITY: (Status.RESOURCE_EXHAUSTED, "Insufficient capacity to create sandbox."),
    Fault.QUOTA: (Status.RESOURCE_EXHAUSTED, "Workspace reached its limit of GPUs"),
    Fault.AUTH: (Status.PERMISSION_DENIED, "This token may not create sandboxes"),
    Fault.LIMIT: (Status.INVALID_ARGUMENT, "CPU request is above the maximum"),
}


@contextmanager
def modal_cloud(*, is_apart: bool) -> Iterator[ModalCloud]:
    """A server of its own."""
    cloud = ModalCloud(is_apart=is_apart)
    cloud.start()
    try:
        yield cloud
    finally:
        cloud.stop()
