"""Output of programs arrives byte for byte and as it is written, whatever surrounds the command."""

import pytest

from tests.support.person import Person
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

ODD = {
    "progress bars, colours, NUL and no last newline": b"0%\r50%\r100%\r\n\x1b[31mred\x1b[0m\0\x07\tend",
    "bytes that are no text, and a line of 300 kB": bytes(range(256)) + b"x" * 300_000 + b"\n\xe9\n",
}
FOLLOWED = "import os, time; print('start'); [time.sleep(0.05) for _ in iter(lambda: os.path.exists('go'), True)]"


@pytest.mark.case("B-D8", "B-D9")
@pytest.mark.parametrize("said", ODD.values(), ids=ODD)
def test_output_arrives_byte_for_byte_in_a_run_a_job_and_the_sdk(person: Person, said: bytes) -> None:
    (person.here / "said").write_bytes(said)

    run = person.windrow("run", "--", "cat", "said").well()
    job = person.windrow("job", "submit", "--", "cat", "said").well().text.strip()
    person.windrow("job", "wait", job).well()
    logged = person.windrow("job", "logs", job).well()
    with person.renter.stack.client() as api:
        by_sdk = b"".join(api.job_logs(job))

    assert (run.out, logged.out, by_sdk) == (said, said, said)


@pytest.mark.case("B-D12", "B-D14")
@pytest.mark.parametrize("runtime", ["process", "docker"])
def test_what_python_prints_is_read_while_it_runs(person: Person, request: pytest.FixtureRequest, runtime: str) -> None:
    image = ("--image", request.getfixturevalue("python_image")) if runtime == "docker" else ()
    name = f"prints-{runtime}"
    with person.started("run", "--name", name, *image, "--", "python3", "-c", FOLLOWED) as run:
        first = run.until(b"start\n")
        # It goes on only now: what was read before was read while it ran.
        person.windrow("cluster", "exec", name, "--", "touch", "go").well()
        assert (first, run.end(PATIENCE_S).code) == (b"start\n", 0)


SURROUNDINGS = {
    "no colour": ("NO_COLOR=1",),
    "colour": ("FORCE_COLOR=1", "CLICOLOR_FORCE=1"),
    "narrow": ("COLUMNS=20",),
    "odd width": ("COLUMNS=wide",),
    "no home": ("-u", "HOME"),
    "home that is not there": ("HOME=/no/such/home",),
    "no locale": ("-u", "LANG", "LC_ALL=C"),
    "another locale": ("LC_ALL=POSIX", "LANG=de_DE.ISO-8859-1"),
    "another zone": ("TZ=Asia/Tokyo",),
    "no terminal": ("TERM=dumb",),
}


@pytest.mark.case("B-D20")
@pytest.mark.parametrize("changes", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_a_list_and_a_run_are_the_same_in_any_surroundings(person: Person, changes: tuple[str, ...]) -> None:
    columns, word = ("windrow", "host", "ls", "-o", "tsv"), "\u65e5\u672c"
    usual = person.command(*columns).well()

    listed = person.command("env", *changes, *columns).well()
    ran = person.command("env", *changes, "windrow", "run", "--no-files", "--", "echo", word).well()

    assert ran.text == f"{word}\n"
    assert (
        [line.split("\t")[:2] for line in listed.text.splitlines()]
        == [  # its state may be another by now
            line.split("\t")[:2] for line in usual.text.splitlines()
        ]
    )
    assert b"\x1b" not in listed.out and b"Traceback" not in listed.err + ran.err
