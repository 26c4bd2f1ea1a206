# SPDX-License-Identifier: BSD-3-Clause
"""A Python that brings everything with it: the interpreter that runs this, collected like the
engine (`collect`), its standard library, and the packages of the command.

    python3.11              starts the interpreter
    libexec/python3.11      the interpreter
    lib/loader, lib/*.so.*  as with the engine
    lib/python3.11/         the standard library; its sitecustomize finds the packages
    packages/               the packages
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

from ..base.errors import ConfigurationError
from ..hosts import collect
from . import packages

_SITE = '''\
# SPDX-License-Identifier: BSD-3-Clause
"""The packages of this folder, and no others."""

import os
import sys

sys.path[:] = [path for path in sys.path if path.startswith(sys.prefix + os.sep)]
sys.path.append(os.path.join(sys.prefix, "packages"))
'''

# What a command without windows and without a compiler does not need.
_LEFT_OUT = (
    *(
        "__pycache__",
        "ensurepip",
        "idlelib",
        "lib2to3",
        "test",
        "tests",
        "tkinter",
        "turtledemo",
        "venv",
    ),
    *("dist-packages", "site-packages", "config-*", "sitecustomize.py", "LICENSE.txt"),
    *("_tkinter*.so", "_dbm*.so", "_gdbm*.so", "nis*.so", "_test*.so", "_xxtest*.so"),
)


def write(folder: Path) -> Path:
    """Makes the folder; the program in it that starts Python. ConfigurationError where this Python
    can't be carried away."""
    interpreter = Path(os.path.realpath(sys.executable))
    if collect.is_collected(interpreter):
        shutil.copytree(interpreter.parent, folder, symlinks=True)
        return folder / interpreter.name
    library = Path(sysconfig.get_path("stdlib"))
    if not (library / "os.py").is_file():
        raise ConfigurationError(f"the standard library of {interpreter} is not in {library}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="python-", dir=folder.parent) as name:
        place = Path(name)
        shutil.copytree(library, place / "lib", ignore=shutil.ignore_patterns(*_LEFT_OUT))
        (place / "lib" / "sitecustomize.py").write_text(_SITE)
        packages.compile_all(place / "lib")
        packages.copy(place / "packages")
        modules = [path for path in sorted(place.rglob("*.so*")) if path.is_file()]
        collect.gather(interpreter, loaded=modules).write(folder)
        (place / "lib").rename(folder / "lib" / library.name)
        (place / "packages").rename(folder / "packages")
    return folder / interpreter.name
