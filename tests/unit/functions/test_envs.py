"""Environments of functions: made once by the hash of what they need, on the host, by what is there."""

import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import windrow
from tests.support.worker import Worker, working
from windrow.errors import FunctionError, WorkerRefused
from windrow.remote import loop

pytestmark = pytest.mark.slow


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """A worker whose host reaches no index."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("UV_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    (tmp_path / "worker").mkdir()
    with working(tmp_path / "worker") as found:
        yield found


def wheel(folder: Path) -> str:
    """A package of one file, as a wheel."""
    path = folder / "tiny_thing-1.0-py3-none-any.whl"
    facts = "tiny_thing-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tiny_thing.py", "ANSWER = 42\n")
        file.writestr(f"{facts}/METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n")
        file.writestr(
            f"{facts}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{facts}/RECORD", "")
    return str(path)


def test_an_environment_is_made_once_and_calls_run_in_it(offline: Worker, tmp_path: Path) -> None:
    env = windrow.env(reqs=[wheel(tmp_path)], variables={"COLOUR": "blue"})
    with pytest.raises(ModuleNotFoundError):
        windrow.function(by_value()).to(offline.cluster())()
    there = windrow.function(by_value()).to(offline.cluster(env=env))
    assert there() == (42, "blue")
    told: list[str] = []
    name = loop.finish(offline.session().make_env(list(env.reqs), told.append))
    assert told == []
    assert (offline.place / ".windrow" / "envs" / name / "made").exists()


def by_value() -> Callable[[], tuple[int, str | None]]:
    """The function without a name to be found by, so that no folder of tests is sent."""
    namespace: dict[str, object] = {}
    text = "def answer():\n    import os, tiny_thing\n    return tiny_thing.ANSWER, os.environ.get('COLOUR')\n"
    exec(text, namespace)
    return namespace["answer"]  # type: ignore[return-value]


@pytest.mark.long
def test_without_a_network_the_error_says_so_and_a_second_try_is_a_new_one(offline: Worker) -> None:
    for _ in range(2):
        with pytest.raises(WorkerRefused, match="reaches no package index"):
            loop.finish(offline.session().make_env(["no-such-thing-at-all"], lambda _line: None))


def test_one_requirement_is_still_a_list() -> None:
    with pytest.raises(FunctionError, match=r"reqs=\['numpy'\]"):
        windrow.env(reqs="numpy")
