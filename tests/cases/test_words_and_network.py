"""Words, files, secrets and addresses that people give arrive, or are refused in a sentence that says what is wrong."""

import json
import os
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.services import need
from tests.support.person import Person
from tests.support.rental import Renter, renting
from tests.support.sshd import privsep as privsep
from tests.support.stack import stack, wait_for

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

LONG = "\u65e5\u672c and blanks " * 8
REQUIREMENTS = {
    "CRLF and comments": (b"# mine\r\nnumpy==2.4.6\r\n\r\nrich # for colours\r\n", ["numpy==2.4.6", "rich"]),
    "markers and extras": (
        b"tomli; python_version < '3.11'\nuvicorn[standard]>=0.30,<1\n",
        ["tomli; python_version < '3.11'", "uvicorn[standard]>=0.30,<1"],
    ),
    "a byte order mark": (b"\xef\xbb\xbfnumpy\n", ["numpy"]),
    "git": (
        b"thing @ git+https://example.org/thing.git@v1#egg=thing\n",
        ["thing @ git+https://example.org/thing.git@v1#egg=thing"],
    ),
    "an option": (b"--index-url https://example.org/simple\nnumpy\n", "--index-url"),
    "another file": (b"-r other.txt\n", "-r other.txt"),
    "a continued line": (b"numpy \\\n  ==2.4.6\n", "numpy"),
    "no text": (b"caf\xe9\n", "UTF-8"),
}
ARTEFACTS = ("%2e%2e", "q?x#y", "\u00fcn\u00ef", "two words", "a&b=c;d", "empty")


# --- secrets and files ------------------------------------------------------------------------------------------------


@pytest.mark.case("B-F14")
def test_a_token_that_ends_with_a_newline_is_taken_and_one_with_a_newline_inside_is_not_printed(person: Person) -> None:
    token = person.renter.stack.cli["token"]

    for end in ("\n", "\r\n", " \n"):
        person.windrow("host", "ls", env={"WINDROW_TOKEN": token + end}).well()
    for broken in (token[:12] + "\n" + token[12:], token + "\nx", token + "\u00e9"):
        refused = person.windrow("host", "ls", env={"WINDROW_TOKEN": broken})
        assert refused.code != 0 and "token" in refused.errors
        assert token[13:30] not in refused.text + refused.errors


@pytest.mark.case("B-F21")
@pytest.mark.parametrize("name", ARTEFACTS)
def test_an_artefact_keeps_its_name_both_ways(renter: Renter, tmp_path: Path, name: str) -> None:
    content = b"" if name == "empty" else name.encode()
    (tmp_path / name).write_bytes(content)
    (tmp_path / "back").mkdir()

    put = renter.windrow("artefact", "put", "--json", str(tmp_path / name))
    listed = renter.windrow("artefact", "ls", "--json")
    got = renter.windrow("artefact", "get", name, str(tmp_path / "back"))
    removed = renter.windrow("artefact", "rm", "--yes", name)

    assert (put.returncode, got.returncode, removed.returncode) == (0, 0, 0), put.stderr + got.stderr + removed.stderr
    assert json.loads(put.stdout)["name"] == name
    assert name in [one["name"] for one in json.loads(listed.stdout)]
    assert (tmp_path / "back" / name).read_bytes() == content


@pytest.mark.case("B-F22")
@pytest.mark.parametrize("odd", [b"n\nl.txt", b"lat\xe9.txt"], ids=["a newline", "a Latin-1 byte"])
def test_an_artefact_with_a_name_that_cannot_be_kept_is_refused_with_the_reason(person: Person, odd: bytes) -> None:
    with open(os.path.join(os.fsencode(person.here), odd), "w") as file:
        file.write("x")

    done = person.windrow("artefact", "put", odd)

    assert (done.code, done.out) == (2, b""), done
    assert done.err.startswith(b"Error: ") and b"not_found" not in done.err and b"Traceback" not in done.err
    assert b"UTF-8" in done.err or b"name" in done.err


@pytest.mark.case("B-F23", "B-F24")
@pytest.mark.parametrize(("text", "expected"), REQUIREMENTS.values(), ids=REQUIREMENTS)
def test_a_requirements_file_is_taken_or_refused_in_a_sentence(
    renter: Renter, tmp_path: Path, text: bytes, expected: list[str] | str
) -> None:
    file = tmp_path / "requirements.txt"
    file.write_bytes(text)

    # The second GPU of a kind that nobody has: it stays in the queue, and its request can be read.
    words = ("--no-files", "--gpu", "NoSuchGpu", "--requirements", str(file), "--json", "--", "true")
    done = renter.windrow("job", "submit", *words, cwd=tmp_path)

    assert "Traceback" not in done.stderr
    if isinstance(expected, list):
        assert done.returncode == 0, done.stderr
        (job,) = json.loads(done.stdout)
        renter.windrow("job", "cancel", job["id"])
        assert job["request"]["packages"] == expected
    else:
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert expected in done.stderr


# --- SSH --------------------------------------------------------------------------------------------------------------


@pytest.mark.case("B-F19")
def test_a_box_is_entered_from_a_home_with_blanks_and_a_per_cent_sign_with_ones_own_options(
    renter: Renter, tmp_path: Path, privsep: None
) -> None:
    need("openssh")
    (tmp_path / "my %h 100%").mkdir()
    person = Person(renter, tmp_path / "my %h 100%")
    key = person.home / ".ssh" / "id_ed25519"
    key.parent.mkdir(mode=0o700)
    person.command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).well()
    person.windrow("cluster", "create", "--name", "lab", "--runtime", "process", "--no-notebook").well()
    # A path of one's own with a % is what OpenSSH's client cannot take in a % option: the key stands elsewhere.
    plain = tmp_path / "key"
    plain.write_bytes(key.read_bytes())
    plain.chmod(0o600)
    options = ("-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-i", str(plain), "-T")

    def entered() -> Any:
        done = person.windrow("cluster", "ssh", "lab", "--", *options, "echo 'in  side'; exit 7")
        return done.code == 7 and done

    assert wait_for(entered, 60).text == "in  side\n"
    assert (person.home / ".config" / "windrow" / "known_hosts").read_text()


# --- markets of their own ---------------------------------------------------------------------------------------------


@pytest.mark.case("B-E17")
def test_a_market_lives_in_a_folder_with_a_long_name_blanks_and_letters_of_any_script(tmp_path: Path) -> None:
    place = tmp_path / LONG.strip() / LONG.strip()
    assert len(str(place / "data")) >= 200
    place.mkdir(parents=True)

    with renting(folder=place) as own:
        done = own.windrow("run", "--no-files", "--", "echo", "hi")

    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr


@pytest.mark.case("B-E18")
def test_a_market_listens_on_the_ipv6_address_of_this_machine() -> None:
    with renting("--listen", "::1") as own:
        done = own.windrow("run", "--no-files", "--", "echo", "hi")
        accesses = {one["address"] for one in own.all("/accesses")}

    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr
    assert accesses and all(one.startswith("[::1]:") for one in accesses)


@pytest.mark.case("B-E21")
def test_a_market_whose_ports_another_program_has_taken_is_rented_at_others(tmp_path: Path) -> None:
    with renting(folder=tmp_path) as own:
        before = own.stack.cli["ports"]
        first = own.host()["id"]
        wait_for(lambda: _online(tmp_path) == 1)
    with ExitStack() as others:
        for port in _numbers(before):
            others.enter_context(socket.create_server(("127.0.0.1", port)))
        with stack(folder=tmp_path) as running:
            again = Renter(running)
            host = again.online()
            done = again.windrow("run", "--no-files", "--", "echo", "hi")
            after = running.cli["ports"]
            wait_for(lambda: _online(tmp_path) == 2)  # once for each start

    assert (host["id"], done.returncode, done.stdout) == (first, 0, "hi\n"), done.stderr
    assert not set(_numbers(before)) & set(_numbers(after))


def _online(folder: Path) -> int:
    """How often `windrow up` has said so."""
    return (folder / "up.log").read_text().count("Online")


def _numbers(ports: dict[str, Any]) -> list[int]:
    return [port for one in ports.values() for port in (one if isinstance(one, list) else [one])]
