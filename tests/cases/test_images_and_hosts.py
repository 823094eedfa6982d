"""Containers are what images expect, whatever the image, and what a driver says wrongly harms no other card."""

import shutil
import uuid
from pathlib import Path

import pytest

from tests.services import need
from tests.support.images import Images, docker
from tests.support.person import Person
from tests.support.rental import Renter

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.docker]

MODEL_MIB = 600
FILL = f"""
set -e
for folder in "$HOME/.cache" "${{TMPDIR:-/tmp}}"; do
    mkdir -p "$folder"
    dd if=/dev/zero of="$folder/model" bs=1048576 count={MODEL_MIB} 2>/dev/null
    ls -l "$folder/model" | head -n 1
done
"""
WHO = "import getpass, os; print(getpass.getuser(), os.getuid())"


@pytest.mark.case("B-E1")
@pytest.mark.parametrize(("user", "owner"), [("1000", ""), ("1000", "0"), ("0", "1000")])
def test_an_images_user_writes_into_the_folder_and_the_file_comes_back(
    person: Person, images: Images, tmp_path: Path, user: str, owner: str
) -> None:
    """owner: of the /workspace that the image has; empty: it has none."""
    image = images.busybox(f"USER {user}")
    lines = [f"FROM {images.busybox()}", f"USER {user}"]
    if owner:
        busybox = '"/bin/busybox"'
        make = [f'RUN [{busybox}, "mkdir", "/workspace"]', f'RUN [{busybox}, "chown", "{owner}", "/workspace"]']
        image = f"windrow-test-{uuid.uuid4().hex[:12]}:local"
        (tmp_path / "Dockerfile").write_text("\n".join([lines[0], *make, lines[1]]))
        docker("build", "-t", image, "-f", str(tmp_path / "Dockerfile"), str(person.here))

    done = person.windrow("run", "--image", image, "--", "sh", "-c", "id -u; echo result > out.txt")
    if owner:
        docker("rmi", "-f", image)

    assert done.well().text == f"{user}\n"
    assert (person.here / "out.txt").read_text() == "result\n"


@pytest.mark.case("B-E3")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--", "sh", "-c", "pwd"), "EP: sh -c pwd\n"),
        (("--entrypoint", "", "--", "sh", "-c", "pwd"), "/app\n"),
        (("--entrypoint", "sh", "--", "-c", "echo own"), "own\n"),
    ],
)
def test_a_command_goes_to_the_entry_point_of_its_image_or_takes_its_place(
    person: Person, images: Images, words: tuple[str, ...], said: str
) -> None:
    image = images.busybox('ENTRYPOINT ["/bin/echo", "EP:"]', "WORKDIR /app")

    assert person.windrow("run", "--no-files", "--image", image, *words).well().text == said


@pytest.mark.case("B-E5")
def test_a_large_model_fits_into_the_home_and_into_the_folder_for_what_is_temporary(renter: Renter, image: str) -> None:
    done = renter.windrow("run", "--no-files", "--image", image, "--", "sh", "-c", FILL)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(str(MODEL_MIB << 20)) == 2


@pytest.mark.case("B-E6")
def test_a_user_without_a_line_in_the_images_passwd_has_a_name(person: Person, images: Images) -> None:
    image = images.python("USER 1234")

    done = person.windrow("run", "--no-files", "--image", image, "--", "python3", "-c", WHO)

    assert done.well().text == "user 1234\n"


@pytest.mark.case("B-E7")
@pytest.mark.parametrize("is_with_files", [True, False])
def test_an_image_without_a_shell_runs_its_program(person: Person, images: Images, is_with_files: bool) -> None:
    need("busybox")
    image = images.of_files(cat=Path(str(shutil.which("busybox"))).read_bytes())
    (person.here / "said").write_text("from a file\n")

    words = ("--", "/cat", "said") if is_with_files else ("--no-files", "--", "/cat", "/etc/hostname")
    done = person.windrow("run", "--image", image, *words).well()

    assert done.text and (done.text == "from a file\n") is is_with_files


@pytest.mark.case("B-E9")
@pytest.mark.parametrize("by", ["image", "request"])
def test_who_rents_no_gpu_sees_none_whatever_image_and_request_say(person: Person, images: Images, by: str) -> None:
    wish = "NVIDIA_VISIBLE_DEVICES=all"
    image, words = (images.busybox(f"ENV {wish}"), ()) if by == "image" else (images.busybox(), ("--env", wish))

    done = person.windrow(
        "run", "--no-files", "--image", image, *words, "--", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES"
    )

    assert done.well().text == "void\n"


@pytest.mark.case("B-E20")
@pytest.mark.parametrize("form", ["{name}", "docker.io/library/{name}", "{id}", "{short}"])
def test_an_image_is_meant_by_each_of_its_names(renter: Renter, image: str, form: str) -> None:
    whole = docker("image", "inspect", "-f", "{{.Id}}", image).strip()
    called = form.format(name=image, id=whole, short=whole.removeprefix("sha256:")[:12])

    done = renter.windrow("run", "--no-files", "--image", called, "--", "echo", "hi")

    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr


@pytest.mark.case("B-E20")
@pytest.mark.parametrize("wrong", ["no spaces", "UPPER/Case:1", "a//b", "x:", "nosuch.invalid/none:1", ""])
def test_a_wrong_image_is_refused_in_a_sentence_that_names_it(renter: Renter, wrong: str) -> None:
    if "nosuch" in wrong:
        need("docker")
    done = renter.windrow("run", "--no-files", "--image", wrong, "--", "true")

    assert done.returncode != 0 and done.stdout == ""
    assert ("nosuch.invalid/none:1" if "nosuch" in wrong else "image") in done.stderr
    assert "Traceback" not in done.stderr and "None" not in done.stderr
