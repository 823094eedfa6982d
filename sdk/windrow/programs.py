"""A program as text with its requirements: the market chooses where it runs, and has a machine bought if it must.

platform = MLPlatform()
job = platform.submit(code=..., requirements=Requirements(gpu_memory_gb=16, interruptible=True, max_cost_usd=10))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Final, Self

from windrow.client import Client
from windrow.errors import InvalidInput, NoPlace
from windrow.jobs import HERE, Job, Platform

PROGRAM: Final = "program.py"
"""The name under which a program is sent."""
ANY: Final = "any"
"""In place of a backend's name: each that the project may use."""
RETRIES: Final = 3
"""Of work that may be interrupted, where its machine goes without a notice."""
OPTIMIZE: Final = ("balanced", "cost", "speed")
PREFERENCES: Final = ("optimize_for", "allowed_backends")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """The needs of a program.

    gpu_memory_gb: of one GPU, at least, 10**9 bytes; gpu: a model, such as H100. gpu_count: by default 1 where one of
    the two is given, else 0. duration_hours_estimated: without it no progress is known. checkpoint_frequency_minutes:
    how often a newer checkpoint is looked for. interruptible: spot machines are taken first, and its work moves.
    max_cost_usd: it is ended before it costs more.
    """

    gpu_memory_gb: float | None = None
    gpu: str | None = None
    gpu_count: int | None = None
    cpu_count: int = 1
    duration_hours_estimated: float | None = None
    checkpoint_frequency_minutes: float | None = None
    interruptible: bool = False
    max_cost_usd: float | None = None

    @property
    def gpus(self) -> str | None:
        """As `--gpu` takes it; None: no GPU."""
        kind = self.gpu or (f"{self.gpu_memory_gb:g}GB" if self.gpu_memory_gb else None)
        count = (1 if kind else 0) if self.gpu_count is None else self.gpu_count
        if count == 0:
            return None
        return f"{kind}:{count}" if kind else str(count)


class MLPlatform:
    """The market, for programs as text. Use as a context manager, or close it. url, token: of the Master; by default
    the one that is configured here. Raises NoMaster."""

    def __init__(self, url: str | None = None, token: str | None = None, *, client: Client | None = None) -> None:
        self._platform = Platform(url, token, client=client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections; jobs go on."""
        self._platform.close()

    def submit(
        self,
        code: str,
        requirements: Requirements | None = None,
        preferences: Mapping[str, Any] | None = None,
        *,
        name: str = "program",
        packages: Sequence[str] = (),
        image: str | None = None,
    ) -> Job:
        """Submit a Python program. It needs nobody afterwards.

        preferences: `optimize_for`: `cost`, `speed` or `balanced`. `allowed_backends`: where a machine may be bought if
        this market has no room: None: at each backend that the project may use; `["windrow"]`: nowhere. packages:
        installed before it runs. Raises WindrowClientError; no job is left then.
        """
        needs, optimize, backend = requirements or Requirements(), *self._read(preferences or {})
        checkpoints = needs.checkpoint_frequency_minutes
        fields: dict[str, Any] = {
            "name": name,
            "gpu": needs.gpus,
            "cpus": needs.cpu_count,
            "retries": RETRIES if needs.interruptible else 0,
            "checkpoint_every_seconds": None if checkpoints is None else checkpoints * 60,
            "packages": list(packages) or None,
            "image": image,
        }
        cost = None if needs.max_cost_usd is None else str(needs.max_cost_usd)
        with TemporaryDirectory() as folder:
            Path(folder, PROGRAM).write_text(code, encoding="utf-8")
            job = self._sent(folder, fields, optimize, backend, cost, needs)
        return Job(self._platform.client, {"id": job.id, "name": job.name}, needs.duration_hours_estimated)

    def _sent(
        self,
        folder: str,
        fields: dict[str, Any],
        optimize: Any,
        backend: str | None,
        cost: str | None,
        needs: Requirements,
    ) -> Job:
        command, submit = ["python", PROGRAM], self._platform.submit
        if backend is not None:
            fields |= {"backend": backend, "spot": needs.interruptible or None}
            return submit(command, folder, optimize=optimize, max_cost=cost, **fields)
        try:
            return submit(
                command, folder, optimize=optimize, max_cost=cost, hours=needs.duration_hours_estimated, **fields
            )
        except NoPlace:  # it waits for the first place that there is
            return submit(command, folder, budget=cost, **fields)

    def _read(self, preferences: Mapping[str, Any]) -> tuple[str, str | None]:
        """What matters, and the backend where a machine may be bought; None: none."""
        if unknown := preferences.keys() - set(PREFERENCES):
            raise InvalidInput(f"preferences has no {sorted(unknown)[0]!r}; it has {' and '.join(PREFERENCES)}.")
        optimize = preferences.get("optimize_for") or "balanced"
        if optimize not in OPTIMIZE:
            raise InvalidInput(f"optimize_for is one of {', '.join(OPTIMIZE)}.")
        usable = [str(one["name"]) for one in self._platform.client.items("/me/backends")]
        allowed = preferences.get("allowed_backends")
        if allowed is None:
            return optimize, ANY if usable else None
        named = [one for one in allowed if one != HERE]
        if refused := [one for one in named if one not in usable]:
            some = f"it may use {', '.join(usable)}" if usable else "it may use none"
            raise InvalidInput(f"allowed_backends: this project may not use {refused[0]!r}; {some} beside {HERE!r}.")
        if len(named) > 1 and set(named) != set(usable):
            raise InvalidInput("allowed_backends: name one backend, or leave it out for all that the project may use.")
        return optimize, (ANY if len(named) > 1 else named[0]) if named else None
