"""`identity`: an authorised GET with 10,000 users and 100,000 shares. Goal: at most 1.3 times one account's.

Two shipped Masters on SQLite with their defaults, asked in turn over one connection each: one holds its first account
and a neighbour that shares 100 clusters with it, the other those shares among all the others, with users,
organisations, projects and tokens.
"""

import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Table, insert

from bench._report import last_line, median, percentile, scale, table
from bench.api import Getter
from tests.support.stack import wait_for
from windrow_master.app import wiring
from windrow_master.identity.tables import (
    accounts,
    api_tokens,
    object_shares,
    organisation_members,
    organisations,
    project_members,
    users,
)
from windrow_master.store.unit import UnitOfWork
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.data_directory import CliFile

USERS, SHARES = 10_000, 100_000
MEMBERS = 10
"""Users of one organisation; each has one project."""
SHARED = range(0, SHARES, 1_000)
"""The shares with the first account."""
ONE = f"cluster_{0:032x}"
"""A cluster that is shared with it, and is gone: its shares are read before that is said."""
PATHS = ("/me", "/clusters", "/projects", "/shares", "/shares/received", f"/clusters/{ONE}")
ASKED, ASKED_MIN = 400, 60
WARM = 10
PAUSE_S = 0.02
GOAL = 1.3
STOP_S = 30.0


def add_people(uow: UnitOfWork, first: str, users_count: int, shared: Sequence[int]) -> None:
    """Add so many users and these shares. first: the id of the first account, in which every hundredth user works as
    well."""
    now_ns, homes = uow.now_wall_ns, range(users_count // MEMBERS)

    def put(into: Table, rows: list[dict[str, Any]]) -> None:
        uow.connection.execute(insert(into), rows)

    put(organisations, [{"id": f"organisation_b{n}", "name": f"b{n}", "created_at_ns": now_ns} for n in homes])
    project = {"roles": ["renter", "viewer"], "created_at_ns": now_ns}
    ids = [{"id": f"account_b{n}", "name": f"b{n}", "organisation_id": f"organisation_b{n}"} for n in homes]
    put(accounts, [{**one, **project} for one in ids])
    people = [{"id": f"user_b{n}", "name": f"user {n}", "address": f"u{n}@b.test"} for n in range(users_count)]
    put(users, [{**one, "address_key": one["address"], "roles": [], "created_at_ns": now_ns} for one in people])
    homes_of = [(n // MEMBERS, f"user_b{n}") for n in range(users_count)]
    put(organisation_members, [{"organisation_id": f"organisation_b{n}", "user_id": user} for n, user in homes_of])
    roles = {"roles": ["renter"]}
    theirs = [{"account_id": f"account_b{n}", "user_id": user, **roles} for n, user in homes_of]
    put(
        project_members,
        theirs + [{"account_id": first, "user_id": f"user_b{n}", **roles} for n in range(0, users_count, 100)],
    )
    kept = {"name": "bench", "created_at_ns": now_ns, "expires_at_ns": 2 * now_ns, "is_sign_in": False, **roles}
    tokens = [{"id": f"token_b{n}", **one, **kept, "sha256": _sha256(n)} for n, one in enumerate(theirs)]
    put(api_tokens, tokens)
    put(object_shares, [_share(n, first, n % len(homes), now_ns) for n in shared])


def _sha256(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def _share(number: int, first: str, owner: int, now_ns: int) -> dict[str, Any]:
    """A cluster of one of the others, shared with a user or with the first account."""
    receiver = ("project", first) if number in SHARED else ("user", f"user_b{number * 7 % USERS}")
    return {
        "id": f"share_{number:032x}",
        "object_kind": "cluster",
        "object_id": f"cluster_{number:032x}",
        "object_name": f"b{number}",
        "account_id": f"account_b{owner}",
        "receiver_kind": receiver[0],
        "receiver_id": receiver[1],
        "level": "see",
        "made_by": f"user_b{owner * MEMBERS}",
        "made_at_ns": now_ns,
    }


def furnish(data: Path, *, is_full: bool) -> None:
    """A market's data directory."""
    opened = wiring.build(data, SystemClock(), SystemRng())
    try:
        first = opened.identity.first_account().id
        given = (USERS, range(SHARES)) if is_full else (MEMBERS, SHARED)
        opened.store.write_now(lambda uow: add_people(uow, first, *given), name="bench")
    finally:
        opened.close()


@contextmanager
def master(data: Path) -> Iterator[Getter]:
    """A Master on it, and a connection of its first user."""
    ports = [word for name in ("http", "https", "trunk", "health") for word in (f"--{name}-port", "0")]
    with (data.parent / f"{data.name}.log").open("wb") as log:
        command = [sys.executable, "-m", "windrow_master", "--data-dir", str(data), *ports]
        process = subprocess.Popen(command, stderr=log)
        try:
            record = wait_for(lambda: CliFile(data / "cli.json").read())
            wait_for(lambda: Getter(record["url"], record["token"]).timed("/api/v1/me"))
            yield Getter(record["url"], record["token"])
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main() -> None:
    """Measure, print, end."""
    count = max(ASKED_MIN, round(ASKED * scale()))
    times: dict[str, dict[str, list[float]]] = {path: {"full": [], "one": []} for path in PATHS}
    with tempfile.TemporaryDirectory(prefix="windrow-identity-") as name, ExitStack() as stack:
        folder = Path(name)
        for kind in ("one", "full"):
            furnish(folder / kind, is_full=kind == "full")
        asked = {kind: stack.enter_context(master(folder / kind)) for kind in ("one", "full")}
        for number in range(WARM + count):
            for path in PATHS:
                for kind, getter in asked.items():
                    took_ms, _ = getter.timed(f"/api/v1{path}", also=404)
                    if number >= WARM:
                        times[path][kind].append(took_ms)
                time.sleep(PAUSE_S)
    ratios = {path: median(found["full"]) / median(found["one"]) for path, found in times.items()}
    worst = max(ratios, key=lambda path: ratios[path])
    rows = [
        (f"GET {path}, {kind}", f"{median(found[kind]):.2f} ms (p90 {percentile(found[kind], 0.9):.2f})")
        for path, found in times.items()
        for kind in ("full", "one")
    ]
    table([("users", USERS), ("shares", f"{SHARES:,}"), *rows, ("ratio", f"{ratios[worst]:.2f} of GET {worst}")])
    detail = {"goal": GOAL, "users": USERS, "shares": SHARES, "asked": count}
    detail |= {f"ratio_{path.strip('/').replace(ONE, 'one')}": round(ratio, 3) for path, ratio in ratios.items()}
    last_line("identity", median(times[worst]["full"]), "ms", "the same of one account", ratios[worst], detail)


if __name__ == "__main__":
    main()
