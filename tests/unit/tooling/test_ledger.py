"""The closing table says what was proved on this machine, and for the rest the command that would prove it."""

from tests.ledger import Claim, table


def test_a_claim_is_proved_when_all_of_its_tests_passed() -> None:
    assert table({"real Docker": Claim("make test", passed=2)}) == ["  yes  real Docker  tests: 2"]


def test_a_claim_with_a_skipped_test_is_not_proved_and_names_reason_and_command() -> None:
    claim = Claim("PROVISION=1 make test", passed=2, skipped=["Docker is not available here"])
    assert table({"real Docker": claim}) == [
        "  NO   real Docker  Docker is not available here",
        "       would be proved by: PROVISION=1 make test",
    ]


def test_a_failure_outweighs_what_passed() -> None:
    assert table({"real Docker": Claim("make test", passed=2, failed=1)})[0].endswith("1 failed")


def test_what_is_not_proved_comes_last() -> None:
    lines = table({"a": Claim("make test"), "b": Claim("make test", passed=1)})
    assert [line.split()[0] for line in lines] == ["yes", "NO", "would"]
