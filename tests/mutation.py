# SPDX-License-Identifier: BSD-3-Clause
"""Mutation test of analysis/: `mutation.py [NUMBER [SEED [SECONDS]]]`.

The program makes NUMBER small faults in functions of the package, one at a time, and counts how
many of them the tests notice. The places are a random sample, equal for equal SEED and code. Cosmic
Ray makes the faults: another operator, a number one larger or smaller, an inverted condition, a
loop that does not run. A fault is noticed if one of the tests that run the faulty function fails,
or if these tests no longer end. Faults that change no result are excluded: in type hints, in
decorators, and in checks of the code itself (`strict` of zip, `frozen` of a dataclass).

A first run of all tests records which test runs which function. The process loads pytest and all
libraries once, and forks for each fault, so that a fault takes about the time of its tests. After
SECONDS of CPU time, not counting the first run, the rest of the sample is not tried.

Faults that no test noticed are printed. The exit status is 1 if less than four fifths of all faults
would be noticed, at 5 % significance (binomial test). The limit is below 100 %, because some faults
change no result. A sample of 30 faults varies by 15 %.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import os
import pickle
import random
import re
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from itertools import count
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import hypothesis
import pytest
from cosmic_ray import commands
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import use_db
from cosmic_ray.work_item import MutationSpec
from scipy.stats import binomtest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "scripts/python/switchbench/analysis"
TESTS = ROOT / "tests/python"
# Words in the test files that use the package, and such files that start processes or take long.
USES = ("switchbench.analysis", "synthetic", "simulated", "golden")
SLOW = {f"test_{name}.py" for name in ("controller", "hostile_results", "live", "report_page")}
LIBRARIES = ("networkx", "numpy", "pyarrow", "pydantic", "rich.table", "scipy.stats", "jsonschema")
GUARD = re.compile(r"\b(strict|frozen|slots)=$")
NO_RESULT = re.compile("RemoveDecorator|_BitOr_")  # faults in decorators (caches) and `X | None`
NOTICED_AT_LEAST = 0.8
BUDGET_S = 60.0  # CPU time of the tests per fault, as traced: about three times the real time


def sample(number: int, seed: int) -> Iterator[tuple[MutationSpec, str]]:
    """Yield `number` random faults in functions, each with its module's code after the change."""
    with tempfile.TemporaryDirectory() as folder, use_db(f"{folder}/all") as every:
        commands.init(sorted(PACKAGE.rglob("*.py")), every, {})
        possible = sorted((item.mutations[0] for item in every.pending_work_items), key=str)
    chance = random.Random(seed)
    places = defaultdict(list)
    for fault in possible:
        places[fault.module_path, fault.start_pos].append(fault)
    for place in chance.sample(sorted(places), len(places)):
        if number == 0:
            return
        fault = chance.choice(places[place])
        code = fault.module_path.read_text()
        before = code.splitlines()[fault.start_pos[0] - 1][: fault.start_pos[1]]
        function = (fault.definition_name or "A").lstrip("_")[0].islower()  # false for a class
        if not function or NO_RESULT.search(fault.operator_name) or GUARD.search(before):
            continue
        with suppress(SyntaxError, AttributeError):  # Cosmic Ray raises the latter for `except a.B`
            faulty = mutate_code(code, get_operator(fault.operator_name)(), fault.occurrence)
            if faulty is not None:
                ast.parse(faulty)
                number -= 1
                yield fault, faulty


@dataclass
class Recorder:
    """Plugin of pytest that records each test's CPU time and the functions that the test calls.

    Only functions of the tested package are recorded.
    """

    callers: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    _running: str = ""

    def _called(self, frame: FrameType, *_: object) -> None:
        code = frame.f_code
        if self._running and code.co_filename.startswith(str(PACKAGE)):
            self.callers[code.co_filename, code.co_name].add(self._running)

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

    def tests_of(self, fault: MutationSpec) -> list[str]:
        """Return the fastest tests that run the faulty function, within BUDGET_S of CPU time.

        The fastest case of each test comes first, since the cases of one test notice similar
        faults. Where no test runs the function, tests are chosen of all: the function may run while
        its module is loaded.
        """
        found = self.callers.get((str(fault.module_path), fault.definition_name or ""))
        chosen: list[str] = []
        cases: dict[str, Iterator[int]] = defaultdict(count)  # numbers of a test's cases
        fastest = sorted(found or self.seconds, key=self.seconds.__getitem__)
        left = BUDGET_S
        for name in sorted(fastest, key=lambda name: next(cases[name.partition("[")[0]])):
            left -= self.seconds[name]
            if left < 0 and chosen:
                break
            chosen.append(name)
        return chosen


def in_fork(work: Callable[[], int], limit_s: float) -> int:
    """Run `work` in a forked process without output; return the exit status of the process.

    The process is killed after `limit_s`.
    """
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


def run_pytest(tests: Iterable[str], *plugins: object) -> int:
    """Run tests of pytest in the given order until one fails; return pytest's exit status."""
    options = ("-q", "-x", "--tb=line", "-p", "no:cacheprovider", "-p", "no:rerunfailures")
    more = ("--hypothesis-profile=mutation", "-m", "not slow")
    return int(pytest.main([*options, *more, *tests], plugins=plugins))


def record() -> Recorder:
    """Run all tests of the package once, without a fault; return the records of this run."""
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


def noticed(fault: MutationSpec, faulty: str, recorder: Recorder) -> bool:
    """Return true where a test that runs the faulty function fails or exceeds its time limit."""
    names = recorder.tests_of(fault)
    get_code = SourceFileLoader.get_code

    def with_fault(loader: SourceFileLoader, name: str) -> CodeType | None:
        if loader.path == str(fault.module_path):
            return compile(faulty, loader.path, "exec")
        return get_code(loader, name)

    def work() -> int:
        SourceFileLoader.get_code = with_fault  # type: ignore[assignment, method-assign]
        return run_pytest(names)

    limit = 30 + 10 * sum(recorder.seconds[name] for name in names)
    status = in_fork(work, limit)
    if status in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"the tests of {fault} did not run")
    return status != 0


def difference(path: Path, faulty: str) -> str:
    """Return the lines in which a file differs from its faulty code, as a unified diff."""
    texts = path.read_text().splitlines(), faulty.splitlines()
    lines = list(difflib.unified_diff(*texts, n=0, lineterm=""))[3:]
    return "\n".join(f"    {line}" for line in lines if not line.startswith("@@"))


def prepare() -> None:
    """Import the libraries and set up Hypothesis, before the process forks for each fault."""
    os.chdir(ROOT)
    os.environ.pop("SWITCHBENCH_LONG", None)
    sys.path.insert(0, str(ROOT / "scripts/python"))
    for name in LIBRARIES:
        importlib.import_module(name)
    # Hypothesis uses equal examples in each run, and stores no examples that failed by a fault.
    settings: dict[str, Any] = {"derandomize": True, "database": None, "deadline": None}
    hypothesis.settings.register_profile("mutation", **settings)


def spent_s() -> float:
    """Return the CPU time of all forked processes so far, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def main(number: int = 100, seed: int = 1, limit_s: float = 3600) -> int:
    """Try a sample of faults and print the share that tests notice; return the exit status.

    The status is 1 where the share is too low, where less than half of the sample was tried, or
    where tests fail without a fault.
    """
    prepare()
    recorder = record()
    if recorder.failed:
        print("\n".join(["tests fail without a fault:", *recorder.failed]))
        return 1
    print(f"{len(recorder.seconds)} tests, {sum(recorder.seconds.values()):.0f} s", flush=True)
    tried = killed = 0
    limit_s += spent_s()
    for fault, faulty in sample(number, seed):
        if spent_s() > limit_s:
            print(f"no CPU time is left: {number - tried} faults are left out")
            break
        tried += 1
        if noticed(fault, faulty, recorder):
            killed += 1
            continue
        place = f"{fault.module_path.relative_to(PACKAGE)}:{fault.start_pos[0]}"
        print(f"not noticed: {place}\n{difference(fault.module_path, faulty)}", flush=True)
    tried = max(1, tried)
    print(f"{killed} of {tried} faults noticed: {killed / tried:.0%}")
    few = binomtest(killed, tried, NOTICED_AT_LEAST, alternative="less")
    return int(few.pvalue < 0.05 or 2 * tried < number)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
