"""The client: where the Master is found, how problems look, how pages and streams are read."""

import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from tests.support.pki import make_ca
from windrow.authority import is_own
from windrow.cli.exits import exit_code
from windrow.cli.output import plain
from windrow.client import Client
from windrow.config import Config, find, save
from windrow.errors import ApiProblem, NoMaster, WaitTimedOut
from windrow.remote import tunnel_request
from windrow.transport import _ask_by_own_name, _trust
from windrow_master.identity.authority import Authority
from windrow_proto.keys import SERVER_NAMES


def client(handler: Callable[[httpx2.Request], httpx2.Response]) -> Client:
    return Client(Config("http://master", "wr_secret"), transport=httpx2.MockTransport(handler))


def test_lists_are_read_to_the_last_page() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        second = request.url.params.get("cursor") == "c2"
        return httpx2.Response(
            200, json={"items": [{"id": 2 if second else 1}], "next_cursor": None if second else "c2"}
        )

    with client(answer) as api:
        assert [item["id"] for item in api.items("/hosts")] == [1, 2]


def test_a_problem_becomes_an_exception_with_its_code_reasons_and_exit_code() -> None:
    document = {"code": "no_capacity", "detail": "No host fits.", "reasons": [{"host_id": "h"}], "request_id": "r1"}
    with client(lambda request: httpx2.Response(409, json=document)) as api, pytest.raises(ApiProblem) as caught:
        api.plan({})
    assert (caught.value.code, caught.value.request_id, caught.value.reasons) == (
        "no_capacity",
        "r1",
        [{"host_id": "h"}],
    )
    assert exit_code(caught.value) == 5


def test_a_post_whose_answer_was_lost_is_repeated_with_the_same_key() -> None:
    keys: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            raise httpx2.ReadError("gone", request=request)
        return httpx2.Response(202, json={"cluster": {"id": "cluster_1"}})

    with client(answer) as api:
        assert api.create_cluster({})["id"] == "cluster_1"
    assert len(keys) == 2
    assert keys[0] == keys[1]


BUSY = {"code": "no_capacity", "detail": "a does not fit: its card is being challenged."}


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited each time, on a clock that moves by that alone."""
    found: list[float] = []
    monkeypatch.setattr("windrow.soon.time.sleep", found.append)
    monkeypatch.setattr("windrow.soon.time.monotonic", lambda: 1000.0 + sum(found))
    return found


def test_a_cluster_whose_card_is_back_in_a_moment_is_asked_for_again_and_that_is_told_once(slept: list[float]) -> None:
    answers = [httpx2.Response(409, json=BUSY, headers={"Retry-After": "2"}) for _ in range(3)]
    answers.append(httpx2.Response(202, json={"cluster": {"id": "cluster_1"}}))
    keys, told = set(), list[str]()

    def answer(request: httpx2.Request) -> httpx2.Response:
        keys.add(request.headers["Idempotency-Key"])
        return answers.pop(0)

    with client(answer) as api:
        assert api.create_cluster({}, tell=told.append)["id"] == "cluster_1"
    assert slept == [2, 2, 2] and len(keys) == 4
    assert [line.partition("challenged")[0] for line in told] == ["  a does not fit: its card is being "]


def test_a_card_that_stays_away_is_waited_for_so_long_and_no_longer_and_what_is_not_soon_not_at_all(
    slept: list[float],
) -> None:
    headers = {"Retry-After": "60"}
    busy = client(lambda request: httpx2.Response(409, json=BUSY, headers=headers))
    with busy as api, pytest.raises(ApiProblem, match="being challenged"):
        api.create_cluster({}, patience_s=25)
    assert slept == [10, 10, 5]
    with client(lambda request: httpx2.Response(409, json=BUSY)) as api, pytest.raises(ApiProblem):
        api.create_cluster({})
    assert slept == [10, 10, 5]


def test_server_sent_events_are_read_with_id_and_name() -> None:
    text = ': hello\n\nid: 7\nevent: rows\ndata: {"a":1}\n\n'
    answer = httpx2.Response(200, content=text.encode(), headers={"Content-Type": "text/event-stream"})
    with client(lambda request: answer) as api:
        assert list(api.events("/fleet/stream")) == [("7", "rows", {"a": 1})]


def test_a_wait_ends_at_its_deadline() -> None:
    with client(lambda request: httpx2.Response(200, json={"phase": "Queued", "version": 1})) as api:
        with pytest.raises(WaitTimedOut) as caught:
            api.wait_cluster("cluster_1", lambda c: False, timeout_s=0)
        assert exit_code(caught.value) == 124


def test_a_wait_follows_the_stream_and_looks_again_where_it_breaks() -> None:
    phases = ["Creating", "Running"]
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path.rsplit("/", 1)[-1])
        if asked[-1] == "stream" and len(phases) == 2:
            phases.pop(0)
            raise httpx2.ReadTimeout("silent", request=request)
        if asked[-1] == "stream":
            return httpx2.Response(200, content=b': quiet\n\nevent: cluster\ndata: {"phase":"Deleted","version":3}\n\n')
        return httpx2.Response(200, json={"phase": phases[0], "version": 3 - len(phases)})

    seen: list[str] = []
    with client(answer) as api:
        api.wait_cluster("cluster_1", lambda c: c["phase"] == "Deleted", 30, lambda c: seen.append(c["phase"]))

    assert asked == ["cluster_1", "stream", "cluster_1", "stream"]
    assert seen == ["Creating", "Running", "Deleted"]


@pytest.mark.parametrize(
    ("phase", "workloads"),
    [
        ("Running", []),
        ("Finished", []),
        ("Creating", [{"rank": 0, "phase": "preparing"}, {"rank": 1, "phase": "running"}]),
        ("Creating", [{"rank": 1, "phase": "exited"}]),
    ],
)
def test_a_log_is_followed_from_the_moment_at_which_its_member_has_begun(phase: str, workloads: list[object]) -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path.rsplit("/", 1)[-1])
        if asked[-1] == "stream":
            state = {"phase": phase, "version": 2, "workloads": workloads}
            return httpx2.Response(200, text=f"event: cluster\ndata: {json.dumps(state)}\n\n")
        early = {"phase": "Creating", "version": 1, "workloads": [{"rank": 1, "phase": "preparing"}]}
        return httpx2.Response(200, content=b"epoch 1\n") if asked[-1] == "logs" else httpx2.Response(200, json=early)

    with client(answer) as api:
        assert b"".join(api.logs("cluster_1", follow=True, rank=1)) == b"epoch 1\n"
    assert asked == ["cluster_1", "stream", "logs"]


def test_the_nearest_data_directory_upward_names_the_master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WINDROW_URL", "WINDROW_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    below = tmp_path / "project" / "deep"
    below.mkdir(parents=True)
    with pytest.raises(NoMaster):
        find(start=below)
    (tmp_path / "project" / ".windrow").mkdir()
    record = {"url": "http://127.0.0.1:8000", "token": "t"}
    file = tmp_path / "project" / ".windrow" / "cli.json"
    file.write_text(json.dumps(record))
    file.chmod(0o600)
    assert find(start=below).url == "http://127.0.0.1:8000"

    file.write_text(json.dumps({**record, "local_url": "https://127.0.0.1:8443", "ca_pem": "/data/identity/ca.pem"}))
    found = find(start=below)
    assert (found.url, found.ca_file) == ("https://127.0.0.1:8443", "/data/identity/ca.pem")


def test_a_login_is_readable_by_its_owner_alone_and_never_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    config = Config("https://m", "wr_secret")
    assert save(config).stat().st_mode & 0o777 == 0o600
    assert "wr_secret" not in repr(config)


def test_names_from_strangers_cannot_steer_the_terminal() -> None:
    assert plain("a\x1b[31mb\n\u202ec") == "a\ufffd[31mb\ufffd\ufffdc"


def test_a_plain_url_reads_no_authorities_and_trusts_nobody_all_the_same() -> None:
    plain_, secured = _trust(Config("http://master", "t")), _trust(Config("https://master", "t"))
    assert plain_.get_ca_certs() == []
    for one in (plain_, secured):
        assert (one.verify_mode, one.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_the_masters_own_authority_is_the_only_one_that_is_trusted(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(make_ca().certificate_pem)
    trusted = _trust(Config("https://master", "t", str(tmp_path / "ca.pem")))
    assert len(trusted.get_ca_certs()) == 1 and trusted.verify_mode is ssl.CERT_REQUIRED


def test_a_master_that_is_known_by_its_own_authority_is_asked_for_its_own_certificate(tmp_path: Path) -> None:
    (tmp_path / "own.pem").write_bytes(Authority.make(tmp_path / "identity", time.time_ns()).root_pem)
    (tmp_path / "other.pem").write_bytes(make_ca().certificate_pem)
    own, other = (_trust(Config("https://master", "t", str(tmp_path / name))) for name in ("own.pem", "other.pem"))
    assert (is_own(own), is_own(other)) == (True, False)
    ways = [tunnel_request._secure("market.example", 443, str(tmp_path / name)) for name in ("own.pem", "other.pem")]
    assert [type(way).__name__ for way in ways] == ["_ByOwnName", "HTTPSConnection"]
    request = httpx2.Request("GET", "https://market.example", extensions={"timeout": {}})
    _ask_by_own_name(request)
    assert request.extensions == {"timeout": {}, "sni_hostname": SERVER_NAMES["master"]}
