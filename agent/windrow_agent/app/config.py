"""Configuration of one agent process: built once from arguments and environment, validated whole, printable.

The only module of this process that reads the environment. Secrets come by file or standard input, never as arguments.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from windrow_agent.core.discovery import Place, parse_place
from windrow_agent.core.layout import Layouts, parse_layouts
from windrow_agent.core.sharing import Shares, parse_shares
from windrow_agent.core.speedtest import check_mini
from windrow_agent.link.bandwidth_budget import CEILING_MBIT_S_MAX, DAY_MIB, DAY_MIB_MAX, DAY_MIB_MIN, LineLimits
from windrow_agent.runtimes.docker import DEFAULT_URL
from windrow_proto.errors import InvalidInput
from windrow_proto.units import MIB
from windrow_proto.version import VERSION

RUNTIMES: Final = ("docker", "process")
SIMULATED_MAX: Final = 2000
"""Simulated hosts in one process; each has a connection and two directories of its own."""
SAMPLE_EVERY_S_MAX: Final = 60
SEEDS_MAX: Final = 4
"""The most places that an agent asks for the address of an Access; each may cost its deadline."""
TOKEN_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Config:
    """One command of `windrow-agent`. token_file `-` is standard input."""

    command: str
    data_dir: Path
    docker_url: str = DEFAULT_URL
    registries: tuple[str, ...] = ()
    """The only ones that images are pulled from; empty: any public one."""
    runtimes: tuple[str, ...] = RUNTIMES
    is_bubblewrap_wanted: bool = True
    shown: tuple[Path, ...] = ()
    """Folders of this host that process workloads may read, beside its programs."""
    master_url: str = ""
    token_file: str = ""
    name: str = ""
    count: int = 0
    seed: int = 1
    sample_every_s: int = 1
    """Of simulated hosts: the least seconds between two samples."""
    has_faults: bool = False
    """True if a few of the simulated hosts break."""
    is_sure: bool = False
    is_json_wanted: bool = False
    is_speed_wanted: bool = False
    is_removal: bool = False
    metrics_port: int | None = None
    """Of /metrics on 127.0.0.1; None: not served."""
    layouts: Layouts = field(default_factory=dict)
    """The slices that cards may be partitioned into when the Master asks; empty: every card stays whole."""
    shares: Shares = field(default_factory=dict)
    """The parts in which cards are shared by MPS among programs of their owner; empty: none is."""
    line: LineLimits = field(default_factory=LineLimits)
    """Limits of measurements of the line."""
    seeds: tuple[Place, ...] = ()
    """Places asked for the address of an Access when none on the map answers; empty: those that `join` got."""
    speed_paths: tuple[str, ...] = ()
    """Targets of speedtest-cli, in order: the address of an Access's mini server; empty text: the internet."""


def default_data_dir() -> Path:
    """The folder of an agent's state when none is given: the system's place for root, the user's own for others."""
    if os.geteuid() == 0:
        return Path("/var/lib/windrow-agent")
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "share") / "windrow-agent"


def parse(arguments: Sequence[str]) -> Config:
    """Read and check the command line; exits with a usage message as argparse does. Raises InvalidInput."""
    found = command_line().parse_args(arguments)
    runtimes = tuple(name for name in (getattr(found, "runtimes", "") or "").split(",") if name)
    unknown = set(runtimes) - set(RUNTIMES)
    if unknown:
        raise InvalidInput(f"There is no runtime {', '.join(sorted(unknown))}; there are {', '.join(RUNTIMES)}.")
    count = getattr(found, "count", 0)
    if found.command == "simulate" and not 1 <= count <= SIMULATED_MAX:
        raise InvalidInput(f"--count must be 1 to {SIMULATED_MAX}.")
    sample_every_s = getattr(found, "sample_every", 1)
    if not 1 <= sample_every_s <= SAMPLE_EVERY_S_MAX:
        raise InvalidInput(f"--sample-every must be 1 to {SAMPLE_EVERY_S_MAX} seconds.")
    seeds = tuple(dict.fromkeys(parse_place(text) for text in getattr(found, "access", None) or ()))
    if len(seeds) > SEEDS_MAX:
        raise InvalidInput(f"--access may be given {SEEDS_MAX} times at most.")
    return Config(
        command=found.command,
        data_dir=(found.data_dir or default_data_dir()).absolute(),
        docker_url=os.environ.get("DOCKER_HOST") or DEFAULT_URL,
        registries=tuple(name for name in (getattr(found, "registries", "") or "").split(",") if name),
        runtimes=runtimes or RUNTIMES,
        is_bubblewrap_wanted=not getattr(found, "no_bubblewrap", False),
        shown=_shown(getattr(found, "show", None) or ()),
        master_url=getattr(found, "master_url", "") or "",
        token_file=getattr(found, "token_file", "") or "",
        name=getattr(found, "name", "") or "",
        count=count,
        seed=getattr(found, "seed", 1),
        sample_every_s=sample_every_s,
        has_faults=getattr(found, "faults", False),
        is_sure=getattr(found, "yes", False),
        is_json_wanted=getattr(found, "json", False),
        is_speed_wanted=getattr(found, "bandwidth", False),
        is_removal=getattr(found, "remove", False),
        metrics_port=getattr(found, "metrics_port", None),
        seeds=seeds,
        speed_paths=_speed_paths(found),
        layouts=parse_layouts(getattr(found, "mig", None) or ()),
        shares=parse_shares(getattr(found, "mps", None) or ()),
        line=_line(found),
    )


def _speed_paths(found: argparse.Namespace) -> tuple[str, ...]:
    minis = tuple(check_mini(url) for url in (getattr(found, "mini", None),) if url is not None)
    return (*minis, "") if not minis or found.internet else minis


def without_proxies() -> dict[str, str]:
    """This process's environment for a child that is told its own proxy."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def _shown(folders: Sequence[Path]) -> tuple[Path, ...]:
    for folder in folders:
        if not folder.is_absolute() or folder == Path("/") or not folder.is_dir():
            raise InvalidInput(f"--show takes a folder of this host by its whole path, and not {str(folder)!r}.")
    return tuple(folders)


def _line(found: argparse.Namespace) -> LineLimits:
    ceiling, budget = getattr(found, "measure_ceiling", None), getattr(found, "measure_budget", DAY_MIB)
    if ceiling is not None and not 1 <= ceiling <= CEILING_MBIT_S_MAX:
        raise InvalidInput(f"--measure-ceiling must be 1 to {CEILING_MBIT_S_MAX} Mbit/s.")
    if not DAY_MIB_MIN <= budget <= DAY_MIB_MAX:
        raise InvalidInput(f"--measure-budget must be {DAY_MIB_MIN} to {DAY_MIB_MAX} MiB a day.")
    return LineLimits((ceiling or 0) * 1_000_000, budget * MIB)


def read_token(token_file: str) -> str:
    """The text of a token file, or of standard input for `-`. Raises InvalidInput with the reason."""
    try:
        if token_file == "-":
            text = sys.stdin.read(TOKEN_BYTES_MAX)
        else:
            with open(token_file, encoding="ascii") as file:
                text = file.read(TOKEN_BYTES_MAX)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The join token in {token_file!r} cannot be read: {error}") from error
    if not text.strip():
        raise InvalidInput(f"There is no join token in {token_file!r}.")
    return text


def _add_run(run: argparse.ArgumentParser) -> None:
    """Settings of a host that its owner may change."""
    run.add_argument("--runtimes", help="runtimes that may be used: docker,process (default both)")
    run.add_argument(
        "--registries", help="registries that images may come from, separated by commas; `default`: the daemon's own"
    )
    text = "run processes without a sandbox, with all rights of the agent's user (default: in bubblewrap or not at all)"
    run.add_argument("--no-bubblewrap", action="store_true", help=text)
    text = "let process workloads read this folder of the host, beside /usr and /opt; may be given several times"
    run.add_argument("--show", action="append", type=Path, metavar="FOLDER", help=text)
    run.add_argument("--metrics-port", type=int, help="serve /metrics on this port of 127.0.0.1")
    text = "let the Master cut this card (UUID, index or `all`) into these slices while it is idle (default: never)"
    run.add_argument("--mig", action="append", metavar="CARD=PROFILE,...", help=text)
    text = "share this card (UUID, index or `all`) by MPS in such parts among your own programs, instead of as a whole"
    run.add_argument("--mps", action="append", metavar="CARD=PERCENT,...", help=text)
    text = "measure this line no faster than so, each way; nothing above it is told (default: no ceiling)"
    run.add_argument("--measure-ceiling", type=int, metavar="MBIT_S", help=text)
    text = f"let measurements of this line move so much a day, both ways together (default {DAY_MIB})"
    run.add_argument("--measure-budget", type=int, default=DAY_MIB, metavar="MIB", help=text)


def _add_simulate(simulate: argparse.ArgumentParser) -> None:
    simulate.add_argument("--count", type=int, required=True)
    simulate.add_argument(
        "--master",
        dest="master_url",
        default="",
        help="https://host:port of the Master, for hosts that have not joined yet",
    )
    simulate.add_argument(
        "--token-file", "--join-token-file", dest="token_file", default="", help="file with one join token per line"
    )
    simulate.add_argument("--name", default="simulated", help="the name of these hosts, before their number")
    simulate.add_argument("--seed", type=int, default=1, help="seed of the random simulated hosts")
    simulate.add_argument(
        "--faults", action="store_true", help="a few of these hosts break: a GPU is lost, one is hot, a disk is full"
    )
    simulate.add_argument(
        "--sample-every",
        type=int,
        default=1,
        metavar="S",
        help="seconds between two samples, at least",
    )


def command_line() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    text = "Offer this machine on a Windrow market."
    parser = argparse.ArgumentParser(prog="windrow-agent", description=text, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        made.add_argument("--data-dir", type=Path, help=f"where state is kept (default {default_data_dir()})")
        return made

    def looks(made: argparse.ArgumentParser, text: str) -> None:
        made.add_argument("--access", action="append", metavar="dns:DOMAIN|https://HOST", help=text)

    run = command("run", "Serve this host until a signal.")
    _add_run(run)
    looks(run, "look for a relay there while none of the known ones answers (default: what join was told)")
    join = command("join", "Make this host a member: keys are made here, the Master signs a certificate.")
    join.add_argument("master_url", help="https://host:port of the Master")
    join.add_argument("--token-file", required=True, help="file with the join token; - reads standard input")
    join.add_argument("--name", help="what to call this host (default its own name)")
    looks(join, "kept for `run`: where to look for a relay while none of the known ones answers")
    simulate = command("simulate", "Run hosts that do not exist, marked as simulated everywhere.")
    _add_simulate(simulate)
    looks(simulate, "look for a relay there while none of the known ones answers")
    end = command("end", "End every workload of this host while no agent runs, with its final receipts.")
    end.add_argument("--runtimes", help=argparse.SUPPRESS)
    fence = command("fence", "As root, at each boot: keep containers of workloads away from this host's network.")
    fence.add_argument("--remove", action="store_true", help="remove the rules and the containers' network")
    doctor = command("doctor", "Look for what is wrong with this host and say what to do about it.")
    doctor.add_argument("--json", action="store_true", help="print the findings as a JSON array")
    doctor.add_argument("--bandwidth", action="store_true", help="also measure the bandwidth, with at most 512 MiB")
    speed = command("speedtest", "Measure the line with speedtest-cli, an extra, and print what it says.")
    speed.add_argument(
        "--mini", metavar="http://HOST:PORT", help="measure to a relay's mini server, not to the internet"
    )
    speed.add_argument("--internet", action="store_true", help="with --mini: measure to the internet as well")
    speed.add_argument("--json", action="store_true", help="print the results as a JSON array")
    uninstall = command("uninstall", "End all workloads and delete all that this agent keeps.")
    uninstall.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    return parser
