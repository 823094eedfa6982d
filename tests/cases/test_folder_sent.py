"""The folder that is sent: what arrives there is what a person has here."""

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

from tests.support.images import Images
from tests.support.person import Person, Said
from tests.support.rental import ENDED


def ran(person: Person, script: str, *flags: str) -> Said:
    """The output of a script on a host, in a copy of their folder."""
    return person.windrow("run", *flags, "--", "sh", "-c", script).well()


@pytest.mark.case("B-A1")
def test_two_names_of_one_file_arrive_both(person: Person, images: Images) -> None:
    person.shell("echo same > a; ln a b").well()
    for flags in ((), ("--image", images.busybox())):
        assert ran(person, "cat b a", *flags).text == "same\nsame\n"
    said = person.windrow("job", "submit", "--follow", "--", "sh", "-c", "cat b").well()
    assert "same\n" in said.text


@pytest.mark.case("B-A2")
def test_links_to_files_and_folders_arrive(person: Person) -> None:
    person.shell("echo d > real.txt; mkdir sub; echo s > sub/x; ln -s real.txt link.txt; ln -s sub sublink").well()
    assert ran(person, "cat link.txt sublink/x; readlink link.txt").text == "d\ns\nreal.txt\n"
    person.shell("ln -s /etc/hostname out").well()
    said = ran(person, "ls")
    assert "out" not in said.text.split() and "out" in said.errors, said


@pytest.mark.case("B-A4")
def test_an_empty_folder_arrives_and_can_be_written_into(person: Person) -> None:
    (person.here / "outputs").mkdir()
    ran(person, "echo r > outputs/r")
    assert (person.here / "outputs" / "r").read_text() == "r\n"


ODD = (
    b"a\nb", b"tab\there", b"lat\xe9", "rocket🚀".encode(), b"x" * 255, b"-dash", b"--help", b"..dots", b"back\\slash",
    b"quote'", b'double"', b" lead", b"trail ", b"*", b"$HOME", b"`id`", b"a;b", b"%s", b"#hash", b"~", "日本".encode(),
)  # fmt: skip


@pytest.mark.case("B-A6")
def test_odd_names_and_deep_folders_go_both_ways(person: Person) -> None:
    here = os.fsencode(person.here)
    deep = b"/".join([b"d" * 40] * 20)
    os.makedirs(here + b"/" + deep)
    names = [*ODD, deep + b"/end"]
    for name in names:
        with open(here + b"/" + name, "wb") as file:
            file.write(name)
    script = (
        "import os\n"
        "found = [os.path.relpath(os.path.join(at, n), b'.') for at, _, ns in os.walk(b'.') for n in ns]\n"
        "found = [n for n in found if n != b'check.py']\n"
        "assert all(open(n, 'rb').read() == n for n in found), found\n"
        "for n in found: open(n, 'ab').write(b' seen')\n"
        "print(len(found))\n"
    )
    (person.here / "check.py").write_text(script)
    assert person.windrow("run", "--", "python3", "check.py").well().text == f"{len(names)}\n"
    for name in names:
        with open(here + b"/" + name, "rb") as file:
            assert file.read() == name + b" seen"


@pytest.mark.case("B-A7")
def test_times_far_away_arrive(person: Person) -> None:
    times = {"old": 86_400, "older": -86_400 * 365, "late": 4_294_967_296}
    for name, at in times.items():
        (person.here / name).touch()
        os.utime(person.here / name, (at, at))
    said = ran(person, "stat -c '%n %Y' old older late").text
    assert dict(line.split() for line in said.splitlines()) == {name: str(at) for name, at in times.items()}


@pytest.mark.case("B-A8")
def test_a_script_keeps_its_executable_bit(person: Person, images: Images) -> None:
    person.shell("printf '#!/bin/sh\\necho ran\\n' > run.sh; chmod 755 run.sh").well()
    for flags in ((), ("--image", images.busybox())):
        assert person.windrow("run", *flags, "--", "./run.sh").well().text == "ran\n"


@pytest.mark.case("B-A9")
def test_sockets_pipes_and_devices_are_left_out_and_named(person: Person) -> None:
    os.mkfifo(person.here / "a-pipe")
    (person.here / "kept").touch()
    with socket.socket(socket.AF_UNIX) as it:
        directory = os.open(person.here, os.O_RDONLY)
        try:
            it.bind(f"/proc/self/fd/{directory}/a-socket")
        finally:
            os.close(directory)
        if os.geteuid() == 0:
            os.mknod(person.here / "a-device", 0o20600, os.makedev(1, 3))
        said = ran(person, "ls")
    assert said.text == "kept\n"
    assert "a-pipe" in said.errors and "a-socket" in said.errors, said


@pytest.mark.case("B-A10")
def test_the_ignore_file_means_what_it_means_to_git(person: Person) -> None:
    person.shell(
        "mkdir -p data src/data; touch data/big src/data/small a.log keep.log x.tmp important.tmp;"
        "printf '/data\\n*.log\\n!keep.log\\n*.tmp\\n!important.tmp\\nno-such/\\n' > .windrowignore"
    ).well()
    said = ran(person, "find . -type f | sort")
    assert said.text.split() == ["./.windrowignore", "./important.tmp", "./keep.log", "./src/data/small"]
    assert "no-such/" in said.errors, "a line that matches nothing is named"


@pytest.mark.case("B-A12")
def test_secrets_stay_here_unless_asked_for_and_what_git_ignores_does_too(person: Person) -> None:
    person.shell(
        "mkdir wandb; echo KEY=1 > .env; echo x > wandb/log; echo .env > .gitignore; echo wandb/ >> .gitignore; touch a"
    ).well()
    said = ran(person, "find . -type f | sort")
    assert said.text.split() == ["./.gitignore", "./a"]
    assert "wandb" in said.errors
    (person.here / ".gitignore").unlink()
    said = ran(person, "find . -type f | sort")
    assert said.text.split() == ["./a", "./wandb/log"]
    assert ".env" in said.errors and "--include-secrets" in said.errors, said
    assert "./.env" in ran(person, "find . -type f", "--include-secrets").text.split()


@pytest.mark.quick
@pytest.mark.case("B-A13")
def test_a_home_folder_is_not_sent(stranger: Person) -> None:
    (stranger.home / ".aws").mkdir()
    (stranger.home / ".aws" / "credentials").write_text("secret")
    said = stranger.windrow("run", "--", "true", cwd=stranger.home)
    assert said.code == 2 and "is a home folder" in said.errors and "--no-files" in said.errors, said
    assert "answer" not in said.errors, "refused before a market is asked"


@pytest.mark.case("B-A15")
def test_a_file_that_comes_and_goes_while_the_folder_is_sent_ends_nothing(person: Person) -> None:
    (person.here / "stays").write_text("x")
    for number in range(300):
        (person.here / f"f{number}").write_text("y" * 1000)
    ended = threading.Event()

    def edit() -> None:
        while not ended.is_set():
            for name in (".swp", "f150.swp"):
                (person.here / name).touch()
                (person.here / name).unlink()

    editor = threading.Thread(target=edit)
    editor.start()
    try:
        said = ran(person, "ls -A | grep -c -v swp")
    finally:
        ended.set()
        editor.join()
    assert said.text == "301\n" and b"Traceback" not in said.err, said


@pytest.mark.quick
@pytest.mark.case("B-A17")
def test_the_root_folder_is_refused_with_the_reason(stranger: Person) -> None:
    said = stranger.windrow("run", "--", "true", cwd=Path("/"))
    assert said.code == 2 and said.errors.startswith("Error: / is a home folder or holds one"), said


@pytest.mark.case("B-A17")
def test_a_large_folder_beside_a_function_is_refused_with_its_size(person: Person) -> None:
    (person.here / "big").write_bytes(b"")
    os.truncate(person.here / "big", 280 << 20)
    (person.here / "f.py").write_text(
        "import windrow\n\ndef f():\n    return 1\n\n"
        "if __name__ == '__main__':\n    box = windrow.cluster(name='big')\n    print(windrow.function(f).to(box)())\n"
    )
    said = person.command(sys.executable, "f.py")
    assert said.code != 0 and f"{person.here} holds more than 256 MiB" in said.errors, said
    assert all(one["phase"] in ENDED for one in person.renter.all("/clusters")), "nothing goes on"


@pytest.mark.case("B-A18")
def test_an_environment_stays_here_whatever_its_name(person: Person) -> None:
    person.shell("python3 -m venv --without-pip env; touch a").well()
    said = ran(person, "ls")
    assert said.text == "a\n" and "Python environments: env/" in said.errors, said
