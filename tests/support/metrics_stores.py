"""Real VictoriaMetrics and Prometheus servers for tests: each in a folder of its own, ended with the test."""

import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.services import need
from tests.support.ports import own_port
from tests.waiting import PATIENCE_S, poll

PROMETHEUS_CONFIG = "global: {scrape_interval: 1s}\n"
OUT_OF_ORDER = "storage: {tsdb: {out_of_order_time_window: 24h}}\n"
"""The settings that docs/metrics.md tells Prometheus' operators: agents send late what was in their spools."""


@dataclass(frozen=True, slots=True)
class MetricsServer:
    """A running server. write_url: a whole URL; read_url: up to /api/v1."""

    name: str
    process: "subprocess.Popen[bytes]"
    read_url: str
    write_url: str

    def settle(self) -> None:
        """Make searchable what came in; VictoriaMetrics does so by itself after a second."""
        if self.name == "victoriametrics":
            get(f"{self.read_url}/internal/force_flush")


def get(url: str) -> bytes:
    """The body of an answer."""
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        body: bytes = answer.read()
        return body


@contextmanager
def victoriametrics() -> Iterator[MetricsServer]:
    """VictoriaMetrics with its own defaults."""
    need("victoriametrics")
    program = shutil.which("victoria-metrics") or shutil.which("victoria-metrics-prod") or ""
    port = own_port()
    with tempfile.TemporaryDirectory(prefix="windrow-victoria-") as folder:
        flags = [f"-storageDataPath={folder}", f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=1"]
        with _running([program, *flags], f"http://127.0.0.1:{port}/health") as process:
            url = f"http://127.0.0.1:{port}"
            yield MetricsServer("victoriametrics", process, url, f"{url}/api/v1/write")


@contextmanager
def prometheus(config: str = PROMETHEUS_CONFIG + OUT_OF_ORDER, *beside: Path) -> Iterator[MetricsServer]:
    """Prometheus that takes remote writes. beside: files that the configuration names, copied to its folder."""
    need("prometheus")
    port = own_port()
    with tempfile.TemporaryDirectory(prefix="windrow-prometheus-") as folder:
        path = Path(folder) / "prometheus.yml"
        path.write_text(config)
        for file in beside:
            shutil.copy(file, folder)
        flags = [
            *(f"--config.file={path}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"),
            *("--web.enable-remote-write-receiver", "--log.level=error"),
        ]
        with _running(["prometheus", *flags], f"http://127.0.0.1:{port}/-/ready") as process:
            url = f"http://127.0.0.1:{port}"
            yield MetricsServer("prometheus", process, url, f"{url}/api/v1/write")


@contextmanager
def _running(command: Sequence[str], ready_url: str) -> "Iterator[subprocess.Popen[bytes]]":
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        poll(lambda: _answers(ready_url), what=f"{command[0]} answers")
        yield process
    finally:
        process.kill()  # also one that a test has stopped
        process.wait()


def _answers(url: str) -> bool:
    try:
        get(url)
    except OSError:
        return False
    return True


def complaints(text: str) -> list[str]:
    """The lines of promtool on a text of metrics: none where all is as Prometheus wants it."""
    command = ["promtool", "check", "metrics"]
    checked = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    return (checked.stdout + checked.stderr).splitlines()
