"""A market whose noisy account is at all its limits at once: another account's rental beside its time alone."""

import http.client
import json
import socket
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from tests.hostile import IS_LONG
from tests.support.rental import Renter, renting
from tests.support.stack import wait_for

SIMULATED = 3
RENTALS = 5 if IS_LONG else 1
TOGETHER = 8
IDLE = 2_010 if IS_LONG else 300
MOST_TIMES, FLOOR_S = 5, 2.0
"""Beside the noise a rental takes at most so many times as long as alone, or as this where that is nothing."""


def call(port: int, token: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """One request of an account on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        payload = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request(method, f"/api/v1{path}", payload, headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


def account(market: Renter, name: str) -> str:
    """A token of a new account, made and opened as people do."""
    made = market.ask("POST", "/accounts", {"name": name, "roles": ["renter"], "credit": "50"})
    secret = made["link"].split("sign-in=")[1]
    token: str = market.ask("POST", "/sign-in", {"secret": secret})["token"]["token"]
    return token


def rental_s(port: int, token: str) -> float:
    """Seconds from the wish for `echo hi`, once a slot is free, until it has run or runs."""
    wish = {"kind": "box", "simulated": True, "argv": ["echo", "hi"]}
    wait_for(lambda: call(port, token, "POST", "/clusters/plan", wish)[1]["fits"], 120)
    began = time.monotonic()
    status, answer = call(port, token, "POST", "/clusters", wish)
    assert status == 202, answer
    cluster_id = answer["cluster"]["id"]
    has_run = ("Running", "Finished")
    wait_for(lambda: call(port, token, "GET", f"/clusters/{cluster_id}")[1]["phase"] in has_run, 60, 0.05)
    took_s = time.monotonic() - began
    assert call(port, token, "DELETE", f"/clusters/{cluster_id}")[0] == 202
    ended = ("Deleted", "Finished")
    wait_for(lambda: call(port, token, "GET", f"/clusters/{cluster_id}")[1]["phase"] in ended, 60, 0.05)
    return took_s


@contextmanager
def noise(port: int, token: str) -> Iterator[dict[str, int]]:
    """Everything one account may hold, and a little more; says how often it was refused."""
    refused: dict[str, int] = {}
    me = call(port, token, "GET", "/me")[1]["account"]["id"]
    with ExitStack() as held:

        def send(name: str, head: str, body: bytes = b"") -> None:
            plain = held.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            text = f"{head} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            plain.sendall(text.encode() + b"Content-Length: 1000000\r\n\r\n" * bool(body) + b"\r\n" * (not body) + body)
            with suppress(TimeoutError):
                plain.settimeout(0.2 if body else 5)
                refused[name] = refused.get(name, 0) + (b" 429 " in plain.recv(64))

        jobs = {"argv": ["true"], "gpus": 8, "gpu_model": "H100", "array_size": 1000, "priority": 100}
        for _ in range(2):
            refused["jobs"] = refused.get("jobs", 0) + (call(port, token, "POST", "/jobs", jobs)[0] == 429)
        for _ in range(101):
            send("streams", f"GET /api/v1/events/stream?subject={me}")
        for number in range(17):
            send("uploads", f"PUT /api/v1/artefacts/account/{me}/a{number}", b"x")
        tokens = {"name": "more", "roles": ["renter"]}
        with ThreadPoolExecutor(TOGETHER) as together:
            asked = together.map(lambda _: call(port, token, "POST", "/tokens", tokens)[0], range(201))
            refused["tokens"] = list(asked).count(429)
        for _ in range(IDLE):
            plain = held.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            plain.sendall(b"GET / HTTP/1.1\r\nX: ")
        yield refused


@pytest.mark.row("F11", "F13", "F15", "F20")
@pytest.mark.slow
@pytest.mark.long
def test_another_accounts_rental_goes_on_beside_a_noisy_one() -> None:
    with renting("--simulate", str(SIMULATED)) as market:
        port = market.stack.cli["ports"]["http"]
        wait_for(lambda: len([one for one in market.all("/hosts") if one["simulated"]]) == SIMULATED)
        noisy, quiet = account(market, "noisy"), account(market, "quiet")

        def timed() -> list[float]:
            return [rental_s(port, quiet) for _ in range(RENTALS)]

        rental_s(port, quiet)
        alone = timed()
        with noise(port, noisy) as refused:
            beside = timed()
            assert market.ask("GET", "/operators/health")["master"]["problems"] == []
            health_port = market.stack.cli["ports"]["health"]
            connection = http.client.HTTPConnection("127.0.0.1", health_port, timeout=10)
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            connection.close()
        medians = statistics.median(alone), statistics.median(beside)
        print(f"a rental alone: {medians[0]:.2f} s, beside the noise: {medians[1]:.2f} s; refused: {refused}")
        assert set(refused) == {"jobs", "streams", "uploads", "tokens"} and all(refused.values())
        assert medians[1] <= MOST_TIMES * max(medians[0], FLOOR_S if not IS_LONG else 0.2)
