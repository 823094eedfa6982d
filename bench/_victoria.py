"""VictoriaMetrics as a peer: its own process, fed by Prometheus remote write as its documentation says.

The request is Prometheus' WriteRequest (prompb/types.proto: timeseries = 1 {labels = 1 {name = 1, value = 2},
samples = 2 {value = 1 double, timestamp = 2 int64 ms}}), compressed with Snappy.
"""

import http.client
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import cramjam
import numpy as np
from numpy.typing import NDArray

Labels = tuple[tuple[str, str], ...]


def _varint(number: int) -> bytes:
    out = bytearray()
    number &= (1 << 64) - 1
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def label_bytes(labels: Labels) -> bytes:
    """The labels of a TimeSeries."""
    return b"".join(_field(1, _field(1, name.encode()) + _field(2, value.encode())) for name, value in labels)


def series_bytes(labels: Sequence[bytes], at_ms: Sequence[int], values: NDArray[np.float64]) -> bytes:
    """TimeSeries of a WriteRequest that share their instants. labels: encoded, one per series; at_ms: milliseconds
    since 1970, after 2004, so that each takes as many bytes; values[series, instant]."""
    stamps = np.frombuffer(b"".join(map(_varint, at_ms)), dtype=np.uint8).reshape(len(at_ms), -1)
    width = 12 + stamps.shape[1]
    samples = np.empty((*values.shape, width), dtype=np.uint8)
    samples[..., 0], samples[..., 1], samples[..., 2] = 0x12, width - 2, 0x09
    samples[..., 3:11] = np.ascontiguousarray(values, dtype="<f8").view(np.uint8).reshape(*values.shape, 8)
    samples[..., 11] = 0x10
    samples[..., 12:] = stamps
    packed, size = samples.tobytes(), len(at_ms) * width
    return b"".join(_field(1, label + packed[place * size : (place + 1) * size]) for place, label in enumerate(labels))


def write_request(series: Sequence[bytes]) -> bytes:
    """A compressed WriteRequest of encoded series."""
    return bytes(cramjam.snappy.compress_raw(b"".join(series)))


@dataclass(slots=True)
class Victoria:
    """A running VictoriaMetrics."""

    pid: int
    url: str
    folder: Path
    connection: http.client.HTTPConnection

    def write(self, request: bytes) -> None:
        """Send one compressed WriteRequest on the connection that stays open; raises on anything but success."""
        headers = {
            "Content-Encoding": "snappy",
            "Content-Type": "application/x-protobuf",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
        }
        self.connection.request("POST", "/api/v1/write", body=request, headers=headers)
        answer = self.connection.getresponse()
        said = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"VictoriaMetrics answered {answer.status}: {said[:300]!r}")

    def flush(self) -> None:
        """Make what came in searchable, as it does by itself after a second."""
        urllib.request.urlopen(f"{self.url}/internal/force_flush", timeout=30).read()

    def disk_bytes(self) -> int:
        """The size of all its files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def count(self, name_prefix: str) -> int:
        """How many samples it holds of metrics with this prefix (its own export, counted)."""
        matcher = urllib.parse.quote(f'{{__name__=~"{name_prefix}.*"}}')
        total = 0
        with urllib.request.urlopen(f"{self.url}/api/v1/export?match[]={matcher}", timeout=120) as answer:
            for line in answer:
                total += len(json.loads(line)["timestamps"])
        return total


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def victoria() -> Iterator[Victoria | None]:
    """Run it in a temporary folder with its own defaults; None where it is not installed."""
    program = shutil.which("victoria-metrics") or shutil.which("victoria-metrics-prod")
    if program is None:
        yield None
        return
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="windrow-victoria-") as folder:
        process = subprocess.Popen(
            [program, f"-storageDataPath={folder}", f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        made = Victoria(process.pid, f"http://127.0.0.1:{port}", Path(folder), connection)
        try:
            _await_health(made.url)
            yield made
        finally:
            connection.close()
            process.terminate()
            process.wait(30)


def _await_health(url: str) -> None:
    ends = time.monotonic() + 20
    while True:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=2).read()
            return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)
