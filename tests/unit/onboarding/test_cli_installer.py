"""The line that installs `windrow` takes what its Master lists, leaves nothing half done, and takes all away."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.onboarding.pretend import Pretend, pretend_master
from windrow_master.onboarding.closure import list_text
from windrow_master.onboarding.join_line import cli_line
from windrow_master.onboarding.model import Artifact, Manifest, by_name
from windrow_master.onboarding.wheel import Declared, pack

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

RUN_S = 120
MINOR = sysconfig.get_python_version()
LINK = "https://market.example/#sign-in=wl_good.0"
PROGRAMS = ("cat", "curl", "cut", "dirname", "ls", "mktemp", "rm", "rmdir", "sed", "sh", "tail", "tr")
COMMAND = """
import os, pathlib, sys
import pretend_thing
kept = pathlib.Path(os.environ["HOME"], ".config", "windrow", "config.json")
if sys.argv[1:] == ["--version"]:
    print("RELEASE")
elif sys.argv[1:] == ["login"]:
    if "good" not in os.environ["WINDROW_LINK"]:
        sys.exit("The link was used before.")
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
elif sys.argv[1:] == ["logout"]:
    kept.unlink()
    print("signed out")
"""


def wheel(name: str, files: Mapping[str, str]) -> tuple[str, bytes]:
    declared = Declared(name, "1.0", "Pretend.", ">=3.11", "Apache-2.0", (), {})
    return pack(declared, {path: text.encode() for path, text in files.items()})


THING = wheel("pretend-thing", {"pretend_thing.py": ""})


def release_of(name: str, command: str = COMMAND, minors: tuple[str, ...] = (MINOR,)) -> dict[str, bytes]:
    """Path -> answer of a whole release."""
    ours = wheel("windrow", {"windrow/__init__.py": "", "windrow/__main__.py": command.replace("RELEASE", name)})
    contents = dict([ours, THING])
    files = by_name([Artifact.of(file, "wheel", content) for file, content in contents.items()])
    manifest = Manifest(MINOR, sysconfig.get_platform(), "0" * 64, files)
    pins = f"pretend-thing==1.0 --hash=sha256:{Artifact.of(*THING[:1], 'wheel', THING[1]).sha256}\n"
    lists = {"files.txt": list_text(manifest, minors).encode(), "requirements.txt": pins.encode()}
    return {f"/cli/{file}": content for file, content in {**contents, **lists}.items()} | {"/api/v1/ca": b"PEM\n"}


@dataclass
class Laptop:
    """A person's machine: a home folder, and who made the line."""

    home: Path
    master: Pretend

    def run(self, *arguments: str, path: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
        """Paste the line, without a terminal."""
        line = cli_line(self.master.url, self.master.pin).replace("| sh", f"| sh -s -- {' '.join(arguments)}")
        usual = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        return subprocess.run(
            ["sh", "-c", line],
            env={"PATH": path or usual, "HOME": str(self.home), **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            start_new_session=True,
            check=False,
        )

    def windrow(self, *words: str) -> str:
        """What the installed command prints."""
        done = subprocess.run(
            [self.home / ".local/bin/windrow", *words],
            env={"HOME": str(self.home), "PATH": "/nowhere", "PYTHONPATH": "/nowhere"},
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=True,
        )
        return done.stdout.strip()

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*"))


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Laptop]:
    with pretend_master(tmp_path) as master:
        master.answers |= release_of("one")
        home = tmp_path / "a person's home"
        home.mkdir()
        yield Laptop(home, master)


def test_the_line_installs_upgrades_and_uninstalling_leaves_nothing(laptop: Laptop) -> None:
    done = laptop.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert laptop.windrow("--version") == "one"
    assert f"Sign in: windrow login {laptop.master.url}\n" in done.stdout
    assert f"{laptop.home}/.local/bin is not in your PATH" in done.stdout
    again = laptop.run(path=f"{laptop.home}/.local/bin:{os.environ['PATH']}")
    assert (again.returncode, "is installed already" in again.stdout, "PATH" in again.stdout) == (0, True, False)
    laptop.master.answers |= release_of("two")
    assert laptop.run().returncode == 0
    assert laptop.windrow("--version") == "two"
    assert len(list((laptop.home / ".local/share/windrow").glob("*-3.*"))) == 1
    command = ["sh", str(laptop.home / ".local/share/windrow/install-cli.sh"), "--uninstall"]
    own = {"HOME": str(laptop.home), "PATH": "/usr/bin:/bin"}
    gone = subprocess.run(command, env=own, timeout=RUN_S, check=False)
    assert (gone.returncode, laptop.files()) == (0, [])


def test_a_link_signs_in_and_uninstalling_signs_out_and_leaves_what_was_there(laptop: Laptop) -> None:
    (laptop.home / ".config" / "editor").mkdir(parents=True)
    before = laptop.files()
    done = laptop.run(WINDROW_LINK=LINK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (laptop.home / ".config/windrow/config.json").is_file()
    assert "wl_good" not in done.stdout + done.stderr
    gone = laptop.run("--uninstall")
    assert (gone.returncode, "signed out" in gone.stdout) == (0, True)
    assert laptop.files() == before


def test_a_link_that_opens_nothing_is_said_and_the_command_stays(laptop: Laptop) -> None:
    done = laptop.run(WINDROW_LINK=LINK.replace("good", "used"))
    assert done.returncode == 1
    assert "The link was used before." in done.stderr and "you are not signed in" in done.stderr
    assert laptop.windrow("--version") == "one"


def test_one_changed_byte_is_refused_and_leaves_nothing(laptop: Laptop) -> None:
    name = f"/cli/{THING[0]}"
    laptop.master.answers[name] = THING[1][:-1] + bytes([THING[1][-1] ^ 1])
    done = laptop.run()
    assert done.returncode == 1
    assert f"{THING[0]} is not the file that the Master listed" in done.stderr
    assert laptop.files() == []


def test_a_release_that_does_not_start_leaves_the_one_before(laptop: Laptop) -> None:
    assert laptop.run().returncode == 0
    before = laptop.files()
    laptop.master.answers |= release_of("two", "import not_there")
    done = laptop.run()
    assert done.returncode == 1 and "does not start here: ModuleNotFoundError" in done.stderr
    assert (laptop.windrow("--version"), laptop.files()) == ("one", before)


def test_wheels_that_do_not_fit_are_said_with_the_way_by_pip(laptop: Laptop, tmp_path: Path) -> None:
    laptop.master.answers |= release_of("one", minors=("3.10",))
    done = laptop.run()
    assert done.returncode == 1
    assert f"wheels for CPython 3.10 on {sysconfig.get_platform()}, and here is CPython {MINOR}" in done.stderr
    assert "sh -s -- --with-pip" in done.stderr and laptop.files() == []
    index = tmp_path / "index"
    index.mkdir()
    (index / THING[0]).write_bytes(THING[1])
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": "/dev/null"}
    done = laptop.run("--with-pip", **pip)
    assert done.returncode == 0, done.stdout + done.stderr
    assert laptop.windrow("--version") == "one"
    assert f"/cli/{THING[0]}" not in laptop.master.asked


def test_what_pip_brings_is_held_to_the_sums_of_the_master(laptop: Laptop, tmp_path: Path) -> None:
    laptop.master.answers |= release_of("one", minors=("3.10",))
    index = tmp_path / "index"
    index.mkdir()
    name, content = wheel("pretend-thing", {"pretend_thing.py": "other = True"})
    (index / name).write_bytes(content)
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": "/dev/null"}
    done = laptop.run("--with-pip", **pip)
    assert (done.returncode, laptop.files()) == (1, [])
    assert "pip could not install the packages" in done.stderr


def test_without_a_python_that_fits_one_sentence_says_what_to_install(laptop: Laptop, tmp_path: Path) -> None:
    few = tmp_path / "few"
    few.mkdir()
    for program in PROGRAMS:
        (few / program).symlink_to(shutil.which(program) or pytest.skip(f"no {program}"))
    done = laptop.run(path=str(few))
    assert done.returncode == 1 and laptop.files() == []
    assert done.stderr == (
        "windrow: windrow needs Python 3.11 or newer: install it (on Debian: apt-get install python3), then run the "
        "line again.\n"
    )


def test_a_command_of_somebody_elses_is_left_alone(laptop: Laptop) -> None:
    own = laptop.home / ".local/bin/windrow"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\necho mine\n")
    before = laptop.files()
    done = laptop.run()
    assert done.returncode == 1 and "is there already and is not of this script" in done.stderr
    assert (laptop.files(), own.read_text()) == (before, "#!/bin/sh\necho mine\n")


def test_a_master_with_another_key_is_not_listened_to(laptop: Laptop) -> None:
    other = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    done = laptop.run("--pin", other)
    assert done.returncode == 1 and "does not hold the key of this line" in done.stderr
    assert laptop.files() == []


def test_it_waits_while_the_wheels_are_being_prepared_and_says_why_there_are_none(laptop: Laptop) -> None:
    laptop.master.problems["/cli/files.txt"] = [(503, "The command's wheels are being prepared: fetching (3 of 16).")]
    done = laptop.run()
    assert done.returncode == 0 and "Waiting: The command's wheels are being prepared" in done.stdout
    laptop.master.problems["/cli/files.txt"] = [(409, "The command's wheels could not be prepared: no index.")]
    done = laptop.run()
    assert done.returncode == 1 and "could not be prepared: no index." in done.stderr


@pytest.mark.parametrize("words", [("--what",), ("--url",)])
def test_words_that_it_does_not_know_are_refused(laptop: Laptop, words: tuple[str, ...]) -> None:
    done = laptop.run(*words)
    assert (done.returncode, "usage: install-cli.sh" in done.stderr, laptop.files()) == (2, True, [])
