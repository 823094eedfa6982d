"""The worker's server: whoever proves the secret sends code and calls, and gets output and ends."""

import asyncio
import contextlib
import json
import re
import secrets
import sys
import zlib
from pathlib import Path
from typing import Any, Final

from windrow.worker import frames
from windrow.worker.envs import EnvFailed, Envs
from windrow.worker.frames import BODY_BYTES_MAX, PIECE_BYTES, BadFrame, Frame, Kind
from windrow.worker.running import POOL_MAX, Call, Runner
from windrow.worker.runs import Run, Runs
from windrow.worker.trees import BadCode, Trees

CONNECTIONS_MAX: Final = 64
WAITING_MAX: Final = 1024
"""Calls that have not ended; more are refused."""
BODIES_BYTES_MAX: Final = 512 << 20
"""Of one connection, of bodies that are still coming."""
MANIFEST_BYTES_MAX: Final = 64 << 20
_RUN: Final = re.compile(r"[0-9a-f]{32}")
_NAME: Final = re.compile(r"[^\d\W]\w*(\.[^\d\W]\w*)*")
_MODULE: Final = re.compile(r"[\w.-]{1,500}")


class _Gone(Exception):
    """The other side has ended the connection, or what it said cannot be gone on with."""


class _Refused(Exception):
    """One request is not carried out: a code for programs, and why."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Server:
    """One worker. Everything it keeps lies below `home`; calls run in `work`."""

    def __init__(self, home: Path, work: Path, lib: Path, secret: bytes) -> None:
        self.secret = secret
        self.trees = Trees(home)
        self.envs = Envs(home / "envs", lib)
        self.runs = Runs(home / "runs")
        self._work, self._lib = work, lib
        self.connections = 0
        self.runner: Runner

    async def serve(self, host: str, port: int, ready: "asyncio.Future[int]") -> None:
        """Until cancelled; ready: gets the port."""
        async with asyncio.TaskGroup() as group:
            self.runner = Runner(group, self.trees, self.envs, self._work, self._lib)
            server = await asyncio.start_server(self._connected, host, port, limit=2 * frames.FRAME_BYTES_MAX)
            try:
                ready.set_result(server.sockets[0].getsockname()[1])
                await asyncio.Event().wait()
            finally:
                server.close()
                self.runner.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if self.connections <= CONNECTIONS_MAX:
                await Connection(self, reader, writer).serve()
        finally:
            self.connections -= 1
            writer.close()


class Connection:
    """One client."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server, self._reader, self._writer = server, reader, writer
        self._bodies: dict[int, bytearray] = {}
        self._bodies_bytes = 0

    async def serve(self) -> None:
        """To its end."""
        try:
            await self._meet()
            async with asyncio.TaskGroup() as group:
                while True:
                    async with asyncio.timeout(frames.SILENT_S):
                        frame = await frames.read_frame(self._reader)
                    try:
                        await self._take(frame, group)
                    except _Refused as refused:
                        await self._refuse(frame.number, refused.code, str(refused))
        except* BadFrame as bad:
            with contextlib.suppress(OSError):
                await self._refuse(0, "bad_frame", str(bad.exceptions[0]))
        except* (_Gone, OSError, EOFError, TimeoutError):
            pass  # runs go on; whoever wants them attaches to them

    async def _meet(self) -> None:
        nonce = secrets.token_bytes(frames.NONCE_BYTES)
        self._writer.write(frames.GREETING + nonce)
        async with asyncio.timeout(frames.HELLO_S):
            hello = await frames.read_frame(self._reader)
            own = str(hello.record().get("nonce"))[:128] if hello.kind is Kind.HELLO else ""
            proof = frames.proof(self._server.secret, b"worker", own.encode())
            await self._say(Kind.WELCOME, 0, {"proof": proof, "python": list(sys.version_info[:3])})
            shown = await frames.read_frame(self._reader)
        is_known = shown.kind is Kind.PROOF
        if not is_known or not frames.is_proof(shown.record().get("proof"), self._server.secret, b"client", nonce):
            await self._refuse(0, "wrong_secret", "Whoever connects here must know this worker's secret.")
            raise _Gone

    async def _take(self, frame: Frame, group: asyncio.TaskGroup) -> None:
        match frame.kind:
            case Kind.PING:
                await self._send(frames.encode(Kind.PONG, 0))
            case Kind.PONG:
                pass
            case Kind.DATA:
                self._collect(frame)
            case Kind.TREE:
                await self._tree(frame)
            case Kind.FILE:
                self._file(frame)
            case Kind.CALL:
                asked = frame.record()
                run = self._called(frame.number, asked)
                group.create_task(self._tell(frame.number, run, 0, asked.get("begun") is not False))
            case Kind.ATTACH:
                asked = frame.record()
                group.create_task(self._tell(frame.number, self._run(asked), _natural(asked.get("offset"), 1 << 40)))
            case Kind.CANCEL:
                self._server.runner.cancel(self._run(frame.record()))
            case Kind.ENV:
                group.create_task(self._env(frame.number, frame.record().get("requirements")))
            case _:
                raise BadFrame(f"A client sends no {frame.kind.name}.")

    def _collect(self, frame: Frame) -> None:
        body = self._bodies.setdefault(frame.number, bytearray())
        self._bodies_bytes += len(frame.payload)
        if len(body) + len(frame.payload) > BODY_BYTES_MAX or self._bodies_bytes > BODIES_BYTES_MAX:
            raise BadFrame(f"More than {BODY_BYTES_MAX >> 20} MiB came for one thing, or too much at once.")
        body += frame.payload

    def _body(self, number: int) -> bytearray:
        body = self._bodies.pop(number, bytearray())
        self._bodies_bytes -= len(body)
        return body

    # --- code --------------------------------------------------------------------------------------------------------

    async def _tree(self, frame: Frame) -> None:
        digest = str(frame.record().get("digest"))
        unpacker = zlib.decompressobj()
        try:
            manifest = json.loads(unpacker.decompress(self._body(frame.number), MANIFEST_BYTES_MAX))
            missing = self._server.trees.offer(digest, manifest)
        except (zlib.error, ValueError, RecursionError) as error:
            raise _Refused("bad_code", f"A manifest could not be read: {error}") from error
        except BadCode as error:
            raise _Refused("bad_code", str(error)) from error
        await self._say(Kind.NEED, frame.number, {"files": missing})

    def _file(self, frame: Frame) -> None:
        try:
            self._server.trees.put(str(frame.record().get("digest")), bytes(self._body(frame.number)))
        except BadCode as error:
            raise _Refused("bad_code", str(error)) from error
        except OSError as error:
            raise _Refused("disk", f"The host could not keep the code: {error}") from error

    async def _env(self, number: int, requirements: object) -> None:
        lines: asyncio.Queue[str | None] = asyncio.Queue()

        async def relay() -> None:
            while (line := await lines.get()) is not None:
                await self._say(Kind.PROGRESS, number, {"line": line})

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(relay())
                try:
                    name = await self._server.envs.make(requirements, lines.put_nowait)
                finally:
                    lines.put_nowait(None)
        except* EnvFailed as failed:
            await self._refuse(number, "env_failed", str(failed.exceptions[0]))
        except* OSError as failed:
            await self._refuse(number, "env_failed", f"The environment could not be made: {failed.exceptions[0]}")
        else:
            await self._say(Kind.DONE, number, {"env": name})

    # --- runs --------------------------------------------------------------------------------------------------------

    def _called(self, number: int, asked: dict[str, Any]) -> Run:
        """The run of a call; a call that was sent twice is the same run."""
        body, server = self._body(number), self._server
        run_id = str(asked.get("run"))
        if not _RUN.fullmatch(run_id):
            raise _Refused("bad_call", "A run's id is 32 hexadecimal digits.")
        if (known := server.runs.find(run_id)) is not None:
            return known
        call = _call(asked)
        try:
            is_code_here = call.tree is None or server.trees.folder(call.tree) is not None
        except BadCode as error:
            raise _Refused("bad_code", str(error)) from error
        if not is_code_here:
            raise _Refused("need_code", "The code of this call has not come.")
        if server.envs.python(call.env) is None:
            raise _Refused("need_env", "The environment of this call is not made.")
        if server.runs.unfinished() >= WAITING_MAX:
            raise _Refused("too_many", f"{WAITING_MAX} calls have not ended; this one was not begun.")
        try:
            run = server.runs.make(run_id)
            run.arguments.write_bytes(body)
        except OSError as error:
            raise _Refused("disk", f"The host could not keep the arguments: {error}") from error
        server.runner.start(run, call)
        return run

    def _run(self, asked: dict[str, Any]) -> Run:
        found = self._server.runs.find(str(asked.get("run")))
        if found is None:
            raise _Refused("unknown_run", "This worker knows no such run: it never began, or is long over.")
        return found

    async def _tell(self, number: int, run: Run, offset: int, is_begun_told: bool = True) -> None:
        """That it is known here, where that is asked; its output from `offset` on, as it comes; its result and end."""
        if is_begun_told:
            await self._send(frames.encode(Kind.BEGUN, number))
        while True:
            is_over = run.outcome is not None
            while data := run.read(offset, PIECE_BYTES):
                offset += len(data)
                await self._send(frames.encode(Kind.OUTPUT, number, data))
            if is_over:
                break
            if run.outcome is None and offset >= run.size:
                await run.changed()
        assert run.outcome is not None
        last = b""
        if run.outcome["status"] in ("returned", "raised") and run.result.exists():
            with run.result.open("rb") as file:
                while data := file.read(PIECE_BYTES):
                    await self._send(last)
                    last = frames.encode(Kind.DATA, number, data)
        await self._send(last + frames.encode_record(Kind.DONE, number, {**run.outcome, "run": run.id}))

    # --- the line ----------------------------------------------------------------------------------------------------

    async def _say(self, kind: Kind, number: int, record: dict[str, Any]) -> None:
        await self._send(frames.encode_record(kind, number, record))

    async def _refuse(self, number: int, code: str, text: str) -> None:
        self._bodies_bytes -= len(self._bodies.pop(number, b""))
        await self._say(Kind.REFUSED, number, {"code": code, "text": text})

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


def _call(asked: dict[str, Any]) -> Call:
    tree, env, timeout_s = asked.get("tree"), asked.get("env"), asked.get("timeout_s")
    module, name = str(asked.get("module") or ""), str(asked.get("name") or "")
    variables = asked.get("variables") or {}
    is_named = bool(_NAME.fullmatch(name)) and bool(module)
    if (name and not is_named) or (module and not _MODULE.fullmatch(module)):
        raise _Refused("bad_call", f"{module}:{name} is not a module and a function of it.")
    if not isinstance(variables, dict) or not all(_is_variable(*pair) for pair in variables.items()):
        raise _Refused("bad_call", "Variables of the environment are names and texts without NUL.")
    if timeout_s is not None and not (isinstance(timeout_s, int | float) and timeout_s > 0):
        raise _Refused("bad_call", "A time limit is a number of seconds above 0.")
    return Call(
        tree=None if tree is None else str(tree),
        module=module,
        name=name,
        is_main=bool(asked.get("is_main")),
        env=None if env is None else str(env),
        variables=variables,
        pool=_natural(asked.get("pool"), POOL_MAX),
        timeout_s=timeout_s,
    )


def _is_variable(name: object, value: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and isinstance(value, str) and "\0" not in value


def _natural(value: object, most: int) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or not 0 <= value <= most:
        raise _Refused("bad_call", f"{value!r:.40} is no number from 0 to {most}.")
    return value
