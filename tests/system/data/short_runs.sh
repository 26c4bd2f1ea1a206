#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The command with short windows and, where it lasts until then, with Ctrl-C: what is tried is the
# command, not the network.
if [ "$1" = run ]; then
    shift
    "{python}" -m switchbench run --set warmup=100ms --set window=150ms --set repeat=1 "$@"
    status=$?
    case $status in 1|4) exit 0 ;; esac
    exit $status
fi
if [ "$1" = watch ]; then
    exec timeout --preserve-status --signal INT 5 "{python}" -m switchbench "$@"
fi
exec "{python}" -m switchbench "$@"
