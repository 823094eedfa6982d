"""The HTTP API under garbage: whatever the OpenAPI description allows or forbids, no answer is a failure of ours.

Short here; `make torture` makes twenty thousand requests (CASES=n for another number).
"""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zlib import crc32

import hypothesis
import pytest
import requests
import schemathesis
import structlog
from hypothesis import HealthCheck, Phase, settings
from schemathesis import GenerationMode
from starlette.testclient import TestClient

from tests.master_support import ManualClock, SeededRng
from windrow_master.api.app import build_app, description
from windrow_master.app import wiring
from windrow_master.store.executors import InlineExecutor
from windrow_proto.disk_memory import MemoryDisk

CASES = int(os.environ.get("CASES") or ("20000" if os.environ.get("TORTURE") else "25"))
PATHS = os.environ.get("PATHS", "")
"""Only the operations whose path begins so; empty: all."""
ROLES = ("renter", "provider", "auditor")
"""Besides the first user, who has every role."""
STREAMS = ("/stream", "/logs", "/exec")
"""Paths that go on for ever, or wait for a host: their own tests ask them garbage."""


@contextmanager
def served(folder: Path) -> Iterator[tuple[TestClient, dict[str, str]]]:
    # Thousands of requests are not told one by one; the fixture of all tests puts the log back.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    clock, rng = ManualClock(), SeededRng(3)
    static = folder / "static"
    static.mkdir()
    opened = wiring.build(folder / "data", clock, rng, disk=MemoryDisk(), make_executor=InlineExecutor)
    try:
        token = opened.services.identity.local_token(opened.services.identity.first_account(), None)
        app = build_app(opened.services, static)
        with TestClient(app, base_url="http://master", raise_server_exceptions=False) as client:
            yield client, {"Authorization": f"Bearer {token}"}
    finally:
        opened.close()


NASTY = (
    "\0",
    "a\r\nX-Injected: 1",
    "\x1b[31mred",
    "../../etc/passwd",
    "%00",
    "%ed%a0%80",
    "9" * 400,
    "-1",
    "1e309",
    "\u202egnp",
    "😀" * 50,
    "' OR 1=1 --",
    "<script>alert(1)</script>",
    "9223372036854775808",
)
BODIES = (
    b"",
    b"null",
    b"[" * 20_000,
    b'{"a":' * 5_000,
    b'{"name": "\\ud800"}',
    b'{"name": "\\u0000"}',
    b'{"gpus": 1e999, "cpus": -9223372036854775809, "argv": ["\\u0000"], "kind": "box"}',
    b'{"gpus": 9223372036854775808, "cpus": 99999999999999999999999, "argv": ["x"], "env": {"A=B": "c"}}',
    b'{"expires_in_s": 99999999999999999999, "name": "x", "roles": ["operator"], "role": "host"}',
    b'{"expires_in_s": 1e308, "name": "x", "roles": ["operator"], "role": "host"}',
    b'{"price_per_hour": "1e9999999"}',
    b'{"price_per_hour": "99999999999999999999999999999"}',
    b"\xff\xfe\x00",
    b"NaN",
    b'{"reason": NaN, "at": Infinity}',
)


def signed_in_as(client: TestClient, owner: dict[str, str], role: str) -> dict[str, str]:
    """The header of a token that has one role."""
    made = client.post("/api/v1/tokens", headers=owner, json={"name": role, "roles": [role]})
    return {"Authorization": f"Bearer {made.raise_for_status().json()['token']}"}


def fills(template: str, value: str) -> str:
    """A path with every parameter replaced."""
    parts = [value if part.startswith("{") else part for part in template.split("/")]
    return "/".join(parts)


def chosen(values: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    """The values that a path is asked: at full length all, else every fifth, by its name another fifth."""
    return values if CASES > 1_000 else values[crc32(path.encode()) % 5 :: 5]


def is_asked(path: str) -> bool:
    """True if an operation answers by itself and at once."""
    return path.startswith(PATHS) and not path.endswith(STREAMS)


def hypothesis_cases(count: int) -> Iterator[tuple[str, Any]]:
    """Each operation of the description with strategies for what it allows and what it forbids; where there are fewer
    cases than these, every fourth one, with one of both in turn: to make a strategy takes half a second."""
    schema = schemathesis.openapi.from_dict(description())
    found: list[Any] = [result.ok() for result in list[Any](schema.get_all_operations())]
    asked = [operation for operation in found if is_asked(operation.path)]
    for number, operation in enumerate(asked):
        for turn, (mode, share) in enumerate(((GenerationMode.POSITIVE, 0.4), (GenerationMode.NEGATIVE, 0.6))):
            if count < 2 * len(asked) and number % 8 != 4 * turn:
                continue
            examples = max(1, round(count * share / len(asked)))
            yield operation.label, (operation.as_strategy(generation_mode=mode), examples)


def requested(case: Any) -> tuple[str, str, dict[str, str], bytes]:
    """Returns the requests that schemathesis would send."""
    kwargs = case.as_transport_kwargs(base_url="http://master")
    known = {
        key: kwargs[key]
        for key in ("method", "url", "headers", "params", "json", "data", "files", "cookies")
        if key in kwargs
    }
    made: Any = requests.Request(**known).prepare()
    body = made.body
    return made.method, made.url, dict(made.headers), body.encode() if isinstance(body, str) else body or b""


def given_cases(strategy: Any, examples: int, ask: Callable[[Any], None]) -> Callable[[], None]:
    """Asks this many examples of a strategy."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=strategy)
    def each(case: Any) -> None:
        ask(case)

    return each


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("role", [None, *(pytest.param(one, marks=pytest.mark.long) for one in ROLES)])
def test_no_request_that_the_description_allows_or_forbids_is_a_failure_of_ours(
    tmp_path: Path, role: str | None
) -> None:
    statuses: Counter[int] = Counter()
    failures: list[str] = []
    paths = description()["paths"]
    with served(tmp_path) as (client, owner):
        signed_in = owner if role is None else signed_in_as(client, owner, role)

        def ask(label: str, case: Any) -> None:
            asked, _, path = label.partition(" ")
            try:
                method, url, headers, body = requested(case)
            except (UnicodeError, ValueError, OSError):
                return  # cannot be put into HTTP at all
            answer = client.request(method, url, headers={**headers, **signed_in}, content=body)
            statuses[answer.status_code] += 1
            is_described = method != asked or str(answer.status_code) in paths[path][asked.lower()]["responses"]
            if answer.status_code >= 500 or not is_described:
                failures.append(
                    f"{label}: {answer.status_code} {method} {url[:300]} {body[:300]!r} {answer.text[:200]}"
                )

        for label, (strategy, examples) in hypothesis_cases(CASES):
            each = given_cases(strategy, examples, partial(ask, label))
            try:
                each()
            except hypothesis.errors.Unsatisfiable:
                continue  # nothing can be wrong about a request without parameters
    print(f"{sum(statuses.values())} requests: {dict(statuses)}")
    assert failures == []
    assert sum(statuses.values()) >= CASES // 3


def test_nasty_paths_queries_headers_and_bodies_are_refused_in_our_own_words(tmp_path: Path) -> None:
    failures: list[str] = []
    with served(tmp_path) as (client, signed_in):
        for path, methods in description()["paths"].items():
            for method, operation in methods.items():
                known = [one["name"] for one in operation["parameters"] if one.get("in") == "query"]
                for value in chosen(NASTY, path) if is_asked(path) else ():
                    url = fills(path, _quoted(value))
                    headers = {**signed_in, "Idempotency-Key": "x" * 300}
                    query = dict.fromkeys(known, value) or {value: value}
                    answer = client.request(method, url, headers=headers, params=query, content=BODIES[0])
                    if answer.status_code >= 500:
                        failures.append(f"{method} {url} {answer.status_code} {answer.text[:200]}")
                    assert "x-injected" not in answer.headers
                for body in chosen(BODIES, path) if is_asked(path) and method in ("post", "put") else ():
                    headers = {**signed_in, "Content-Type": "application/json"}
                    answer = client.request(method, fills(path, "x"), headers=headers, content=body)
                    if answer.status_code >= 500:
                        failures.append(f"{method} {path} {body[:80]!r} {answer.status_code} {answer.text[:200]}")
    assert failures == []


def _quoted(value: str) -> str:
    return quote(value, safe="%")
