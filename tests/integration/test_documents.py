"""Every command and program of the pages, run as printed, a page in a folder of its own; `make cases` runs all of them.

`make test` runs the pages that take seconds, on the market that other tests use, without what needs a card or an image.
"""

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cases import IS_LONG
from tests.fake_nvml.build import build
from tests.fake_nvml.state import FakeState
from tests.services import need
from tests.support import clean_debian
from tests.support.box_image import box_image, need_box
from tests.support.page_runs import PAGES, Reader
from tests.support.rental import Renter, import_image, renting
from tests.support.stack import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(540)]

CALL_S = 300
PLAYED = [page for page, prepared in PAGES.items() if IS_LONG or prepared.is_quick]


@pytest.mark.proves("the commands and programs of the documents run as printed", by="make cases")
@pytest.mark.case("M-36")
@pytest.mark.parametrize("page", PLAYED)
def test_a_page_runs_as_printed(page: str, reader: Reader) -> None:
    assert reader.read(page) != []


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reader]:
    """Somebody who reads on a market; what they made there is gone afterwards."""
    if IS_LONG:
        renter, keys = request.getfixturevalue("furnished"), request.getfixturevalue("keys")
        found = Reader(renter, tmp_path, has_all=True, agent=keys)
    else:
        found = Reader(request.getfixturevalue("renter"), tmp_path, has_all=False)
    yield found
    found.leave()


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renter]:
    """A market whose host has an H100 (of the fake driver) and the images that the pages name."""
    need("docker")
    need("busybox")
    need("gcc")
    need_box()
    clean_debian.need_debian()
    with ExitStack() as stack:
        images = tmp_path_factory.mktemp("images")
        stack.enter_context(_named("box", stack.enter_context(box_image(images))))
        stack.enter_context(_named("busybox", stack.enter_context(_busybox(images / "busybox"))))
        stack.enter_context(_named("python:3.12-slim", stack.enter_context(_python(images))))
        state = stack.enter_context(FakeState(tmp_path_factory.mktemp("card") / "state", count=1))
        library = build(tmp_path_factory.mktemp("library"))
        card = {"LD_LIBRARY_PATH": str(library.parent), "FAKE_NVML_STATE": str(state.path)}
        found = stack.enter_context(renting(environment=card))
        wanted = {"kind": "box", "gpus": 1, "gpu_model": "H100", "argv": ["true"]}
        wait_for(lambda: found.ask("POST", "/clusters/plan", wanted)["fits"])
        yield found


@contextmanager
def _named(name: str, image: str) -> Iterator[None]:
    """Give an image the name that a page has for it, unless this daemon has one of that name."""
    asked = ["docker", "images", "--quiet", name]
    if not subprocess.run(asked, capture_output=True, check=True, timeout=CALL_S).stdout:
        subprocess.run(["docker", "tag", image, name], check=True, timeout=CALL_S)
        yield
        subprocess.run(["docker", "rmi", name], capture_output=True, check=True, timeout=CALL_S)
    else:
        yield


@contextmanager
def _busybox(folder: Path) -> Iterator[str]:
    name = f"windrow-test-{uuid.uuid4().hex[:12]}:local"
    import_image(folder, name)
    yield name
    subprocess.run(["docker", "rmi", "-f", name], capture_output=True, check=True, timeout=CALL_S)


@contextmanager
def _python(folder: Path) -> Iterator[str]:
    """An image of Debian's own Python, as python:3.12-slim is one."""
    name = f"windrow-test-{uuid.uuid4().hex[:12]}:local"
    root, packed = clean_debian.make(folder / "python", "python3"), folder / "python.tar"
    (root / "usr" / "bin" / "python").symlink_to("python3")
    subprocess.run(["tar", "-C", str(root), "-cf", str(packed), "."], check=True, timeout=CALL_S)
    subprocess.run(["docker", "import", str(packed), name], check=True, capture_output=True, timeout=CALL_S)
    packed.unlink()
    yield name
    subprocess.run(["docker", "rmi", "-f", name], capture_output=True, check=True, timeout=CALL_S)


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A key in `~/.ssh` of the reader, and an agent that holds it: OpenSSH does not look at HOME."""
    path = tmp_path / "home" / ".ssh" / "id_ed25519"
    path.parent.mkdir(mode=0o700, parents=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=CALL_S)
    at = f"/tmp/windrow-keys-{uuid.uuid4().hex[:8]}"  # short: a socket's path has 108 bytes at most
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", at], stdout=subprocess.DEVNULL)
    try:
        own = {"SSH_AUTH_SOCK": at}
        wait_for(lambda: os.path.exists(at))
        subprocess.run(["ssh-add", "-q", str(path)], env=os.environ | own, check=True, timeout=CALL_S)
        yield own
    finally:
        agent.terminate()
        agent.wait(CALL_S)
