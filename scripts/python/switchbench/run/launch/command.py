# SPDX-License-Identifier: BSD-3-Clause
"""Launcher of nodes by any command that starts a program on a host and passes its output on.

Examples: Open MPI's `mpirun --host {host} -np 1`, PRRTE's `prun`, `docker exec -i {host}`, `rsh
{host}`. The command is started here once per host, and its standard input and output are the
node's. Some commands pass the words after them unchanged. Others join these words with blanks, for
a shell on the host.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from ...base.errors import ConfigurationError
from ...base.model import Process, Site
from .far import Answer, FarLauncher, piped
from .ssh import lack


class CommandLauncher(FarLauncher):
    """Launcher that starts nodes by the command in the site's configuration."""

    def __init__(self, site: Site) -> None:
        """Read the command line that starts nodes from the site, without starting anything."""
        keys = site.effective["command"]
        self._start_words: list[str] = keys["start"]
        program = self._start_words[0]
        if shutil.which(program) is None:
            raise ConfigurationError(
                f"launch: command: there is no program {program} on this machine: install it"
            )
        super().__init__(keys["engine"])

    def run(self, process: Process, words: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start the site's command for a node's host; it runs the program `words` there."""
        start = [word.replace("{host}", process.name) for word in self._start_words]
        # The last word works in two ways. Passed unchanged, it is a script for `sh -c`. Joined
        # with blanks, a shell on the host runs `sh -c :`, which does nothing, and then `exec ...`.
        return piped([*start, "sh", "-c", f":;exec {shlex.join(words)}"])

    def lack(self, host: str, answer: Answer) -> str | None:
        """Return the reason why the site's command or the engine failed; None for success."""
        if answer.status is None or answer.output:
            return lack(host, answer, self.engine)
        # The first line has the cause: mpirun and other commands add lines with advice.
        said = next((line.strip() for line in answer.errors if re.search(r"\w", line)), "no output")
        return f"the command that starts its node ended with status {answer.status} ({said})"
