"""Commands and their environment arrive as they were written: words, variables, and words that cannot be sent."""

from pathlib import Path

import pytest

from tests.support.rental import Renter

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

WORDS = (
    *("", " ", "two words", "'", '"', "$HOME", "`id`", "a\nb", "--gpu", "&&", ";", "*", "\\", "\u65e5\u672c", "#x"),
    *("~", "-", "--", "%s", "!!"),
)
SAY_WORDS = 'for word do printf "%s\\0" "$word"; done'
VARIABLES = {
    "LINES_": "one\ntwo\n",
    "QUOTES": "\"'`",
    "EQUALS": "a=b==c",
    "JSON": '{"a": [1, "two"], "b": null}',
    "EMPTY": "",
    "WIDE": "\u65e5\u672c \u00e9",
    "DOLLAR": "$HOME $(id)",
    "BACKSLASH": "\\n\\",
    "BLANKS": "  a  ",
    "HASH": "#no comment",
    "lower_1": "x",
}
SAY_VARIABLES = "printf '%s\\0' " + " ".join(f'"${name}"' for name in VARIABLES)


@pytest.fixture(params=["process", "docker"])
def place(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The options that choose the runtime."""
    return () if request.param == "process" else ("--image", request.getfixturevalue("image"))


@pytest.mark.case("B-D1")
def test_every_word_of_a_command_arrives_as_it_was_written(renter: Renter, place: tuple[str, ...]) -> None:
    done = renter.windrow("run", "--no-files", *place, "--", "sh", "-c", SAY_WORDS, "sh", *WORDS)

    assert (done.returncode, done.stdout.split("\0")) == (0, [*WORDS, ""]), done.stderr


@pytest.mark.case("B-D2")
def test_one_quoted_string_is_no_program_and_is_named(renter: Renter, place: tuple[str, ...]) -> None:
    done = renter.windrow("run", "--no-files", *place, "--", "echo one two")

    assert done.returncode in (1, 127), done.stderr
    assert "echo one two" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.case("B-D3")
def test_every_variable_arrives_as_it_was_written(renter: Renter, place: tuple[str, ...]) -> None:
    given = [word for name, value in VARIABLES.items() for word in ("--env", f"{name}={value}")]

    done = renter.windrow("run", "--no-files", *place, *given, "--", "sh", "-c", SAY_VARIABLES)

    assert (done.returncode, done.stdout.split("\0")) == (0, [*VARIABLES.values(), ""]), done.stderr


@pytest.mark.case("B-D5")
@pytest.mark.parametrize("verb", [("run",), ("job", "submit", "--follow")])
def test_variables_are_taken_from_the_shell_and_from_a_file(
    renter: Renter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    monkeypatch.setenv("KEPT_HERE", "of the shell")
    monkeypatch.setenv("NAMED_IN_FILE", "of the shell too")
    file = tmp_path / "some.env"
    file.write_text("# a comment\n\nFROM_FILE=a = 'b'\nNAMED_IN_FILE\nLAST=of the file\n")
    say = 'printf "%s|" "$KEPT_HERE" "$FROM_FILE" "$NAMED_IN_FILE" "$LAST"'
    words = ("--env", "KEPT_HERE", "--env-file", str(file), "--env", "LAST=written")

    done = renter.windrow(*verb, "--no-files", *words, "--", "sh", "-c", say, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("of the shell|a = 'b'|of the shell too|written|")
    assert "of the shell" not in done.stderr and "'b'" not in done.stderr
