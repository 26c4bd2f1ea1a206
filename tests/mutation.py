# SPDX-License-Identifier: BSD-3-Clause
"""How many small faults in analysis/ the tests notice: `mutation.py [NUMBER [SEED [SECONDS]]]`.

Takes a random sample of places in its functions, the same for the same seed and code. Each place
gets one of Cosmic Ray's faults: another operator, a number one larger or smaller, a condition
turned round, a loop that does not run. A fault is noticed when one of the tests that run the faulty
function fails, or when they no longer end. Faults that change no result are left out: in type
hints, in what guards against a programmer (`strict` of zip, `frozen` of a dataclass), and `cache`.

One process loads pytest and the libraries, and forks once per fault: a fault costs about as much as
its tests. A first run of all tests tells which test runs which function. Prints the faults that no
test noticed, and exits with status 1 if the sample shows that all such faults in the package would
be more than a fifth (binomial test, 5 %): some change no result, and a sample of 30 varies by 15 %.
SECONDS of CPU time are enough: what is left of the sample then is not tried.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import os
import pickle
import random
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hypothesis
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from scipy.stats import binomtest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "scripts/python/switchbench/analysis"
TESTS = ROOT / "tests/python"
# What test files say that use the package, and those of them that start processes or take long.
USES = ("switchbench.analysis", "reports", "synthetic", "simulated", "golden")
SLOW = {f"test_{name}.py" for name in ("controller", "hostile_results", "live", "report_page")}
LIBRARIES = ("networkx", "numpy", "pyarrow", "pydantic", "rich.table", "scipy.stats", "jsonschema")
GUARDS = ("strict", "frozen", "slots")
NOTICED_AT_LEAST = 0.8
BUDGET_S = 20.0  # of tests per fault, in CPU time without it


@dataclass(frozen=True, order=True)
class Place:
    """Where a module can be made faulty."""

    path: Path
    line: int
    column: int
    function: range = field(compare=False)  # the lines of the outermost around it

    def __str__(self) -> str:
        return f"{self.path.relative_to(PACKAGE)}:{self.line}"


class Reduced(ast.NodeTransformer):
    """Removes what changes no result: type hints, guards and caches."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [word for word in node.keywords if word.arg not in GUARDS]
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.decorator_list = [d for d in node.decorator_list if ast.unparse(d) != "cache"]
        return self.generic_visit(node)


def meaning(code: str) -> str:
    """The same text for code that has the same results."""
    return ast.dump(Reduced().visit(ast.parse(code)))


def places() -> dict[Place, list[tuple[str, int]]]:
    """Return where functions can be made faulty: by which operators, and which occurrence."""
    found = defaultdict(list)
    operators = [(name, get_operator(name)) for name in operator_names()]
    for path in sorted(PACKAGE.rglob("*.py")):
        nodes = list(ast_nodes(get_ast(path.read_text())))
        around = sorted(functions(path), key=len, reverse=True)
        for name, operator in operators:
            if operator.arguments():
                continue
            starts = (start for node in nodes for start, _ in operator().mutation_positions(node))
            for occurrence, start in enumerate(starts):
                if inside := [lines for lines in around if start[0] in lines]:
                    found[Place(path, start[0], start[1], inside[0])].append((name, occurrence))
    return found


def sample(number: int, seed: int) -> Iterator[tuple[Place, str]]:
    """Random places, and the code of their module with a fault there."""
    chance = random.Random(seed)
    possible = places()
    for place in chance.sample(sorted(possible), len(possible)):
        if number == 0:
            return
        name, occurrence = chance.choice(possible[place])
        code = place.path.read_text()
        try:
            faulty = mutate_code(code, get_operator(name)(), occurrence)
            if faulty is None or meaning(faulty) == meaning(code):
                continue
        except (SyntaxError, AttributeError):  # the latter of `except a.B`, in Cosmic Ray
            continue
        number -= 1
        yield place, faulty


@dataclass
class Recorder:
    """A plugin of pytest: which tests run which functions of the package, and for how long."""

    callers: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    _running: str = ""

    def _called(self, frame: FrameType, *_: object) -> None:
        code = frame.f_code
        if self._running and code.co_filename.startswith(str(PACKAGE)):
            self.callers[code.co_filename, code.co_firstlineno].add(self._running)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._running = item.nodeid
        start = time.process_time()
        sys.settrace(self._called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.seconds[item.nodeid] = time.process_time() - start
            self._running = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def tests_of(self, place: Place) -> list[str]:
        """Return the fastest tests that run the function at this place; none does: any, it may run
        when the module is loaded."""
        found = set().union(*(self.callers.get((str(place.path), n), ()) for n in place.function))
        chosen: list[str] = []
        left = BUDGET_S
        for name in sorted(found or self.seconds, key=self.seconds.__getitem__):
            left -= self.seconds[name]
            if left < 0 and chosen:
                break
            chosen.append(name)
        return chosen


def functions(path: Path) -> Iterator[range]:
    """Yield the lines of each function of a module, with those of its decorators."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            lines = [node.lineno, *(one.lineno for one in node.decorator_list)]
            yield range(min(lines), (node.end_lineno or node.lineno) + 1)


@dataclass
class Selection:
    """A plugin of pytest: only these tests, in this order."""

    names: list[str]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        rank = {name: number for number, name in enumerate(self.names)}
        items[:] = sorted(
            (item for item in items if item.nodeid in rank), key=lambda item: rank[item.nodeid]
        )


def in_fork(work: Callable[[], int], limit_s: float) -> int:
    """The exit status of some work in a silent process of its own, which ends at the limit."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 3
    try:
        signal.alarm(int(limit_s))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        status = work()
    finally:
        os._exit(status)


def run_pytest(files: Iterable[str], plugin: object, *options: str) -> int:
    """Run the tests of these files."""
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:rerunfailures", "-m", "not slow", *options)
    return int(pytest.main([*options, *files], plugins=[plugin]))


def record() -> Recorder:
    """Run all tests once, without a fault."""
    paths = [path for path in sorted(TESTS.glob("test_*.py")) if path.name not in SLOW]
    files = [
        str(path.relative_to(ROOT)) for path in paths if any(w in path.read_text() for w in USES)
    ]
    with tempfile.NamedTemporaryFile() as kept:

        def work() -> int:
            recorder = Recorder()
            run_pytest(files, recorder)
            Path(kept.name).write_bytes(pickle.dumps(recorder))
            return 0

        in_fork(work, 3600)
        recorder: Recorder = pickle.loads(Path(kept.name).read_bytes())
    return recorder


def noticed(place: Place, faulty: str, recorder: Recorder) -> bool:
    """Whether a test that runs this place fails with the fault."""
    names = recorder.tests_of(place)
    files = sorted({name.partition("::")[0] for name in names})
    get_code = SourceFileLoader.get_code

    def with_fault(loader: SourceFileLoader, name: str) -> CodeType | None:
        if loader.path == str(place.path):
            return compile(faulty, loader.path, "exec")
        return get_code(loader, name)

    def work() -> int:
        SourceFileLoader.get_code = with_fault  # type: ignore[assignment, method-assign]
        return run_pytest(files, Selection(names), "-x", "--tb=line")

    limit = 30 + 10 * sum(recorder.seconds[name] for name in names)
    status = in_fork(work, limit)
    if status in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"the tests of {place} did not run")
    return status != 0


def difference(place: Place, faulty: str) -> str:
    """The changed lines, before and after."""
    texts = place.path.read_text().splitlines(), faulty.splitlines()
    lines = list(difflib.unified_diff(*texts, n=0, lineterm=""))[3:]
    return "\n".join(f"    {line}" for line in lines if not line.startswith("@@"))


def prepare() -> None:
    """Load what every fork needs and no fault changes."""
    os.chdir(ROOT)
    os.environ.pop("SWITCHBENCH_LONG", None)
    sys.path.insert(0, str(ROOT / "scripts/python"))
    for name in LIBRARIES:
        importlib.import_module(name)
    # The same examples each time, and none kept of a fault.
    settings: dict[str, Any] = {"derandomize": True, "database": None, "deadline": None}
    hypothesis.settings.register_profile("mutation", **settings)
    hypothesis.settings.load_profile("mutation")


def spent_s() -> float:
    """The CPU time of all forks so far."""
    times = os.times()
    return times.children_user + times.children_system


def main(number: int = 100, seed: int = 1, limit_s: int = 3600) -> int:
    """The score of a sample; 1 when it is too low, or when it is of too few faults."""
    prepare()
    recorder = record()
    if recorder.failed:
        print("\n".join(["tests fail without a fault:", *recorder.failed]))
        return 1
    print(f"{len(recorder.seconds)} tests, {sum(recorder.seconds.values()):.0f} s", flush=True)
    tried: Counter[Path] = Counter()
    killed: Counter[Path] = Counter()
    for place, faulty in sample(number, seed):
        if spent_s() > limit_s:
            print(
                f"{limit_s} s of CPU time are spent: {number - tried.total()} faults are left out"
            )
            break
        tried[place.path] += 1
        if noticed(place, faulty, recorder):
            killed[place.path] += 1
        else:
            print(f"not noticed: {place}\n{difference(place, faulty)}", flush=True)
    for path in sorted(tried):
        print(f"{killed[path]:4} of {tried[path]:<4} {path.relative_to(PACKAGE)}")
    score = killed.total() / max(1, tried.total())
    print(f"{killed.total()} of {tried.total()} faults noticed: {score:.0%}")
    few = binomtest(killed.total(), max(1, tried.total()), NOTICED_AT_LEAST, alternative="less")
    return int(few.pvalue < 0.05 or 2 * tried.total() < number)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
