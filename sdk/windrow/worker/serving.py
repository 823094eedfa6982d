"""The worker's server: a client that proves the secret sends code and calls, and gets output and results."""

import asyncio
import contextlib
import json
import re
import secrets
import sys
import zlib
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

from windrow.worker import engines, frames
from windrow.worker.envs import EnvFailed, Envs
from windrow.worker.frames import BODY_BYTES_MAX, PIECE_BYTES, BadFrame, Frame, Kind
from windrow.worker.running import POOL_MAX, Call, Runner
from windrow.worker.runs import Run, Runs
from windrow.worker.trees import BadCode, Trees

CONNECTIONS_MAX: Final = 64
"""Of clients that proved the secret. One more takes the place of the one that has asked for nothing for longest, whose
next call connects again."""
STRANGERS_MAX: Final = 256
"""Of those that have not proved it yet; more are turned away."""
WAITING_MAX: Final = 1024
"""Calls that have not ended; more are refused."""
BODIES_BYTES_MAX: Final = 512 << 20
"""Of one connection, of bodies that are still coming."""
PART_S: Final = 2.0
MANIFEST_BYTES_MAX: Final = 64 << 20
NEED_FILES: Final = 1000
"""Digests in one frame: a fifteenth of what fits."""
VARIABLES_BYTES_MAX: Final = 64 * 1024
"""Of one call, as JSON: its process gets all of the call in one packet."""
NAME_CHARACTERS_MAX: Final = 500
PART_MAX: Final = {"port": 65_535, "local_rank": 255, "local_size": 256, "cpus": 4096}
_RUN: Final = re.compile(r"[0-9a-f]{32}")
_NAME: Final = re.compile(r"[^\d\W]\w*(\.[^\d\W]\w*)*")
_MODULE: Final = re.compile(r"[\w.-]{1,500}")


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
        self._open: set[Connection] = set()
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
        one = Connection(self, reader, writer)
        self._open.add(one)
        try:
            if len(self._open) <= CONNECTIONS_MAX + STRANGERS_MAX:
                await one.serve()
        finally:
            self._open.discard(one)
            writer.close()

    def has_place(self) -> bool:
        """True if one more client may be served; an idle one gives its place up for it."""
        known = [one for one in self._open if one.is_known]
        if len(known) >= CONNECTIONS_MAX:
            idle = [one for one in known if one.is_idle]
            if not idle:
                return False
            min(idle, key=lambda one: one.used_at).leave()
        return True


class Connection:
    """One client."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server, self._reader, self._writer = server, reader, writer
        self._bodies: dict[int, bytearray] = {}
        self._bodies_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_known = False
        """It proved the secret, and has its place."""
        self.used_at = 0.0

    @property
    def is_idle(self) -> bool:
        """Nothing that it asked for is under way."""
        return not self._tasks and not self._bodies

    def leave(self) -> None:
        """End it."""
        self.is_known = False
        self._writer.close()

    async def serve(self) -> None:
        """To its end."""
        try:
            await self._meet()
            if not self._server.has_place():
                raise _Refused(
                    "too_many", f"{CONNECTIONS_MAX} programs wait for calls of this worker. Try again later."
                )
            self.is_known = True
            async with asyncio.TaskGroup() as group:
                while True:
                    async with asyncio.timeout(frames.SILENT_S):
                        frame = await frames.read_frame(self._reader)
                    try:
                        await self._take(frame, group)
                    except _Refused as refused:
                        await self._refuse(frame.number, refused.code, str(refused))
        except* _Refused as refused:
            await self._turn_away(refused.exceptions[0])
        except* BadFrame as bad:
            await self._turn_away(_Refused("bad_frame", str(bad.exceptions[0])))
        except* (OSError, EOFError, TimeoutError):
            pass  # runs go on; whoever wants them attaches to them

    async def _turn_away(self, why: "_Refused | BaseExceptionGroup[_Refused]") -> None:
        """Say why, and read on until the other side has read that: what is closed unread takes it along."""
        if isinstance(why, _Refused):
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(PART_S):
                    await self._refuse(0, why.code, str(why))
                    self._writer.write_eof()
                    while await self._reader.read(PIECE_BYTES):
                        pass

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
            raise _Refused("wrong_secret", "Whoever connects here must know this worker's secret.")

    async def _take(self, frame: Frame, group: asyncio.TaskGroup) -> None:
        if frame.kind is not Kind.PING:
            self.used_at = asyncio.get_running_loop().time()
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
                self._begin(group, self._tell(frame.number, run, 0, asked.get("begun") is not False))
            case Kind.ATTACH:
                asked = frame.record()
                run, offset = self._run(asked), _natural(asked.get("offset"), 1 << 40)
                self._begin(group, self._tell(frame.number, run, offset))
            case Kind.CANCEL:
                self._server.runner.cancel(self._run(frame.record()))
            case Kind.ENV:
                self._begin(group, self._env(frame.number, frame.record().get("requirements")))
            case _:
                raise BadFrame(f"A client sends no {frame.kind.name}.")

    def _begin(self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> None:
        task = group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
        for at in range(0, len(missing) or 1, NEED_FILES):
            record = {"files": missing[at : at + NEED_FILES], "more": at + NEED_FILES < len(missing)}
            await self._say(Kind.NEED, frame.number, record)

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
    is_named = bool(_NAME.fullmatch(name)) and len(name) <= NAME_CHARACTERS_MAX and bool(module)
    if (name and not is_named) or (module and not _MODULE.fullmatch(module)):
        raise _Refused("bad_call", f"{module:.80}:{name:.80} is not a module and a function of it.")
    if not isinstance(variables, dict) or not all(_is_variable(*pair) for pair in variables.items()):
        raise _Refused("bad_call", "Variables of the environment are names and texts without NUL.")
    if len(json.dumps(variables)) > VARIABLES_BYTES_MAX:
        most = f"{VARIABLES_BYTES_MAX >> 10} KiB"
        raise _Refused("bad_call", f"Variables of the environment are more than {most}. Send that as an argument.")
    if "/" in (file := str(asked.get("file") or "")) or "\0" in file or file in (".", "..") or (file and tree is None):
        raise _Refused("bad_call", f"{file!r:.80} is not a file of the code's folder.")
    if timeout_s is not None and not (isinstance(timeout_s, int | float) and timeout_s > 0):
        raise _Refused("bad_call", "A time limit is a number of seconds above 0.")
    return Call(
        tree=None if tree is None else str(tree),
        module=module,
        name=name,
        is_main=bool(asked.get("is_main")),
        file=file,
        env=None if env is None else str(env),
        variables=variables,
        pool=_natural(asked.get("pool"), POOL_MAX),
        timeout_s=timeout_s,
        part=_part(asked.get("part")),
    )


def _part(asked: object) -> dict[str, Any] | None:
    if asked is None:
        return None
    if not isinstance(asked, dict) or asked.get("kind") not in engines.KINDS:
        raise _Refused("bad_call", f"{asked!r:.80} is not a part of a call over several processes.")
    numbers = {name: _natural(asked.get(name), most) for name, most in PART_MAX.items()}
    return {"kind": asked["kind"], "secret": str(asked.get("secret") or "")[:NAME_CHARACTERS_MAX], **numbers}


def _is_variable(name: object, value: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and isinstance(value, str) and "\0" not in value


def _natural(value: object, most: int) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or not 0 <= value <= most:
        raise _Refused("bad_call", f"{value!r:.40} is no number from 0 to {most}.")
    return value
