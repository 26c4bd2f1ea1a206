# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034
# What the entry points share; they source it.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
# The command, as scripts/setup installs it.
switchbench=$venv/bin/switchbench

say() {
    printf '%s\n' "$*" >&2
}

die() {
    say "scripts/$(basename "$0"): $*"
    exit 1
}
