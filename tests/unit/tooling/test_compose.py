"""deploy/compose.yaml against the facts of the code: each name, flag, port, file and address in it exists."""

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # no stubs in the locks

from windrow_access import config as access_config
from windrow_agent.app import config as agent_config
from windrow_master import config as master_config
from windrow_master.api.routers import declared
from windrow_master.app.standby import StandbyApp
from windrow_master.store.bus import check_url
from windrow_proto import master_process

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy"
CONTAINER = "/opt/windrow/container/"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file as YAML reads it, with its anchors followed."""
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return read


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the script makes, in a copy of the folder."""
    folder = tmp_path_factory.mktemp("deploy")
    shutil.copytree(DEPLOY / "container", folder / "container")
    for _ in range(2):
        subprocess.run(["sh", str(folder / "container" / "secrets.sh")], check=True, timeout=20)
    return folder / "secrets"


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"container_{name}", DEPLOY / "container" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _ours(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: service for name, service in compose["services"].items() if service["image"] == "windrow"}


def test_the_whole_system_is_there(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {
        *("postgres", "valkey", "victoriametrics", "master", "standby", "enrol", "access-a", "access-b", "agent"),
    }


def test_everything_that_stays_up_has_a_health_check_is_started_again_and_keeps_its_log_small(
    compose: dict[str, Any],
) -> None:
    for name, service in compose["services"].items():
        assert service["restart"] in {"unless-stopped", "on-failure"}, name
        assert service["logging"]["options"]["max-size"], name
        assert name == "enrol" or {"test", "interval", "timeout", "retries"} <= set(service["healthcheck"]), name


def test_every_variable_is_one_that_the_daemon_reads(compose: dict[str, Any]) -> None:
    read = "".join(
        path.read_text()
        for path in (
            *(ROOT / "master" / "windrow_master").rglob("*.py"),
            *(ROOT / "access" / "windrow_access").rglob("*.py"),
        )
    )
    for name, service in _ours(compose).items():
        for variable in service.get("environment", {}):
            plain = variable.removesuffix("_FILE")
            assert f'"{plain}"' in read, (name, variable)


@pytest.mark.parametrize("name", ["master", "standby"])
def test_a_master_takes_its_command_environment_and_secrets(compose: dict[str, Any], secrets: Path, name: str) -> None:
    service = compose["services"][name]
    environment = {key: value.replace("/run/secrets", str(secrets)) for key, value in service["environment"].items()}
    command, *flags = service["command"]

    config = master_config.parse(flags, environment)

    assert command == "windrow-master"
    assert (config.http_port, config.https_port, config.trunk_port, config.health_port) == (
        *(master_process.HTTP_PORT, master_process.HTTPS_PORT, master_process.TRUNK_PORT, master_process.HEALTH_PORT),
    )  # fmt: skip
    assert (config.public, config.listen, config.is_shared, config.rate_limits) == (name, "0.0.0.0", True, True)
    assert config.redis_url == check_url(config.redis_url) and "@valkey:6379" in config.redis_url
    shown = str(config.printable())
    assert not any((secrets / file).read_text().split()[-1] in shown for file in ("postgres_password", "valkey_conf"))
    assert any(str(port).endswith(f":{config.https_port}") for port in service["ports"])


def test_the_metrics_store_is_asked_where_it_listens(compose: dict[str, Any]) -> None:
    environment = compose["services"]["master"]["environment"]

    assert "-httpListenAddr=:8428" in compose["services"]["victoriametrics"]["command"]
    assert environment["WINDROW_METRICS_WRITE_URL"].startswith("http://victoriametrics:8428/")
    assert environment["WINDROW_METRICS_URL"].startswith("http://victoriametrics:8428/")


def _lines(script: str, daemon: str) -> list[list[str]]:
    """The commands of a daemon in a shell script, as words."""
    text = (DEPLOY / "container" / script).read_text().replace("\\\n", " ")
    found = re.findall(rf"^\s*(?:exec )?({daemon} .*)$", text, re.MULTILINE)
    return [shlex.split(line) for line in found]


@pytest.mark.parametrize("name", ["access-a", "access-b"])
def test_an_access_joins_and_relays_with_flags_that_exist(
    compose: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = compose["services"][name]
    for key, value in service["environment"].items():
        monkeypatch.setenv(key, value)
    shell, script, *given = service["command"]
    assert (shell, script) == ("sh", f"{CONTAINER}access.sh")
    filled = [
        [re.sub(r"\$([1-4])", lambda found: given[int(found[1]) - 1], word) for word in words[1:]]
        for words in _lines("access.sh", "windrow-access")
    ]

    join, run = [access_config.parse(words) for words in filled]

    assert isinstance(join, access_config.JoinConfig) and isinstance(run, access_config.RunConfig)
    assert (join.names, run.advertise) == ((name,), f"{name}:{run.port}")
    assert join.master_url == f"https://master:{master_process.HTTPS_PORT}"
    assert run.trunks == tuple(f"{master}:{master_process.TRUNK_PORT}" for master in ("master", "standby"))
    assert any(str(port).endswith(f":{run.port}") for port in service["ports"])
    assert run.tunnel_advertise is not None
    outside = run.tunnel_advertise.rpartition(":")[2]
    assert f"{outside}:{run.first_tunnel_port(run.port)}" in service["ports"]
    assert run.service_domain == "svc.localhost"
    assert f"{run.service_advertise}:{run.first_service_port(run.port)}" in service["ports"]
    assert f"127.0.0.1:{run.port}" in service["healthcheck"]["test"][-1]


def test_an_agent_joins_and_serves_with_flags_that_exist(compose: dict[str, Any]) -> None:
    name = compose["services"]["agent"]["command"][-1]
    filled = [[word.replace("$1", name) for word in words[1:]] for words in _lines("agent.sh", "windrow-agent")]

    parsed = [agent_config.command_line().parse_args(words) for words in filled]

    assert [words.command for words in parsed] == ["join", "run"]
    assert {str(words.data_dir) for words in parsed} == {"/var/lib/windrow-agent"}


def test_commands_are_ones_that_the_image_has(compose: dict[str, Any]) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for name, service in _ours(compose).items():
        first, *rest = service["command"]
        assert first in {"sh", "python"} | set(scripts), name
        for word in (*rest, *service.get("healthcheck", {}).get("test", [])):
            if str(word).startswith(CONTAINER):
                assert (DEPLOY / "container" / Path(word).name).is_file(), word


def test_volumes_secrets_and_services_that_are_named_are_declared_and_the_other_way_round(
    compose: dict[str, Any],
) -> None:
    services = compose["services"].values()
    volumes = {volume.split(":")[0] for service in services for volume in service.get("volumes", [])}
    secrets = {secret for service in services for secret in service.get("secrets", [])}
    needed = {other for service in services for other in service.get("depends_on", {})}

    assert volumes == set(compose["volumes"])
    assert secrets == set(compose["secrets"])
    assert needed <= set(compose["services"])


def test_every_member_has_a_token_made_for_it_by_its_name_and_role(compose: dict[str, Any]) -> None:
    members = dict(word.split("=") for word in compose["services"]["enrol"]["command"] if "=" in word)

    assert members == {"access-a": "access", "access-b": "access", "agent": "host"}
    assert all(compose["services"][member]["command"][2] == member for member in members)


def test_secrets_stand_in_files_that_only_their_owner_reaches_and_are_never_made_anew(
    compose: dict[str, Any], secrets: Path
) -> None:
    words = {path.name: path.read_text().split()[-1] for path in secrets.iterdir()}

    assert set(words) == set(compose["secrets"]) and secrets.stat().st_mode & 0o777 == 0o700
    assert words["postgres_password"] in words["database_url"] and words["valkey_conf"] in words["redis_url"]
    assert len(words["postgres_password"]) == 48
    assert not any(word in (DEPLOY / "compose.yaml").read_text() for word in words.values())
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text().split()
    assert "deploy/secrets" in (DEPLOY / "Dockerfile.dockerignore").read_text().split()


def test_what_is_ours_runs_without_rights_on_a_file_system_that_it_cannot_change(compose: dict[str, Any]) -> None:
    for name, service in _ours(compose).items():
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"]), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
    assert re.search(r"^USER windrow$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)


def test_the_image_is_built_from_what_the_repository_has(compose: dict[str, Any]) -> None:
    build = compose["services"]["master"]["build"]
    text = (DEPLOY / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--from)(\S+) ", text, re.MULTILINE)

    assert (DEPLOY / build["context"]).resolve() == ROOT and (ROOT / build["dockerfile"]).is_file()
    assert all((ROOT / path).exists() for path in copied)
    assert "--require-hashes -r requirements.lock -r requirements-build.lock" in text
    assert "--no-deps --no-build-isolation ." in text


# --- health -------------------------------------------------------------------------------------------------------


@contextmanager
def _answering(status: int, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/healthz"
        finally:
            server.shutdown()
            thread.join()


def test_the_health_check_asks_where_the_master_answers(compose: dict[str, Any]) -> None:
    url = compose["services"]["master"]["healthcheck"]["test"][-1]

    assert url == f"http://127.0.0.1:{master_process.HEALTH_PORT}/healthz"
    assert ("GET", "/healthz") in declared()


async def _standby_says(leader: str) -> tuple[int, bytes]:
    """Returns the real answer of a Master that waits."""
    app, sent = StandbyApp(), []
    app.leader = leader

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app({"type": "http", "method": "GET", "path": "/healthz"}, None, send)
    return sent[0]["status"], sent[1]["body"]


async def test_a_master_that_leads_or_waits_is_healthy_and_one_that_fails_or_finds_no_leader_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # as Docker gives it to containers behind a proxy
    health = _script("health")
    waits, lost = await _standby_says("https://master:8443"), await _standby_says("")
    cases = {
        "leads": ((200, b'{"status":"ok"}'), True),
        "waits": (waits, True),
        "fails": ((503, b'{"status":"failing","problems":["the disk is full"]}'), False),
        "finds no leader": (lost, False),
        "says something else": ((503, b"<html>"), False),
    }
    found = {}
    for name, ((status, body), _) in cases.items():
        with _answering(status, body) as url:
            found[name] = health.main(url) == 0

    assert found == {name: is_well for name, (_, is_well) in cases.items()}
    assert health.main("http://127.0.0.1:1/healthz") == 1


def test_a_port_is_healthy_while_something_listens_and_a_process_while_it_runs() -> None:
    health = _script("health")
    with _answering(200, b"") as url:
        port = url.split(":")[2].split("/")[0]
        assert health.main(f"tcp://127.0.0.1:{port}") == 0

    assert health.main(f"tcp://127.0.0.1:{port}") == 1
    assert health.main(f"pid://{Path(sys.executable).name}") == 0
    assert health.main("pid://windrow-no-such-daemon") == 1


def test_tokens_are_made_for_who_has_none_and_made_anew_only_when_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enrol = _script("enrol")
    made: list[str] = []

    def make(record: dict[str, str], role: str) -> str:
        made.append(role)
        return f"wj_{len(made)}"

    monkeypatch.setattr(enrol, "make", make)
    cli = tmp_path / "cli.json"
    cli.write_text(json.dumps({"token": "wr_x"}))
    (tmp_path / "tokens").mkdir()

    enrol.main(str(cli), str(tmp_path / "tokens"), "a=access", "h=host")
    enrol.main(str(cli), str(tmp_path / "tokens"), "a=access", "h=host")
    monkeypatch.setattr(enrol, "FRESH_S", 0.0)
    enrol.main(str(cli), str(tmp_path / "tokens"), "a=access")

    assert made == ["access", "host", "access"]
    assert (tmp_path / "tokens" / "a").read_text() == "wj_3\n"
    assert (tmp_path / "tokens" / "h").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("script", ["access.sh", "agent.sh", "secrets.sh"])
def test_the_scripts_are_ones_that_a_shell_reads(script: str) -> None:
    subprocess.run(["sh", "-n", str(DEPLOY / "container" / script)], check=True, timeout=10)


@pytest.mark.proves(
    "`docker compose config` accepts deploy/compose.yaml", by="make test on a machine with the Docker Compose plugin"
)
def test_docker_compose_accepts_the_file(secrets: Path) -> None:
    has_plugin = shutil.which("docker") is not None and (
        subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=20).returncode == 0
    )
    command = ["docker", "compose"] if has_plugin else [shutil.which("docker-compose") or ""]
    if not command[0]:
        pytest.skip("no docker compose here; the file was checked against the code instead")
    shutil.copy(DEPLOY / "compose.yaml", secrets.parent)

    done = subprocess.run(
        [*command, "-f", str(secrets.parent / "compose.yaml"), "config", "--quiet"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
