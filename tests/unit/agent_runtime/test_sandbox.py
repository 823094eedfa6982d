"""Files that every process workload of a host shares are made once, however many are prepared together."""

import threading
from pathlib import Path

from windrow_agent.runtimes.sandbox import interpreter_folder

ROUNDS, AT_ONCE = 100, 4


def test_workloads_prepared_together_make_one_interpreter_folder(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def make(folder: Path, together: threading.Barrier) -> None:
        together.wait()
        try:
            interpreter_folder(folder)
        except OSError as error:
            failures.append(error)

    for number in range(ROUNDS):
        together = threading.Barrier(AT_ONCE)
        folder = tmp_path / str(number)
        threads = [threading.Thread(target=make, args=(folder, together)) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(path.name for path in folder.iterdir()) == ["python", "python3"]

    assert failures == []
