"""Runs one command inside a sandbox of a service, for a market: the program that travels there with the order.

    orders, read again and again ─▶ folder, checkpoint ─▶ command ─▶ checkpoints, changed files ─▶ end

It is sent as text and needs Python 3.8 and its own library. What the command prints is the log; what this program says
are lines of JSON on the standard error. It ends by itself when its orders do not change any more, or at its time.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, BinaryIO

LOOK_S = 1.0
HTTP_S = 60.0
TRIES = 3
LAST_S = 60.0
"""For the last checkpoint, and again for the files, once the command has ended."""
TTL_S = 1800.0
BLOCK_BYTES = 1 << 20
PIECE_BYTES = 256 << 20
FILES_BYTES_MAX = 5 << 30
"""Of the changed files: one call stores no more."""


def say(word: str, **more: Any) -> None:
    """Tell the market something."""
    sys.stderr.write(json.dumps({"say": word, **more}) + "\n")
    sys.stderr.flush()


def fetched(call: list[Any], path: str) -> None:
    """Bring an object in by its call."""
    method, url, headers = call
    for attempt in range(TRIES):
        try:
            with (
                urllib.request.urlopen(
                    urllib.request.Request(url, headers=dict(headers), method=method), timeout=HTTP_S
                ) as answer,
                open(path, "wb") as file,
            ):
                shutil.copyfileobj(answer, file, BLOCK_BYTES)
            return
        except OSError:
            if attempt == TRIES - 1:
                raise
            time.sleep(LOOK_S)


def sent(call: list[Any], path: str, offset: int, size: int) -> None:
    """Store a part of a file by its call; what is there already is done."""
    method, url, headers = call

    def blocks(file: BinaryIO) -> Iterator[bytes]:
        left = size
        while left:
            block = file.read(min(BLOCK_BYTES, left))
            if not block:
                raise OSError("the file became shorter while it was read")
            left -= len(block)
            yield block

    for attempt in range(TRIES):
        try:
            with open(path, "rb") as file:
                file.seek(offset)
                given = {"Content-Type": "", **dict(headers), "Content-Length": str(size)}
                asked = urllib.request.Request(url, data=blocks(file) if size else b"", headers=given, method=method)
                urllib.request.urlopen(asked, timeout=HTTP_S).close()
            return
        except urllib.error.HTTPError as error:
            if error.code == 412:
                return
            if attempt == TRIES - 1:
                raise
        except OSError:
            if attempt == TRIES - 1:
                raise
        time.sleep(LOOK_S)


def files_in(folder: str) -> dict[str, tuple[int, int]]:
    """All plain files below a folder, by their names there, with size and time of change."""
    found = {}
    for above, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(above, name)
            try:
                facts = os.lstat(path)
            except OSError:
                continue  # the command has removed it meanwhile
            if stat.S_ISREG(facts.st_mode):
                found[os.path.relpath(path, folder)] = facts.st_size, facts.st_mtime_ns
    return found


class Run:
    """One run. orders: as they were read last."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.orders: dict[str, Any] = {}
        self.beat: object = None
        self.heard = time.monotonic()
        self.looked = 0.0
        self.folder = tempfile.mkdtemp(prefix="windrow-")
        self.work = os.path.join(self.folder, "work")
        self.ckpt = os.path.join(self.work, "ckpt")
        self.child: subprocess.Popen[bytes] | None = None
        self.saved = -1
        self.pieces: list[Any] = []
        self.saving: int | None = None
        self.end_at: float | None = None
        self.is_stopped = False

    def look_s(self) -> float:
        """Seconds between two looks at the orders."""
        return float(self.orders.get("look_s", LOOK_S))

    def look(self) -> None:
        """Read the orders. Exits where nobody has written any for too long."""
        if time.monotonic() - self.looked < self.look_s():
            return
        self.looked = time.monotonic()
        try:
            with urllib.request.urlopen(self.url, timeout=HTTP_S) as answer:
                self.orders = json.load(answer)
        except (OSError, ValueError):
            pass
        if self.orders.get("beat") != self.beat:
            self.beat, self.heard = self.orders.get("beat"), time.monotonic()
        if time.monotonic() - self.heard > self.orders.get("ttl_s", TTL_S):
            say("alone")
            self.kill()
            sys.exit(75)

    def wait_for(self, name: str, limit_s: float) -> Any:
        """An order of this name, or None."""
        until = time.monotonic() + limit_s
        while name not in self.orders and time.monotonic() < until:
            time.sleep(self.look_s() / 4)
            self.look()
        return self.orders.get(name)

    def kill(self) -> None:
        """End the command, and all that it started."""
        if self.child is not None:
            with contextlib.suppress(OSError):
                os.killpg(self.child.pid, signal.SIGKILL)

    def bring_in(self, job: dict[str, Any]) -> None:
        """Make the working folder: the job's folder, and its newest checkpoint."""
        os.makedirs(self.work)
        if job["folder"]:
            path = os.path.join(self.folder, "folder.tar")
            fetched(job["folder"], path)
            with tarfile.open(path) as tar:
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                tar.extractall(self.work)
            os.remove(path)
        os.makedirs(self.ckpt, exist_ok=True)
        if job["checkpoint"]:
            coming = tempfile.mkdtemp(prefix=".incoming-", dir=self.ckpt)
            for name, call in job["checkpoint"]["pieces"]:
                path, piece = os.path.join(coming, name), os.path.join(self.folder, "piece")
                os.makedirs(os.path.dirname(path), exist_ok=True)
                fetched(call, piece)
                with open(piece, "rb") as source, open(path, "ab") as file:
                    shutil.copyfileobj(source, file, BLOCK_BYTES)
                os.remove(piece)
            self.saved = job["checkpoint"]["step"]
            os.rename(coming, os.path.join(self.ckpt, f"step-{self.saved}"))

    def save(self) -> bool:
        """Send the newest whole checkpoint, if there is a newer one; False while it waits for the calls."""
        if self.saving is None:
            try:
                names = [re.fullmatch("step-([0-9]{1,18})", name) for name in os.listdir(self.ckpt)]
            except OSError:
                return True  # the command has removed it
            step = max((int(name[1]) for name in names if name), default=-1)
            if step <= self.saved:
                return True
            self.pieces = [
                [name, at, min(PIECE_BYTES, size - at)]
                for name, (size, _) in sorted(files_in(os.path.join(self.ckpt, f"step-{step}")).items())
                for at in range(0, max(size, 1), PIECE_BYTES)
            ]
            self.saving = step
            say("found", step=step, pieces=self.pieces)
        calls = self.orders.get("puts", {}).get(str(self.saving))
        if calls is None:
            return False
        self.saved, self.saving = self.saving, None
        try:
            for number, (name, offset, size) in enumerate(self.pieces):
                sent(calls[number], os.path.join(self.ckpt, f"step-{self.saved}", name), offset, size)
            say("saved", step=self.saved, pieces=self.pieces)
        except OSError as error:
            say("unsaved", step=self.saved, why=str(error)[:200])
        return False

    def carry_on(self, child: subprocess.Popen[bytes], every_s: float) -> int:
        """Look after the command until it has ended."""
        due = time.monotonic() + every_s
        while True:
            try:
                return child.wait(self.look_s() / 4)
            except subprocess.TimeoutExpired:
                pass
            self.look()
            if every_s and (self.saving is not None or time.monotonic() >= due) and self.save():
                due = time.monotonic() + every_s
            end = self.orders.get("end")
            if (end or self.is_stopped) and self.end_at is None:
                child.terminate()
                self.end_at = time.monotonic() + (end or {"grace_s": 20})["grace_s"]
            if self.end_at is not None and time.monotonic() >= self.end_at:
                self.kill()

    def changed(self, known: dict[str, tuple[int, int]]) -> str:
        """Pack the files that are new or other than at the start; returns the tar's path. Raises OSError where they
        are larger than one call stores, or change meanwhile."""
        path = os.path.join(self.folder, "files.tar")
        found = [
            (name, facts)
            for name, facts in sorted(files_in(self.work).items())
            if known.get(name) != facts and not name.startswith("ckpt" + os.sep)
        ]
        if sum(size for _, (size, _) in found) > FILES_BYTES_MAX:  # also of a sparse file, which would fill the disk
            raise OSError("its files are larger than " + str(FILES_BYTES_MAX >> 30) + " GiB")
        with tarfile.open(path, "w") as tar:
            for name, _ in found:
                tar.add(os.path.join(self.work, name), arcname=name, recursive=False)
        return path

    def stop(self, *_: object) -> None:
        """The service ends this run in a moment."""
        self.is_stopped = True

    def all_of_it(self) -> int:
        """The whole run; returns its exit code."""
        signal.signal(signal.SIGTERM, self.stop)
        signal.signal(signal.SIGINT, self.stop)
        say("hello")
        job = None
        while job is None and not self.is_stopped:
            job = self.wait_for("job", LOOK_S)
        if job is None:
            return 75
        try:
            self.bring_in(job)
        except (OSError, tarfile.TarError) as error:
            say("broken", why="its files could not be brought in: " + str(error)[:200])
            return 75
        known = files_in(self.work)
        env = {**os.environ, **job["env"], "CKPT_DIR": self.ckpt}
        try:
            self.child = subprocess.Popen(
                job["argv"], cwd=self.work, env=env, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            print(f"{job['argv'][0]}: {error.strerror}", flush=True)
            code = 127 if isinstance(error, FileNotFoundError) else 126
        else:
            say("runs")
            code = self.carry_on(self.child, job["save_every_s"])
            self.kill()
        code = 128 - code if code < 0 else code
        until = time.monotonic() + LAST_S
        while job["save_every_s"] and not self.save() and time.monotonic() < until:
            time.sleep(self.look_s() / 4)
            self.look()
        try:
            path = self.changed(known)
        except (OSError, tarfile.TarError, ValueError) as error:
            say("ended", code=code, files_bytes=None, why="its files could not be packed: " + str(error)[:150])
            say("left", files=False)
            return code
        say("ended", code=code, files_bytes=os.path.getsize(path))
        call = self.wait_for("files", LAST_S)
        if call:
            try:
                sent(call, path, 0, os.path.getsize(path))
                say("left", files=True)
            except OSError as error:
                say("left", files=False, why=str(error)[:200])
        else:
            say("left", files=False, why="nobody took them")
        return code


if __name__ == "__main__":
    sys.exit(Run(os.environ.pop("WINDROW_ORDERS")).all_of_it())
