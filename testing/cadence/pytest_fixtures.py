"""pytest: the fixtures `cadence` and `record_cadence`, golden files, stale ones."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from testing.cadence.events import Event
    from testing.cadence.recording import Recording

_OPTION = "--cadence-update"
_TESTS = pytest.StashKey[dict[str, list[str]]]()
_WRITTEN = pytest.StashKey[set[pathlib.Path]]()
_WORKER = "onbeat_cadence"


class GoldenCadence:
    """Compares runs with the golden cadences of one test.

    The golden file stands beside the test and is named after module and test:
    `test_train.test_beat.cadence.toml`.
    """

    def __init__(
        self,
        module: pathlib.Path,
        test: str,
        update: bool,
        written: set[pathlib.Path] | None = None,
    ) -> None:
        self._module = module
        self._test = test
        self._update = update
        self._written = set() if written is None else written

    def path(self, name: str = "") -> pathlib.Path:
        """The golden file, of the test or of its run `name`."""
        from testing.cadence import golden

        test = f"{self._test}.{name}" if name else self._test
        return self._module.with_name(golden.file_name(self._module.stem, test))

    def check(
        self, run: str | os.PathLike[str] | Iterable[Event], *, name: str = ""
    ) -> None:
        """Fails the test unless `run` keeps the golden cadence.

        The first run writes the file and fails; look at the file, commit it.
        With `--cadence-update` a file that does not hold is rewritten, and the
        test still fails in that run.

        Args:
          run: a `Recording`, a `Timeline`, events, or a path that `onbeat` reads.
          name: tells several runs of one test apart.
        """
        __tracebackhide__ = True
        from testing.cadence import golden

        path = self.path(name)
        failure = ""
        if path in self._written:  # the test was run once more, by a plugin say
            failure = f"{path.name} was written in this run. Run again to compare."
        try:
            golden.compare(run, path, self._update)
        except golden.WrittenError as error:
            self._written.add(path)
            failure = str(error)
        except golden.GoldenError as error:
            failure = str(error)
        if failure:  # not from within the handler: pytest would show both
            pytest.fail(failure, pytrace=False)


@pytest.fixture
def cadence(request: pytest.FixtureRequest) -> GoldenCadence:
    """Compares what a run logged with a golden file beside the test.

        def test_beat(cadence, record_cadence):
            with record_cadence() as run:
                train(...)
            cadence.check(run)

    `pytest --cadence-update` rewrites golden files that do not hold.
    """
    update = bool(request.config.getoption(_OPTION))
    written = request.config.stash[_WRITTEN]
    return GoldenCadence(request.path, _test_name(request.node), update, written)


@pytest.fixture
def record_cadence() -> Callable[..., AbstractContextManager[Recording]]:
    """Records what any code logs: `with record_cadence() as run: ...`.

    See `testing.cadence.record_cadence`.
    """
    from testing.cadence.recording import record_cadence as record

    return record


def _test_name(node: Any) -> str:
    """The node without its module: class and function."""
    return str(node.nodeid).split("::", 1)[-1]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("onbeat")
    group.addoption(
        _OPTION,
        action="store_true",
        help="rewrite golden cadences that do not hold; their tests still fail",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TESTS] = {}
    config.stash[_WRITTEN] = set()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Notes the golden file of each test, before any is deselected."""
    tests = item.config.stash[_TESTS].setdefault(str(item.path), [])
    if "cadence" in getattr(item, "fixturenames", ()):
        tests.append(_test_name(item))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist hands over what it has collected."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_WORKER] = session.config.stash[_TESTS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The controller of xdist takes it."""
    tests = getattr(node, "workeroutput", {}).get(_WORKER, {})
    node.config.stash[_TESTS].update(tests)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Lists golden files that no test uses any more."""
    if not config.stash[_TESTS] or not _whole_modules(config):
        return
    stale = _stale(config.stash[_TESTS])
    if stale:
        terminalreporter.section("stale golden cadences")
        for path in stale:
            terminalreporter.write_line(f"{path}: no test uses it. Delete it.")


def _whole_modules(config: pytest.Config) -> bool:
    """Whether every module was collected whole."""
    picked = any("::" in str(argument) for argument in config.args)
    return not picked and not config.getoption("lf", False)


def _stale(collected: dict[str, list[str]]) -> list[pathlib.Path]:
    from testing.cadence import golden

    folders: dict[pathlib.Path, dict[str, set[str]]] = {}
    for module, tests in collected.items():
        path = pathlib.Path(module)
        names = {golden.file_name(path.stem, test) for test in tests}
        folders.setdefault(path.parent, {})[path.stem] = names
    return [
        path
        for folder, tests in folders.items()
        for path in golden.stale(folder, tests)
    ]
