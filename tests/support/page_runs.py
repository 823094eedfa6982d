"""Runs the commands and programs of a page as printed, one after another, in a folder of its own on a real market.

A reader has a folder with files, keys and a market. What a page takes for granted beside that stands in PAGES; what
cannot run on this machine stands in ELSEWHERE, with the reason and the test that runs it.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support import warm_windrow
from tests.support.pages import Step, steps
from tests.support.rental import Renter
from tests.support.stack import WINDROW
from tests.support.wheels import wheel
from tests.waiting import PATIENCE_S

STEP_S: Final = 240
HELD: Final = re.compile(r"^windrow cluster forward ")
"""Commands that go on until Ctrl-C: they have worked once they say where to go."""
SOON: Final = re.compile(r"^windrow (checkpoint|volume) save ")
"""Commands for which a program has to have done something first: a reader who is too early types them again."""
CARD: Final = re.compile(r"--gpu ")
IMAGE: Final = re.compile(r"--image ")
TRAIN: Final = """\
import os, time
with open("model.bin", "wb") as file:
    file.write(b"trained")
if "WINDROW_VOLUME_DATA" in os.environ:
    with open(os.path.join(os.environ["WINDROW_VOLUME_DATA"], "rows"), "w") as file:
        file.write("1 2 3")
    time.sleep(600)
print("trained")
"""
EVALUATE: Final = "import os\nprint(os.listdir(os.environ['WINDROW_VOLUME_DATA']))\n"
RECORD: Final = {"resource_id": "lab-a100-01", "resource_type": "on-premise", "capabilities": {"gpu": True}}
INTENT: Final = {"task_name": "Training", "compute_preference": "cloud", "constraints": {"required_gpu_count": 8}}
PRINTED_URL: Final = "http://localhost:8000"
"""As `windrow up` listens on a machine where nobody else does."""
PRINTED_HOST: Final = "rack-7"
"""For which this market's own host stands."""
WORK: Final = """\
import os, time

def add(a, b):
    return a + b

LOADED = str(time.monotonic_ns())

def loads_once(_):
    return len(LOADED) > 0
"""


@dataclass(frozen=True, slots=True)
class Page:
    """What a page takes for granted. files: of its folder; before: commands that the reader has run;
    program: the file that the page's Python goes to.

    is_quick: `make test` runs it, too, but for what needs a card or an image.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    program: str = "example.py"
    is_quick: bool = False


PAGES: Final[Mapping[str, Page]] = {
    "README.md": Page(),
    "sdk/README.md": Page(is_quick=True),
    "docs/artefacts.md": Page(
        {"model.bin": "weights", "out.tar": "results"},
        ("windrow cluster create --name my-cluster -- sleep 600",),
        is_quick=True,
    ),
    "docs/machines.md": Page(),
    "docs/checkpoints.md": Page(program="train.py"),
    "docs/files.md": Page({"train.py": TRAIN}),
    "docs/functions.md": Page({"work.py": WORK}, is_quick=True),
    "docs/images.md": Page({"login.txt": "somebody:secret\n"}),
    "docs/jobs.md": Page({"train.py": TRAIN, "requirements.txt": "./tiny_thing-1.0-py3-none-any.whl\n"}),
    "docs/operating.md": Page(),
    "docs/prices.md": Page(is_quick=True),
    "docs/resources.md": Page({"lab-a100-01.json": json.dumps(RECORD)}, is_quick=True),
    "docs/routing.md": Page({"train.py": TRAIN, "task.json": json.dumps(INTENT)}, is_quick=True),
    "docs/secrets.md": Page({"token.txt": "hf_of-the-page", "key.bin": "key"}, is_quick=True),
    "docs/usage.md": Page(is_quick=True),
    "docs/volumes.md": Page({"train.py": TRAIN, "evaluate.py": EVALUATE}),
}
ELSEWHERE: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = tuple(
    (re.compile(pattern), reason, shown)
    for pattern, reason, shown in (
        (
            r"^(README|docs/start)\.md: make ",
            "runs from the checkout and starts a market of its own",
            "integration/test_up.py",
        ),
        (r"^docs/machines\.md: sh deploy/images", "fetches Debian's packages as root", "integration/test_boxes.py"),
        (r"^docs/clusters-over-hosts\.md: ", "needs hosts with Ray, Dask and PyTorch", "integration/test_engines.py"),
        (r"^docs/images\.md: .*(@sha256|registry\.example)", "needs a registry", "integration/test_images.py"),
        (r"^docs/images\.md: .*vllm", "needs an image of 20 GB and a real GPU", "contract/test_runtimes_containers.py"),
        (r"^docs/clouds\.md: ", "needs an account at a cloud", "unit/sdk/test_clouds_page.py"),
        (r"^docs/join-a-host\.md: curl ", "needs a second machine", "integration/test_onboarding.py"),
        (r"^docs/postgresql\.md: ", "needs a server of PostgreSQL", "integration/test_leader.py"),
        (r"^docs/regions\.md: windrow-access ", "needs a machine in another region", "integration/test_regions.py"),
    )
)


def reason_elsewhere(step: Step) -> str:
    """Returns the reason for which this step cannot run here; empty: it can."""
    told = f"{step.page}: {step.text}"
    return next((reason for pattern, reason, _ in ELSEWHERE if pattern.search(told)), "")


class Reader:
    """Somebody who reads a page and types what it says. has_all: cards and images are at hand."""

    def __init__(self, renter: Renter, folder: Path, *, has_all: bool, agent: Mapping[str, str] | None = None) -> None:
        self.renter, self.has_all = renter, has_all
        self.folder, home = folder / "work", folder / "home"
        self.folder.mkdir()
        home.mkdir(exist_ok=True)
        cli = renter.stack.cli
        self.environment = os.environ | {
            "PATH": os.pathsep.join((str(Path(WINDROW).parent), os.environ["PATH"])),
            "HOME": str(home),
            "WINDROW_URL": cli["url"],
            "WINDROW_TOKEN": cli["token"],
            "WINDROW_DATA_DIR": str(renter.stack.data_dir),
            "XDG_STATE_HOME": str(home / "state"),
            **(agent or {}),
        }

    def read(self, page: str) -> list[str]:
        """Run what the page says; returns the steps that ran. Raises AssertionError with what one says that fails."""
        prepared = PAGES[page]
        for name, text in prepared.files.items():
            (self.folder / name).write_text(text)
        if "requirements.txt" in prepared.files:
            wheel(self.folder)
        for line in prepared.before:
            self._type(Step(page, 0, "sh", line))
        done = []
        for step in steps(page):
            if reason_elsewhere(step) or (not self.has_all and (CARD.search(step.text) or IMAGE.search(step.text))):
                continue
            self._type(step) if step.language == "sh" else self._program(step)
            done.append(str(step))
        return done

    def _type(self, step: Step) -> None:
        if HELD.match(step.text):
            self._hold(step)
            return
        text = step.text.replace(PRINTED_URL, self.environment["WINDROW_URL"])
        if PRINTED_HOST in text:
            text = text.replace(PRINTED_HOST, self.renter.all("/hosts")[0]["name"])
        words = ["sh", "-c", text]
        done = self._run(words)
        ends = time.monotonic() + PATIENCE_S
        while done.returncode and SOON.match(step.text) and time.monotonic() < ends:
            time.sleep(1)
            done = self._run(words)
        assert done.returncode == 0, f"{step}\nended with {done.returncode}:\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, f"{step}\n{done.stderr}"

    def _program(self, step: Step) -> None:
        path = self.folder / PAGES[step.page].program
        path.write_text(step.text)
        done = self._run([sys.executable, path.name])
        assert done.returncode == 0, f"{step}\n{done.stderr}"
        said = iter(done.stdout.splitlines())
        assert all(line in said for line in step.printed), f"{step}\nprinted otherwise:\n{done.stdout}"

    def _run(self, words: list[str]) -> "subprocess.CompletedProcess[str]":
        own = self.environment | {"PATH": os.pathsep.join((str(warm_windrow.folder()), self.environment["PATH"]))}
        return subprocess.run(
            words, cwd=self.folder, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=STEP_S, check=False,
        )  # fmt: skip

    def _hold(self, step: Step) -> None:
        """Run it until it says that it is there, then as Ctrl-C does."""
        words = ["sh", "-c", f"exec {step.text}"]
        with subprocess.Popen(
            words, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            said = process.stderr.readline()
            process.send_signal(signal.SIGINT)
            said += process.stderr.read()
            code = process.wait(PATIENCE_S)
        assert code == 0 and "Ctrl-C ends it" in said, f"{step}\nended with {code}:\n{said}"

    def leave(self) -> None:
        """End and remove what the page has made, so that the market is as it was."""
        with self.renter.stack.client() as api:
            for job in list(api.items("/jobs")):
                if job["ended_at"] is None:
                    api.request("POST", f"/jobs/{job['id']}/cancel")
        for cluster in self.renter.all("/clusters"):
            if cluster["phase"] not in ("Deleted", "Finished", "Failed"):
                self.renter.delete(cluster["id"])
        with self.renter.stack.client() as api:
            for secret in list(api.secrets()):
                api.delete_secret(secret["name"])
            for volume in list(api.items("/volumes")):
                api.delete_volume(volume["name"])
            for artefact in list(api.items("/artefacts")):
                if artefact["owner_kind"] == "account":
                    api.delete_artefact("account", artefact["owner_id"], artefact["name"])
