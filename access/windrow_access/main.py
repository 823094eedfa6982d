"""The Access daemon's entry point: parse, join or run, N workers on one port. The only place that wires."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from types import FrameType

import structlog

from windrow_access.config import PORT_TRIES, JoinConfig, RunConfig, parse
from windrow_access.worker import Worker
from windrow_proto import enrol
from windrow_proto.crashes import Crashes
from windrow_proto.errors import Unavailable, WindrowError
from windrow_proto.logs import configure_log
from windrow_proto.networks import host_and_port

log = structlog.get_logger()

CHECK_S = 0.2
STOP_S = 10.0
RESTART_FIRST_S, RESTART_LAST_S = 0.5, 30.0
LIVED_S = 60.0
"""A worker that lived so long starts its back-off anew."""


def free_port(host: str, port: int) -> int:
    """This port, or the next one nobody listens on; raises Unavailable after 50 tries. 0: the kernel chooses."""
    for candidate in range(port, port + PORT_TRIES) if port else (0,):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            # Without SO_REUSEPORT this fails also where another Access shares the port among its workers.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except OSError:
                continue
            taken: int = probe.getsockname()[1]
            return taken
    raise Unavailable(f"No free port from {port} to {port + PORT_TRIES - 1} on {host}. Give another --listen.")


def join(config: JoinConfig) -> int:
    """Become an Access; prints its id."""
    token = config.token_file.read_text()
    folder = enrol.IdentityFolder(config.data_dir / "identity")
    request = enrol.JoinRequest(role="access", host_name=enrol.host_name(), addresses=config.names)
    identity = enrol.join(folder, config.master_url, token, request)
    sys.stdout.write(identity.subject_id + "\n")
    return 0


def run(config: RunConfig, crashes: Crashes) -> int:
    """Run one worker here, or supervise several."""
    if config.worker is not None:
        asyncio.run(Worker(config, config.port, crashes).run())
        return 0
    port = free_port(config.host, config.port)
    if config.workers > 1 and config.service_domain:
        config = replace(config, service_port=free_port(config.host, config.first_service_port(port)))
    if config.workers == 1:
        asyncio.run(Worker(config, port, crashes).run())
        return 0
    return Workers(config, port).run()


class Workers:
    """N worker processes on one port; one that dies is started again, with back-off."""

    def __init__(self, config: RunConfig, port: int) -> None:
        self._config = config
        self._port = port
        self._stopping = False

    def run(self) -> int:
        """Supervise until a signal, then stop them all."""
        for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(ending, self._stop)
        running = {number: self._start(number) for number in range(self._config.workers)}
        started = dict.fromkeys(running, time.monotonic())
        due: dict[int, float] = {}
        wait_s = dict.fromkeys(running, RESTART_FIRST_S)
        while not self._stopping:
            now = time.monotonic()
            for number, process in running.items():
                if process.poll() is None:
                    continue
                if number not in due:
                    wait_s[number] = RESTART_FIRST_S if now - started[number] > LIVED_S else wait_s[number] * 2
                    due[number] = now + min(RESTART_LAST_S, wait_s[number])
                    log.warning("worker_died", worker=number, code=process.returncode)
                elif now >= due[number]:
                    del due[number]
                    running[number], started[number] = self._start(number), now
            time.sleep(CHECK_S)
        return self._end(list(running.values()))

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _start(self, number: int) -> "subprocess.Popen[bytes]":
        config = self._config
        command = [sys.executable, "-m", "windrow_access", "run", "--data-dir", str(config.data_dir)]
        command += [
            "--listen",
            host_and_port(config.host, self._port),
            "--region",
            config.region,
            "--worker",
            str(number),
        ]
        command += ["--advertise", config.advertise] if config.advertise else []
        if config.metrics_port is not None:
            command += ["--metrics-port", str(config.metrics_port)]
        command += ["--tunnel-port", str(config.tunnel_port)] if config.tunnel_port is not None else []
        command += ["--speedtest-port", str(config.speedtest_port)] if config.speedtest_port is not None else []
        command += self._services()
        for trunk in config.trunks:
            command += ["--trunk", trunk]
        return subprocess.Popen(command)

    def _services(self) -> list[str]:
        """Those of services: workers share one port, since each leads to all of them."""
        config = self._config
        given = {
            "--service-domain": config.service_domain,
            "--service-port": config.service_port,
            "--service-advertise": config.service_advertise,
            "--service-certificate": config.service_certificate,
            "--service-key": config.service_key,
        }
        return [word for flag, value in given.items() if value is not None for word in (flag, str(value))]

    @staticmethod
    def _end(processes: "list[subprocess.Popen[bytes]]") -> int:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        ends = time.monotonic() + STOP_S
        for process in processes:
            try:
                process.wait(max(0.1, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        return 0


def main() -> None:
    """Run the command; a known failure is a sentence and exit code 1."""
    crashes = configure_log()
    os.umask(0o077)
    try:
        config = parse(sys.argv[1:])
        code = join(config) if isinstance(config, JoinConfig) else run(config, crashes)
    except (WindrowError, OSError) as error:
        sys.stderr.write(f"windrow-access: {error}\n")
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
