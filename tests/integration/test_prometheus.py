"""A real Prometheus, run with the file in deploy/, finds what the daemons tell; board and alerts are in its tongue."""

import json
import re
import subprocess
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.state import FakeState
from tests.services import need
from tests.support.metrics_stores import MetricsServer, complaints, get, prometheus
from tests.support.ports import own_port
from tests.support.stack import WINDROW, Stack, stack, wait_for
from tests.waiting import PATIENCE_S
from windrow_master.watch.rules import RULES

pytestmark = pytest.mark.slow

DEPLOY = Path(__file__).parents[2] / "deploy"
JOBS = {"windrow-master": "8000", "windrow-access": "9443", "windrow-agent": "9444"}
"""The ports that deploy/prometheus/prometheus.yml names."""
A_SERIES_OF_EACH = {
    "windrow-master": "windrow_log_records_total > 0",
    "windrow-access": "windrow_access_attached == 1",
    "windrow-agent": "windrow_agent_connected == 1",
}
TENSOR_CORES = 5
"""The number of their use among NVML's GPM metrics."""
DCGM_BOARD = (
    *("avg(DCGM_FI_DEV_GPU_TEMP)", 'DCGM_FI_DEV_GPU_TEMP{gpu=~"0|1"}', "sum(DCGM_FI_DEV_POWER_USAGE)"),
    *("DCGM_FI_DEV_SM_CLOCK * 1000000", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE"),
    *("DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
    *("rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[1m])", 'DCGM_FI_DEV_GPU_TEMP{Hostname=~".+", UUID=~".+"}'),
)
"""The queries of NVIDIA's board for dcgm-exporter (Grafana dashboard 12239), and common additions to it."""
PROMTOOL_S = 120


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    """Returns the port at which each daemon serves its figures; the Master's is known when it runs."""
    need("prometheus")
    return {"windrow-access": own_port(), "windrow-agent": own_port()}


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory, fake_library: Path) -> Iterator[FakeNvml]:
    """Eight GPUs; the driver's library is a stand-in."""
    with FakeState(tmp_path_factory.mktemp("cards") / "state") as state:
        yield FakeNvml(fake_library, state)


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory, ports: dict[str, int], cards: FakeNvml) -> Iterator[Stack]:
    """A shipped market, and beside it a relay and an agent with GPUs that were told to serve their figures."""
    folder = tmp_path_factory.mktemp("scraped")
    with ExitStack() as cleanup:
        running = cleanup.enter_context(stack(folder=folder))
        wait_for(lambda: hosts(running))
        url = running.cli["https_url"]
        ports["windrow-master"] = running.cli["ports"]["http"]
        for role, name in (("access", "windrow-access"), ("host", "windrow-agent")):
            place = folder / name
            token = folder / f"{name}.token"
            with running.client() as api:
                token.write_text(api.request("POST", "/join-tokens", body={"role": role})["join_token"])
            token.chmod(0o600)
            own = ["--name", "127.0.0.1"] if role == "access" else ["--name", "scraped"]
            program = str(Path(WINDROW).with_name(name))
            subprocess.run(
                [program, "join", url, "--token-file", str(token), "--data-dir", str(place), *own],
                check=True,
                timeout=120,
                capture_output=True,
            )
            flags = ["--data-dir", str(place), "--metrics-port", str(ports[name])]
            if role == "access":
                flags += ["--listen", f"127.0.0.1:{own_port()}", "--region", "scraped"]
                flags += ["--trunk", f"127.0.0.1:{running.cli['ports']['trunk']}"]
            cleanup.enter_context(process([program, "run", *flags], folder / f"{name}.log", cards.environment))
        for port in ports.values():
            wait_for(lambda port=port: figures(port))
        yield running


@contextmanager
def process(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[None]:
    """A daemon that ends with the test."""
    with log.open("ab") as said:
        running = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        try:
            yield
        finally:
            running.terminate()
            try:
                running.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


@pytest.fixture(scope="module")
def server(market: Stack, ports: dict[str, int]) -> Iterator[MetricsServer]:
    """Prometheus with the deployed file: only the ports are those of here, and it looks each second."""
    config = (DEPLOY / "prometheus" / "prometheus.yml").read_text()
    config = config.replace("scrape_interval: 15s", "scrape_interval: 1s\n  evaluation_interval: 1s")
    for job, port in JOBS.items():
        config, times = re.subn(rf'(job_name: {job}\b[^"]*"127\.0\.0\.1:){port}"', rf'\g<1>{ports[job]}"', config)
        assert times == 1, job
    with prometheus(config, DEPLOY / "prometheus" / "alerts.yml") as running:
        wait_for(lambda: all(ask(running, f'up{{job="{job}"}} == 1') for job in JOBS))
        yield running


def hosts(running: Stack) -> bool:
    with running.client() as api:
        return any(host["link_state"] == "online" for host in api.get("/hosts")["items"])


def figures(port: int) -> str:
    return get(f"http://127.0.0.1:{port}/metrics").decode()


def ask(server: MetricsServer, query: str) -> list[dict[str, Any]]:
    """The series that an expression gives now; raises where Prometheus refuses it."""
    answer = json.loads(get(f"{server.read_url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"))
    assert answer["status"] == "success", answer
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


def test_the_deployed_files_are_what_promtool_accepts() -> None:
    need("prometheus")
    checked = promtool("check", "config", str(DEPLOY / "prometheus" / "prometheus.yml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize("job", JOBS)
def test_what_each_daemon_tells_is_what_promtool_accepts(market: Stack, ports: dict[str, int], job: str) -> None:
    said = complaints(figures(ports[job]))
    assert [line for line in said if not line.startswith("DCGM_")] == [], "those names NVIDIA chose"


@pytest.mark.timeout(300)
@pytest.mark.proves("the queries of NVIDIA's own DCGM board are answered by the agent's series")
def test_a_board_that_was_made_for_dcgm_draws_something(server: MetricsServer, cards: FakeNvml) -> None:
    def draws(expression: str) -> bool:
        for gpu in cards.state.state.gpus:  # its counters of use go on
            gpu.gpm_elapsed += 1000
            gpu.gpm_busy[TENSOR_CORES] += 400
        return bool(ask(server, expression))

    for expression in DCGM_BOARD:
        assert wait_for(lambda expression=expression: draws(expression)), expression
    assert {one["metric"]["gpu"] for one in ask(server, "DCGM_FI_DEV_GPU_TEMP")} == set("01234567")


@pytest.mark.timeout(300)
@pytest.mark.proves("Prometheus scrapes Master, Access and Agent with deploy/prometheus, and every panel has an answer")
def test_every_target_is_up_and_a_series_of_each_is_found(server: MetricsServer) -> None:
    def health() -> dict[str, str]:
        targets = json.loads(get(f"{server.read_url}/api/v1/targets"))["data"]["activeTargets"]
        return {target["labels"]["job"]: target["health"] for target in targets}

    # A busy machine may miss a scrape, for which there is one second here.
    wait_for(lambda: health() == dict.fromkeys(JOBS, "up"))
    for job, query in A_SERIES_OF_EACH.items():
        assert wait_for(lambda query=query: ask(server, query))[0]["metric"]["job"] == job


@pytest.mark.timeout(300)
def test_every_panel_of_the_board_draws_something(server: MetricsServer) -> None:
    board = json.loads((DEPLOY / "grafana" / "windrow.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert expressions
    for expression in expressions:
        assert wait_for(lambda expression=expression: ask(server, expression)), expression


@pytest.mark.timeout(300)
def test_prometheus_fires_what_the_masters_alerts_do_and_nothing_else(market: Stack, server: MetricsServer) -> None:
    def judged() -> list[dict[str, Any]]:
        groups = json.loads(get(f"{server.read_url}/api/v1/rules"))["data"]["groups"]
        rules: list[dict[str, Any]] = [rule for group in groups for rule in group["rules"]]
        return rules if all(rule["health"] != "unknown" for rule in rules) else []

    rules = wait_for(judged)
    assert {rule["name"]: rule["health"] for rule in rules} == dict.fromkeys((rule["name"] for rule in rules), "ok")
    assert {one["metric"]["rule"] for one in ask(server, "windrow_alerts")} >= set(RULES)

    def agree() -> bool:
        with market.client() as api:
            told = {one["rule"] for one in api.get("/alerts")["items"] if one["state"] in ("firing", "acknowledged")}
        firing = [rule["query"] for rule in judged() if rule["state"] == "firing"]
        return {code for query in firing for code in re.findall('rule="(.+?)"', query) or [query]} == told

    wait_for(agree)


def promtool(*words: str, given: str | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["promtool", *words], input=given, capture_output=True, text=True, timeout=PROMTOOL_S, check=False
    )
