# SPDX-License-Identifier: BSD-3-Clause
"""Stages of scripts/test: static checks, builds, unit tests, Python, system and guest tests.

Without --all, the quick stages run: static checks ("gates"), builds by both compilers, unit tests
and tests of the transports with sanitizers, tests/python, and the smoke tests of tests/system. They
take about 12 minutes on two cores, 18 with the installation of all packages. --all adds the other
builds and the tests of each build, long unit tests in one build, the coverage of the C code, fuzz
tests, clang-tidy, the mutation test of analysis/, tests of packages, tests that are marked slow,
all of tests/system, and tests in virtual machines ("guests").

A stage runs even if an earlier one failed, unless it needs a build that failed. Stages that measure
no rates or times share the cores: the gates; tests/python and the tests of packages; two parts of
tests/system. clang-tidy runs beside the unit tests at low priority. Stages that measure rates or
times run alone. At the end, each stage's result and duration are printed. The last stage checks
that the tests left nothing behind on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import gettempdir

ROOT = Path(__file__).resolve().parent.parent
BUILDS = ROOT / "build-test"
TOOLS = ROOT / ".venv" / "bin"
SKIPPED = 77
NO_TESTS = 5  # exit status of pytest where it collected no test
SYSTEM = "tests/system"
# Marker expressions that select the quick tests of tests/python and of tests/system.
NOT_SLOW = "not slow"
SMOKE = "smoke"


def system_tests(*names: str) -> tuple[str, ...]:
    """Return the paths of test files in tests/system, by their names without `test_`."""
    return tuple(f"{SYSTEM}/test_{name}.py" for name in names)


# Tests of tests/system that build, install and unpack packages: they measure no rates or times.
PACKAGES = system_tests("install")
# Tests of how runs start, fail and end, in two parts: labs of both can exist at the same time.
HOSTS = system_tests("ssh", "push", "slurm", "doctor_hosts")
FAULTS = system_tests("faults", "docs")
# Tests that run the example configurations, each in its own lab, where rates do not matter.
EXAMPLES = system_tests("conf")

# Tests that measure are repeated after a failure. A short pause of this machine, if it is virtual,
# spoils one attempt; an error in the project spoils all three. pytest names each repeated test.
TRIES = 3
AGAIN = ("--reruns", str(TRIES - 1), "--reruns-delay", "2", "-r", "aR")

# tests/python measures no times, so it runs on all cores.
CORES = ("-n", str(os.cpu_count()))

# Fuzz targets of tests/fuzz: parsers of documents, and of data from the network.
FUZZED = ("datagram", "document", "frame", "probe_answer", "message")

RELEASE = "build release"
COVERAGE = "coverage"
NODE = "engine/switchbench-node"

# Line that Ninja prints before each command.
PROGRESS = re.compile(r"^\[\d+/\d+\] ")

# Lines in which Meson prints the numbers of passed, failed and skipped tests.
TOTALS = re.compile(r"^(?:Ok|Fail|Skipped|Timeout): +\d+", re.MULTILINE)

# Programs of tests/ that are checked by mypy.
PROGRAMS = tuple(f"tests/{name}.py" for name in ("stages", "mutation"))

# Tests that do not all run without --all. mypy checks their types, to find names that have changed.
# mypy accepts only one module of each name, so SAME_NAMES are excluded.
LONG_TESTS = ("tests/system", "tests/vm")
SAME_NAMES = ("tests/vm/guests/__main__.py",)

# Arguments of tests/mutation.py: number of faults, random seed, seconds of CPU time.
FAULTS_TRIED = ("40", "1", "600")

# Words that codespell accepts: neighbour discovery, a field of pyroute2, a column's heading, a word
# in HPL's output, and words that tests misspell on purpose.
NOT_MISSPELT = "nd,parms,reord,equil,patern,modul,modle,sise"


@dataclass(frozen=True)
class Build:
    """Build of the engine: compiler, options of Meson, and the way its tests run."""

    name: str
    compiler: str
    options: tuple[str, ...] = ()  # options of `meson setup`
    slowness: int = 1  # factor for the time limits of its tests
    quick: bool = True  # true: built without --all, too
    tested: bool = False  # true: its tests run without --all, too
    targets: tuple[str, ...] = ()  # targets of Ninja; empty: all
    long: bool = False  # true: with --all, its long tests run, too
    environment: dict[str, str] = field(default_factory=dict)  # variables for its tests

    @property
    def folder(self) -> Path:
        """Return the build folder."""
        return BUILDS / self.name


MATRIX = (
    Build("gcc", "gcc", long=True),
    Build("clang", "clang"),
    Build("no-dpdk", "gcc", ("-Ddpdk=disabled",), quick=False),
    Build(
        "sanitized",
        "gcc",
        ("-Db_sanitize=address,undefined", "-Doptimization=1"),
        slowness=4,
        tested=True,
        targets=("meson-test-prereq",),
        environment={"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
    ),
    Build(
        COVERAGE,
        "gcc",
        ("-Db_coverage=true", "-Doptimization=1"),
        slowness=2,
        quick=False,
        targets=("meson-test-prereq", NODE),
    ),
)


@dataclass(frozen=True)
class Outcome:
    """Result of a stage: state (`passed`, `failed` or `skipped`), printed text, and duration."""

    state: str
    text: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Stage:
    """Stage of scripts/test; it cannot run if the stage named by `needs` did not pass."""

    name: str
    run: Callable[[], Outcome]
    needs: str | None = None


def execute(
    command: Sequence[str], environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in the project's root; return its status, with both outputs in one text."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def sources(*suffixes: str) -> list[str]:
    """Return the project's files with one of the given endings, as paths below the root."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    found = execute([*words, *(f"*{suffix}" for suffix in suffixes)]).stdout.splitlines()
    return sorted(name for name in found if (ROOT / name).is_file())


def plain(*command: str) -> Outcome:
    """Run a stage that consists of one command, which passes with exit status 0."""
    try:
        done = execute(command)
    except FileNotFoundError:
        return Outcome("failed", f"{command[0]} is not installed; run scripts/setup")
    return Outcome("failed" if done.returncode else "passed", done.stdout)


def clang_tidy(build: Build) -> Outcome:
    """Run clang-tidy at low priority on all C files that a build compiles, except the tests."""
    words = ("nice", "-n", "19", "run-clang-tidy", "-quiet", "-p", str(build.folder))
    return plain(*words, f"^{ROOT}/(?!tests/|build)")


def compile_engine(build: Build) -> Outcome:
    """Configure the build, unless this was done before, and build it; warnings are errors."""
    if not (build.folder / "build.ninja").exists():
        done = execute(
            ["meson", "setup", str(build.folder), str(ROOT), "-Dwerror=true", *build.options],
            {"CC": f"ccache {build.compiler}" if shutil.which("ccache") else build.compiler},
        )
        if done.returncode:
            return Outcome("failed", done.stdout)
    done = execute(["ninja", "-k0", "-C", str(build.folder), *build.targets])
    faults = "\n".join(line for line in done.stdout.splitlines() if not PROGRESS.match(line))
    return Outcome("failed" if done.returncode else "passed", faults)


def results(log: Path) -> Iterator[str]:
    """Yield a line with the result of each test in Meson's log.

    After a skipped test comes the last line of its output, which has the reason.
    """
    for line in log.read_text().splitlines():
        test = json.loads(line)
        yield f"{test['name']}: {test['result']} ({test['duration']:.1f} s)"
        if test["result"] == "SKIP":
            output = (test.get("stdout") or "") + (test.get("stderr") or "")
            yield from output.strip().splitlines()[-1:]


def unit_tests(build: Build, long: bool) -> Outcome:
    """Run a build's tests by Meson, and repeat those that failed.

    With `long`, the suite `long` and the long variants of other tests run, too.
    """
    log = build.folder / "meson-logs" / "testlog.json"
    command = ["meson", "test", "-C", str(build.folder), "--no-rebuild", "--print-errorlogs"]
    command += ["--timeout-multiplier", str(build.slowness)]
    if not long:
        command += ["--no-suite", "long"]
    environment = build.environment | ({"SWITCHBENCH_LONG": "1"} if long else {})
    text: list[str] = []
    names: list[str] = []
    for _ in range(TRIES):
        log.unlink(missing_ok=True)
        done = execute([*command, *names], environment)
        if not log.exists():
            return Outcome("failed", "\n".join([*text, done.stdout]))
        if done.returncode:
            text.append(done.stdout)
        text += [*results(log), *TOTALS.findall(done.stdout)]
        names = [
            test["name"].rpartition(" / ")[2]  # `switchbench:unit / test_guard`
            for test in map(json.loads, log.read_text().splitlines())
            if done.returncode and test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")
        ]
        if not names:
            break
        text.append(f"tried again: {', '.join(names)}")
    return Outcome("failed" if done.returncode else "passed", "\n".join(text))


def fuzz() -> Outcome:
    """Build the fuzz targets with clang; run each for a minute, one per core, without a corpus."""
    library = execute(["clang", "--print-file-name=libclang_rt.fuzzer-x86_64.a"]).stdout.strip()
    if not Path(library).is_absolute():
        return Outcome("skipped", "clang has no fuzzer here: install libclang-rt-dev")
    sanitizers = ("-Dfuzz=true", "-Db_sanitize=address,undefined", "-Db_lundef=false")
    targets = tuple(f"tests/fuzz/fuzz_{name}" for name in FUZZED)
    build = Build("fuzz", "clang", sanitizers, targets=targets)
    outcome = compile_engine(build)
    if outcome.state != "passed":
        return outcome

    def run(target: str) -> subprocess.CompletedProcess[str]:
        return execute(
            [str(build.folder / target), "-max_total_time=60", "-timeout=10", "-rss_limit_mb=2048"],
            {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"},
        )

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ended = pool.map(run, targets)
    for target, done in zip(targets, ended, strict=True):
        closing = done.stdout.splitlines()[-60 if done.returncode else -1 :]
        state = "failed" if done.returncode else outcome.state
        outcome = Outcome(state, "\n".join([outcome.text, target, *closing]))
    return outcome


def coverage() -> Outcome:
    """Report the lines of each C file that tests have run, in the build with coverage.

    The unit tests have run before; here, tests run the engine as a program. The counts are deleted
    at the end, so that the next report begins at zero.
    """
    folder = BUILDS / COVERAGE
    command = [str(TOOLS / "pytest"), "-q", "tests/python/test_node.py"]
    program = execute(command, {"SWITCHBENCH_NODE": str(folder / NODE)})
    words = ("--root", str(ROOT), "--exclude", "tests/", "--delete", "--sort", "uncovered-percent")
    counted = plain(str(TOOLS / "gcovr"), *words, str(folder))
    failed = program.returncode or counted.state != "passed"
    return Outcome("failed" if failed else "passed", program.stdout + counted.text)


def pytest(
    places: Sequence[str], only: str, arguments: Sequence[str], aside: bool = False
) -> Outcome:
    """Run Python tests in folders or files; `only` is a marker expression, "" for all tests.

    The output is shown while the tests run; with `aside`, for stages that run together, it is shown
    at their end.
    """
    marked = ["-m", only] if only else []
    command = [str(TOOLS / "pytest"), "-q", *marked, *places, *arguments]
    run = execute if aside else partial(subprocess.run, cwd=ROOT, check=False, text=True)
    done = run(command)
    if done.returncode == NO_TESTS:
        return Outcome("skipped", "no test was chosen")
    return Outcome("failed" if done.returncode else "passed", done.stdout or "")


def guest_tests(arguments: Sequence[str]) -> Outcome:
    """Run the tests in virtual machines; skip them, with the reason, where none can boot here."""
    ready = execute([str(TOOLS / "python"), "tests/vm/guests"])
    if ready.returncode == SKIPPED:
        return Outcome("skipped", ready.stdout)
    if ready.returncode != 0:
        return Outcome("failed", ready.stdout)
    return pytest(["tests/vm"], "", [*AGAIN, *arguments])


def processes() -> Iterator[str]:
    """Yield a line for each process that runs a program of this source tree or its .venv."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            program = os.readlink(entry / "exe")
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue  # the process has ended, is a kernel thread, or belongs to another user
        ours = Path(program.removesuffix(" (deleted)")).is_relative_to(ROOT)
        if ours or command.startswith(f"{TOOLS}/"):
            yield f"process {entry.name}: {command}"


def traces() -> set[str]:
    """Return the traces that tests can leave behind on this machine, each in words.

    Traces are network namespaces, interfaces, hugepages, folders and processes.
    """
    found = {f"network namespace {path.name}" for path in Path("/run/netns").glob("sb*")}
    found |= {f"interface {path.name}" for path in Path("/sys/class/net").glob("sb*")}
    found |= {f"hugepage file {path}" for path in Path("/dev/hugepages").glob("*")}
    for pool in Path("/sys/kernel/mm/hugepages").glob("hugepages-*"):
        taken = int((pool / "nr_hugepages").read_text()) - int(
            (pool / "free_hugepages").read_text()
        )
        found |= {f"{pool.name} in use, page {number}" for number in range(taken)}
    found |= {f"folder of guests {path}" for path in Path(gettempdir()).glob("sb-guests-*")}
    return found | set(processes())


def leftovers(before: set[str], patience_s: float = 5.0) -> Outcome:
    """Check that no traces were added to those `before`; wait some seconds until they disappear."""
    limit = time.monotonic() + patience_s
    while (left := traces() - before) and time.monotonic() < limit:
        time.sleep(0.2)
    return Outcome("failed" if left else "passed", "\n".join(sorted(left)))


def gates() -> list[Stage]:
    """Return the stages of static checks (format, lint, types, imports, spelling).

    `--only gates` runs only these stages.
    """
    c_files = sources(".c", ".h")
    tool = {name: str(TOOLS / name) for name in ("ruff", "mypy")}
    python = [name for name in ("scripts", "tests", "doc") if (ROOT / name).exists()]
    typed = [
        name for name in sources(".py") if name.startswith(LONG_TESTS) and name not in SAME_NAMES
    ]
    spelled = sources(".c", ".h", ".py", ".md", ".yaml", ".build", ".options", ".toml", ".sh")
    return [
        Stage(
            "gates: clang-format", partial(plain, "clang-format", "--dry-run", "-Werror", *c_files)
        ),
        Stage("gates: ruff check", partial(plain, tool["ruff"], "check", "--quiet", *python)),
        Stage("gates: ruff format", partial(plain, tool["ruff"], "format", "--check", *python)),
        Stage("gates: mypy", partial(plain, tool["mypy"], "--strict", "--no-error-summary")),
        Stage("gates: mypy tests", partial(plain, tool["mypy"], "--strict", *PROGRAMS, *typed)),
        Stage("gates: imports", partial(plain, str(TOOLS / "lint-imports"), "--no-cache")),
        Stage(
            "gates: codespell",
            partial(plain, "codespell", "--ignore-words-list", NOT_MISSPELT, *spelled),
        ),
    ]


def timed(stage: Stage) -> Outcome:
    """Run one stage; return its outcome with the duration. An exception counts as a failure."""
    start = time.monotonic()
    try:
        outcome = stage.run()
    except Exception as fault:
        outcome = Outcome("failed", f"{type(fault).__name__}: {fault}")
    return Outcome(outcome.state, outcome.text, time.monotonic() - start)


class Report:
    """Report of all stages: it runs stages, prints each outcome and a summary at the end."""

    def __init__(self, only: Sequence[str]) -> None:
        self._only = only
        self._outcomes: dict[str, Outcome] = {}

    def _chosen(self, stages: Iterable[Stage]) -> list[Stage]:
        return [
            stage
            for stage in stages
            if not self._only or any(word in stage.name for word in self._only)
        ]

    def _close(self, stage: Stage, outcome: Outcome, quiet: bool) -> None:
        self._outcomes[stage.name] = outcome
        if outcome.text and (outcome.state != "passed" or not quiet):
            print(outcome.text.rstrip())
        print(f"== {stage.name}: {outcome.state} ({outcome.seconds:.1f} s)", flush=True)

    def _run(self, stage: Stage) -> Outcome:
        needed = self._outcomes.get(stage.needs or "")
        if needed and needed.state != "passed":
            return Outcome("failed", f"{stage.name} could not run: {stage.needs} failed")
        return timed(stage)

    def together(self, stages: Iterable[Stage], quiet: bool = True) -> None:
        """Run stages at the same time, sharing the cores."""
        chosen = self._chosen(stages)
        if chosen and not quiet:
            print(f"== {', '.join(stage.name for stage in chosen)} ...", flush=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for stage, outcome in zip(chosen, pool.map(self._run, chosen), strict=True):
                self._close(stage, outcome, quiet)

    def in_turn(
        self, stages: Iterable[Stage], quiet: bool = False, beside: Sequence[Stage] = ()
    ) -> None:
        """Run stages one after the other, and the stages `beside` in the background meanwhile."""
        with ThreadPoolExecutor(1) as pool:
            going = [(stage, pool.submit(self._run, stage)) for stage in self._chosen(beside)]
            for stage in self._chosen(stages):
                print(f"== {stage.name} ...", flush=True)
                self._close(stage, self._run(stage), quiet)
            for stage, outcome in going:
                self._close(stage, outcome.result(), quiet=True)

    def summary(self) -> int:
        """Print the state and duration of each stage; return the exit status of scripts/test."""
        print("\n   time  stage")
        for name, outcome in self._outcomes.items():
            print(f"{outcome.seconds:6.1f}s  {outcome.state:8} {name}")
        states = [outcome.state for outcome in self._outcomes.values()]
        total = sum(outcome.seconds for outcome in self._outcomes.values())
        print(f"\nStages, {total:.0f} s of work:")
        counts = (f"{states.count(state)} {state}" for state in ("passed", "failed", "skipped"))
        print(", ".join(counts))
        return 1 if "failed" in states or not states else 0


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the parsed arguments of scripts/test, and the arguments after `--` for pytest."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(prog="scripts/test", description=__doc__)
    parser.add_argument("--all", action="store_true", help="every build and test")
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORD", help="stages with WORD in the name"
    )
    return parser.parse_args(arguments[:at]), list(arguments[at + 1 :])


def main(arguments: Sequence[str]) -> int:
    """Run all chosen stages; return 0 if at least one was chosen and none failed, else 1."""
    options, for_pytest = parse(arguments)
    before = traces()
    report = Report(options.only)
    report.together(gates())
    builds(report, options.all)
    if options.all:
        long_tests(report, for_pytest)
    else:
        quick_tests(report, for_pytest)
    report.in_turn([Stage("machine left as found", partial(leftovers, before))])
    return report.summary()


def builds(report: Report, long: bool) -> None:
    """Run the stages that build the engine, run the builds' tests, and build the release.

    With `long`, all builds and tests run, otherwise only the quick ones.
    """
    chosen = [build for build in MATRIX if build.quick or long]
    report.in_turn(
        (Stage(f"build {build.name}", partial(compile_engine, build)) for build in chosen),
        quiet=True,
    )
    tests = [
        Stage(
            f"unit tests {build.name}",
            partial(unit_tests, build, long and build.long),
            f"build {build.name}",
        )
        for build in chosen
        if build.tested or long
    ]
    if long:
        clang = next(build for build in MATRIX if build.name == "clang")
        tidy = Stage("clang-tidy", partial(clang_tidy, clang), "build clang")
        report.in_turn(tests, beside=[tidy])
        counted = Stage("C coverage", coverage, f"unit tests {COVERAGE}")
        report.in_turn([counted, Stage("fuzz", fuzz)])
    else:
        report.in_turn(tests)
    setup = [str(ROOT / "scripts/setup"), "--no-packages", *([] if long else ["--use"])]
    report.in_turn([Stage(RELEASE, partial(plain, *setup))], quiet=True)


def quick_tests(report: Report, arguments: Sequence[str]) -> None:
    """Run the quick tests of tests/python, and the smoke tests of tests/system."""
    python = partial(pytest, ["tests/python"], NOT_SLOW, [*CORES, *arguments])
    smokes = partial(pytest, [SYSTEM], SMOKE, [*AGAIN, *arguments])
    report.in_turn(
        [Stage("tests/python", python, RELEASE), Stage(f"{SYSTEM} smokes", smokes, RELEASE)]
    )


def long_tests(report: Report, arguments: Sequence[str]) -> None:
    """Run all tests of tests/python, tests/system and tests/vm, and the mutation test."""

    def stage(name: str, places: Sequence[str], *words: str, aside: bool = False) -> Stage:
        run = partial(pytest, places, "", [*words, *arguments], aside=aside)
        return Stage(name, run, RELEASE)

    report.together(
        [
            stage("tests/python", ["tests/python"], *CORES, aside=True),
            stage(f"{SYSTEM} packages", PACKAGES, aside=True),
        ],
        quiet=False,
    )
    mutation = partial(plain, str(TOOLS / "python"), "tests/mutation.py", *FAULTS_TRIED)
    report.in_turn([Stage("faults in analysis noticed", mutation, RELEASE)])
    report.together(
        [
            stage(f"{SYSTEM} hosts", HOSTS, *AGAIN, aside=True),
            stage(f"{SYSTEM} faults", FAULTS, *AGAIN, aside=True),
        ],
        quiet=False,
    )
    apart = (f"--ignore={name}" for name in (*PACKAGES, *HOSTS, *FAULTS, *EXAMPLES))
    report.in_turn(
        [
            stage(f"{SYSTEM} examples", EXAMPLES, *CORES, *AGAIN),
            stage(SYSTEM, [SYSTEM], *AGAIN, *apart),
            Stage("tests/vm", partial(guest_tests, arguments), RELEASE),
        ]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
