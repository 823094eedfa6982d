"""Python packages of a job: the command that installs them first, run here."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.wheels import wheel
from windrow_master.jobs import packages
from windrow_master.jobs.model import PACKAGES_MAX
from windrow_proto.errors import InvalidInput
from windrow_proto.model import ENVIRONMENT


def run(folder: Path, asked: list[str], *argv: str, uv: str | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a host runs it that has this uv, or none."""
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(sys.executable)
    if uv is not None:
        (folder / "bin" / "uv").symlink_to(uv)
    env = os.environ | {"PATH": f"{folder / 'bin'}:/usr/bin:/bin"}
    words = packages.command(asked, argv)
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, env=env)


def test_without_packages_a_command_is_as_it_was():
    assert packages.command((), ("python", "train.py")) == ("python", "train.py")


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_the_command_finds_its_packages_and_its_own_words(installer, tmp_path):
    uv = shutil.which("uv")
    if installer == "uv" and uv is None:
        pytest.skip("needs uv: pip install uv")
    asked = [wheel(tmp_path), wheel(tmp_path, "other_thing")]
    program = "import sys, tiny_thing, other_thing; print(tiny_thing.answer(), sys.argv[1:], sys.prefix)"
    done = run(tmp_path, asked, "python", "-c", program, "two words", "$HOME", uv=uv if installer == "uv" else None)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"42 ['two words', '$HOME'] {tmp_path / ENVIRONMENT}"


def test_the_environment_is_in_the_workspace_where_the_images_folder_cannot_be_written():
    script = packages.command(["numpy"], ("true",))[2].partition("lists=")[0].rpartition("env=$PWD")[2]
    words = ["sh", "-c", f'env=$PWD{script}echo "$env"']
    nobody = 65534 if os.geteuid() == 0 else None
    done = subprocess.run(words, cwd="/", user=nobody, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"/workspace/{ENVIRONMENT}\n"


def test_a_package_that_there_is_not_ends_it_before_its_command(tmp_path):
    done = run(tmp_path, ["./nothing-1.0-py3-none-any.whl"], "sh", "-c", "echo ran")
    assert done.returncode != 0 and "ran" not in done.stdout
    assert "nothing" in done.stdout + done.stderr


def test_where_there_is_no_python_it_says_so(tmp_path):
    (tmp_path / "bin").mkdir()
    words = packages.command(["numpy"], ("true",))
    done = subprocess.run(words, executable="/bin/sh", cwd=tmp_path, capture_output=True, text=True, timeout=60,
                          env={"PATH": str(tmp_path / "bin")})  # fmt: skip
    assert (done.returncode, done.stderr) == (127, "This host has no Python to install the packages with.\n")


def test_many_packages_are_few_words():
    asked = [f"package-{number}=={number}.0" for number in range(PACKAGES_MAX)]
    packages.check(asked)
    words = packages.command(asked, ("true",))
    count = int(words[4])
    assert all(len(word) <= packages.WORD_MAX for word in words) and count < 5
    assert "\n".join(words[5 : 5 + count]).splitlines() == asked and words[5 + count :] == ("true",)


@pytest.mark.parametrize("wrong", ["", "-r more.txt", "--index-url=x", " numpy", "a\nb"])
def test_what_is_no_requirement_is_refused(wrong):
    with pytest.raises(InvalidInput, match="packages") as refused:
        packages.check([wrong])
    assert refused.value.subject == "packages"
