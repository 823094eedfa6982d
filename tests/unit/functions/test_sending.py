"""Code that is sent for a function, and results that may be made of what comes back."""

import collections
import copy
import datetime
import enum
import functools
import hashlib
import io
import operator
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy
import pytest

import windrow
from tests.support.worker import PYTHON, unpack_worker
from windrow.errors import CannotSend, FunctionError, PythonMismatch, UntrustedResult, WindrowClientError
from windrow.remote import cluster as clusters
from windrow.remote import pickles
from windrow.remote.code import Folders, pointer_of
from windrow.remote.pickles import Reader
from windrow.worker.calling import brought_class
from windrow.worker.trees import BadCode, Trees, manifest_digest


class Colour(enum.Enum):
    """A class of our own."""

    RED = 1


def _mine() -> frozenset[Path]:
    """This file, as if it had been sent."""
    return frozenset({Path(__file__).resolve()})


def _sdk() -> frozenset[Path]:
    """All of the SDK, as if it had been sent."""
    return frozenset(path.resolve() for path in Path(windrow.__file__).parent.rglob("*.py"))


def module_at(folder: Path, file: str, name: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("def work(): return 1\n")
    made = types.ModuleType(name)
    made.__dict__["__file__"] = str(path)
    exec(compile(path.read_text(), str(path), "exec"), made.__dict__)
    monkeypatch.setitem(sys.modules, name, made)
    return made


@pytest.mark.parametrize(
    ("file", "name"), [("mod_a.py", "mod_a"), ("pkg_a/sub/mod.py", "pkg_a.sub.mod"), ("pkg_b/__init__.py", "pkg_b")]
)
def test_the_folder_that_holds_the_whole_package_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, name: str
) -> None:
    (tmp_path / "code").mkdir()
    pointer = pointer_of(module_at(tmp_path / "code", file, name, monkeypatch).work)
    assert (pointer.root, pointer.module, pointer.name) == (tmp_path / "code", name, "work")


def test_what_is_installed_or_built_in_is_not_sent() -> None:
    assert pointer_of(os.path.join).root is None
    assert pointer_of(numpy.dot).root is None
    assert pointer_of(len) == pointer_of(len)
    assert (pointer_of(len).root, pointer_of(len).module, pointer_of(len).name) == (None, "builtins", "len")


def test_a_home_is_never_sent_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    with pytest.raises(CannotSend, match="a folder of its own"):
        pointer_of(module_at(tmp_path, "mod_home.py", "mod_home", monkeypatch).work)


def test_what_windrowignore_names_stays_here_and_edits_are_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "data.bin").write_text("2")
    (tmp_path / ".windrowignore").write_text("*.bin\n")
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "link.py").symlink_to("a.py")
    folders = Folders()
    before = folders.look(tmp_path)
    assert set(before.manifest) == {"a.py", "link.py", ".windrowignore"}
    assert before.manifest["link.py"] == before.manifest["a.py"]
    assert folders.look(tmp_path).digest == before.digest
    (tmp_path / "a.py").write_text("3")
    assert folders.look(tmp_path).digest != before.digest


def test_a_folder_of_data_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate((256 << 20) + 1)
    with pytest.raises(CannotSend, match=r"\.windrowignore"):
        Folders().look(tmp_path)


@pytest.mark.parametrize(
    "value",
    [
        [1, 2.5, None, "x", b"y", {"a": {1, 2}}, frozenset({3}), 1j, range(3), bytearray(b"z")],
        datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
        collections.OrderedDict(a=1),
        collections.defaultdict(list, a=[1]),
        ValueError("x"),
        Path("a/b"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_plain_data_is_made_of_any_hosts_result(value: Any) -> None:
    found = Reader(pickles.NOTHING, None, False).load(pickle.dumps(value, 5))
    assert repr(found) == repr(value)


def test_arrays_are_plain_data() -> None:
    value = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    found = Reader(pickles.NOTHING, None, False).load(pickle.dumps((value, value[0, 1]), 5))
    assert (found[0] == value).all()
    assert found[1] == value[0, 1]


def test_classes_of_the_code_that_was_sent_are_made() -> None:
    data = pickle.dumps(Colour.RED, 5)
    assert Reader(_mine, None, False).load(data) is Colour.RED
    with pytest.raises(UntrustedResult):
        Reader(pickles.NOTHING, None, False).load(data)


def test_members_of_enumerations_are_made_as_each_python_pickles_them_and_nothing_else_is_read() -> None:
    reader = Reader(_mine, None, False)
    assert reader.load(pickle.dumps(ByGetattr(Colour, "RED"), 5)) is Colour.RED
    for owner, name in ((Colour, "__class__"), (Colour.RED, "value"), (dict, "fromkeys")):
        with pytest.raises(UntrustedResult):
            reader.load(pickle.dumps(ByGetattr(owner, name), 5))


class ByGetattr:
    """Pickles as the reading of an attribute."""

    def __init__(self, *what: Any) -> None:
        self.what = what

    def __reduce__(self) -> Any:
        return getattr, self.what


class Hostile:
    """Pickles as a call of whatever."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], tuple(self.call[1:])


@pytest.mark.parametrize(
    "call",
    [
        (os.system, "true"),
        (subprocess.Popen, ["true"]),
        (eval, "1"),
        (getattr, "a", "upper"),
        (__import__, "os"),
        (pickle.loads, b"N."),
        (functools.partial, len),
        (exec, "1"),
        (pointer_of, len),
    ],
    ids=lambda call: getattr(call[0], "__name__", "?"),
)
def test_a_hostile_result_runs_nothing_here(call: tuple[Any, ...]) -> None:
    # Even where the SDK's own folder is what was sent.
    with pytest.raises(UntrustedResult, match="trusts_host=True"):
        Reader(_sdk, None, False).load(pickle.dumps(Hostile(*call), 5))


def test_a_hostile_result_reaches_nothing_through_our_own_modules() -> None:
    for module, name in ((__name__, "os.system"), (__name__, "Path.home"), (__name__, "subprocess"), (__name__, "io")):
        with pytest.raises(UntrustedResult):
            Reader(_mine, None, False).find(module, name)


def test_a_host_names_only_classes_that_went_there_by_value() -> None:
    reader = Reader(_mine, None, False)
    with pytest.raises(UntrustedResult, match="did not send"):
        reader.load(pickle.dumps(Hostile(brought_class, "builtins.Popen"), 5))
    for odd in ((1,), ("a", "b"), ()):
        with pytest.raises((UntrustedResult, TypeError)):
            reader.load(pickle.dumps(Hostile(brought_class, *odd), 5))


@pytest.mark.parametrize("odd", [(1, 2), ([1], [2]), ({1: 2}, {3: 4}), (Colour.RED, 1)])
def test_together_come_flags_and_nothing_else(odd: tuple[Any, ...]) -> None:
    with pytest.raises(UntrustedResult):
        Reader(_mine, None, False).load(pickle.dumps(Hostile(operator.or_, *odd), 5))


class Trial:
    """As of a package that both have; its file says so below."""

    def __init__(self, score: float) -> None:
        self.metrics, self.frame = {"score": score}, Hostile(pointer_of, "rows")

    @property
    def config(self) -> int:
        raise AssertionError("no code of a package runs")


def test_an_object_of_a_package_comes_as_its_attributes_and_runs_no_code_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = types.ModuleType("some_package")
    package.__dict__.update(__file__="/opt/lib/site-packages/some_package.py", Trial=Trial, work=pointer_of)
    monkeypatch.setitem(sys.modules, "some_package", package)
    monkeypatch.setattr(Trial, "__module__", "some_package")
    monkeypatch.setattr(pointer_of, "__module__", "some_package")
    monkeypatch.setattr(pointer_of, "__qualname__", "work")
    reader = Reader(pickles.NOTHING, None, False)

    found, (other,) = reader.load(pickle.dumps((Trial(0.5), [Trial(2)]), 5))
    assert (found.metrics["score"], other.metrics, found.frame.args) == (0.5, {"score": 2}, ("rows",))
    assert "some_package.Trial as plain data: metrics={'score': 0.5}" in repr(found)
    with pytest.raises(AttributeError, match=r"it has metrics, frame, and no config\..*trusts_host=True"):
        print(found.config)
    assert copy.copy(found).metrics == found.metrics
    assert capsys.readouterr().err.count("some_package.Trial came as plain data") == 1

    for refused in (Hostile(pointer_of, 1), pointer_of, [Trial], {1: Hostile(pointer_of, 1)}):
        with pytest.raises(UntrustedResult, match="some_package"):
            reader.load(pickle.dumps(refused, 5))
    trial = Trial(1)
    trial.metrics = {"score": Hostile(os.system, "true")}  # type: ignore[dict-item]
    with pytest.raises(UntrustedResult, match="some_package"):
        reader.load(pickle.dumps(trial, 5))


def test_what_cannot_be_pickled_is_not_sent() -> None:
    with pytest.raises(CannotSend, match="The arguments of f cannot be pickled"):
        pickles.dump(
            ((io.StringIO().write,), {}, sys._getframe()), "The arguments of f", {}, by_value=False, is_main_sent=False
        )


@pytest.mark.parametrize(
    "name",
    ["../a", "/etc/a", "a/../../b", "a//b", "./a", ".", "", "a\0b", "x" * 1025],
    ids=lambda name: repr(name)[:12],
)
def test_no_file_is_written_outside_the_code(tmp_path: Path, name: str) -> None:
    manifest = {name: "0" * 64}
    with pytest.raises(BadCode):
        Trees(tmp_path).offer(manifest_digest(manifest), manifest)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_that_is_a_folder_too_is_refused(tmp_path: Path) -> None:
    trees, empty = Trees(tmp_path), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    manifest = {"a": empty, "a/b": empty}
    assert trees.offer(manifest_digest(manifest), manifest) == [empty]
    trees.put(empty, b"")
    with pytest.raises(BadCode):
        trees.folder(manifest_digest(manifest))


def test_old_states_go_and_used_ones_stay(tmp_path: Path) -> None:
    trees, digests = Trees(tmp_path), []
    for number in range(12):
        data = str(number).encode()
        manifest = {"a.py": hashlib.sha256(data).hexdigest()}
        digests.append(manifest_digest(manifest))
        trees.offer(digests[-1], manifest)
        trees.put(manifest["a.py"], data)
        made = trees.folder(digests[-1])
        assert made is not None
        os.utime(made, (number, number))
    trees.forget_old({digests[0]})
    kept = {path.name for path in (tmp_path / "trees").iterdir()}
    assert kept == {digest[:32] for digest in (digests[0], *digests[4:])}
    assert len(list((tmp_path / "blobs").iterdir())) == 9


def test_another_python_is_refused_in_one_sentence() -> None:
    clusters._check_python(list(sys.version_info[:3]))
    with pytest.raises(PythonMismatch, match=r"The host runs Python 3\.9\.2 and this is .* Nothing was sent\."):
        clusters._check_python([3, 9, 2])


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("CPU:4+", {"cpus": 4}),
        ("A100:2", {"gpus": 2, "gpu_model": "A100"}),
        ("CPU", {"cpus": 1}),
        ("cpu:2", {"cpus": 2}),
    ],
)
def test_an_instance_type_says_what_is_needed(text: str, needs: dict[str, Any]) -> None:
    assert clusters._needs(text) == needs


@pytest.mark.parametrize("text", ["CPU:0", "CPU:x", "CPU:-1", "A100:x", ""])
def test_a_wrong_instance_type_is_refused(text: str) -> None:
    with pytest.raises(WindrowClientError):
        windrow.cluster("c", instance_type=text)


def test_a_function_on_no_cluster_says_what_to_do() -> None:
    with pytest.raises(FunctionError, match=r"\.to\(cluster\)"):
        windrow.function(os.path.join)("a", "b")


def test_scripts_import_us_where_none_of_our_libraries_is(tmp_path: Path) -> None:
    unpack_worker(tmp_path)
    text = "import windrow as rh; f = rh.function(len); rh.cluster('a', 'CPU:4+', default_env=rh.env(reqs=['numpy']))"
    done = subprocess.run(
        [PYTHON, "-S", "-c", text], env={"PYTHONPATH": str(tmp_path / clusters.LIB)}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
