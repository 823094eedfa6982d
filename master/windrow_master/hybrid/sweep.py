"""The command `windrow-master sweep`: ends what a market bought at a provider, with credentials alone and no database.

It is for a market that is gone: every machine and leftover that carries the market's id is ended.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from windrow_master.hybrid.backends.kinds import KINDS, kind_of
from windrow_master.hybrid.backends.port import Backend, Doubtful, Refused
from windrow_master.hybrid.purchases.sweep import nothing_lives, sweep
from windrow_master.prices.shipped import price_book
from windrow_proto.clock import SystemClock
from windrow_proto.errors import InvalidInput, WindrowError
from windrow_proto.ports import Clock
from windrow_proto.units import SECOND

NAME: Final = "sweep"
AGAIN_NS: Final = 10 * SECOND
EXIT_FAILURE: Final = 1


def command_line() -> argparse.ArgumentParser:
    """Returns the parser of the command."""
    text = "End all that a market bought at a provider. Needs the credentials of that account, and no database."
    parser = argparse.ArgumentParser(prog=f"windrow-master {NAME}", description=text)
    parser.add_argument("--kind", required=True, choices=sorted(KINDS), help="kind of backend")
    parser.add_argument(
        "--market", required=True, metavar="ID", help="id of the market, as `windrow backend show` has it"
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="setting; repeatable")
    parser.add_argument(
        "--secret-file",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="credential in a file; repeatable; default: what the provider's library finds in this environment",
    )
    parser.add_argument("--wait", type=float, default=600.0, metavar="SECONDS", help="until all is gone; default: 600")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Sweep again and again until nothing is left; returns the exit status: 0 only where all is gone."""
    read = command_line().parse_args(list(arguments))
    try:
        settings, files = _pairs("--set", read.set), _pairs("--secret-file", read.secret_file)
        secrets = {name: _content(file) for name, file in files.items()}
        kind = kind_of(read.kind)
        kind.read(settings, secrets)
        clock = SystemClock()
        opened = kind.open(settings, secrets, clock, price_book(None))
        return asyncio.run(until_gone(opened, read.market, read.wait, clock))
    except WindrowError as error:
        print(error.detail, file=sys.stderr)
        return EXIT_FAILURE


async def until_gone(backend: Backend, market_id: str, wait_s: float, clock: Clock) -> int:
    """Sweep until two looks in a row, apart by the provider's list lag, have shown nothing; returns the exit status."""
    clear, apart_ns = 0, max(AGAIN_NS, backend.list_lag_ns)
    ends_ns = clock.monotonic_ns() + int(wait_s * SECOND)
    try:
        while True:
            try:
                left = await _look(backend, market_id)
            except Doubtful as error:
                left = 1
                print(f"The provider does not answer: {error}", file=sys.stderr, flush=True)
            clear = 0 if left else clear + 1
            if clear == 2:
                print("Nothing of this market is left there.", flush=True)
                return 0
            if clock.monotonic_ns() + apart_ns > ends_ns:
                print("Not all is known to be gone. Run it again.", file=sys.stderr)
                return EXIT_FAILURE
            await clock.sleep_ns(AGAIN_NS if left else apart_ns)
    except Refused as error:
        print(f"The provider refuses: {error}", file=sys.stderr)
        return EXIT_FAILURE
    finally:
        await backend.close()


async def _look(backend: Backend, market_id: str) -> int:
    """Ask for the end of all that there is; returns how much of it was not gone yet."""
    done = await sweep(backend, market_id, nothing_lives)
    for words, found in (("ended", done.ended), ("not ended", done.unknown)):
        for one in found:
            print(f"{words}  {one.machine_id}  {one.purchase_id}  {one.said}", flush=True)
    return len(done.ended) + len(done.unknown)


def _pairs(flag: str, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidInput(f"{flag} {name[:40]}: write NAME=VALUE.")
        found[name] = value
    return found


def _content(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from None
