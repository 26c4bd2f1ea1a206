#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
#   ./install [PREFIX]             into PREFIX, /opt/switchbench unless told; a former one is replaced
#   ./install --check              only verify the checksums
#
# Needs sh, cp, mv, rm, mkdir, readlink, uname and sha256sum, and no network. Nothing outside of
# PREFIX is touched; removing PREFIX removes all of it.
set -eu
umask 022

say() {
    printf '%s\n' "$*"
}

die() {
    printf 'install: %s\n' "$*" >&2
    exit 1
}

usage() {
    sed -n '/^#   /s/^#   //p' "$0"
    exit "$1"
}

verify() {
    command -v sha256sum >/dev/null || die "sha256sum is not here: the archive can't be verified"
    # Files that are right are not worth a line each.
    wrong=$(sha256sum -c SHA256SUMS 2>&1 | grep -v ': OK$' || true)
    [ -z "$wrong" ] || die "the archive is damaged; get it again: $wrong"
}

is_former() { # PREFIX: a former installation?
    [ -f "$1/CONTENTS" ] && [ -f "$1/SHA256SUMS" ] && [ -d "$1/engine" ]
}

is_empty() { # FOLDER
    [ -z "$(ls -A "$1")" ]
}

prefix=/opt/switchbench
case ${1-} in
--help | -h) usage 0 ;;
--check) prefix= ;;
-*) usage 2 ;;
?*) prefix=$1 ;;
esac
[ $# -le 1 ] || usage 2

here=$(readlink -f "$0") && here=${here%/*}
cd "$here"
read -r _ version machine <CONTENTS
[ "$machine" = "$(uname -m)" ] || die "this archive is for $machine, and this machine is $(uname -m)"
verify
[ -n "$prefix" ] || {
    say "all checksums are right"
    exit 0
}

case $prefix in
/*) ;;
*) prefix=$OLDPWD/$prefix ;;
esac
if [ -e "$prefix" ] && ! is_former "$prefix" && ! is_empty "$prefix"; then
    die "$prefix is there and is no installation of Switchbench: nothing was changed"
fi

# Beside it first, so that a copy that fails leaves what was there.
new=$prefix.new.$$
trap 'rm -rf "$new"' EXIT
mkdir -p "$new" || die "$new can't be made: give a PREFIX that you may write"
cp -RP bin engine python share CONTENTS SHA256SUMS "$new" || die "could not copy to $new"
"$new/engine/switchbench-node" --version >/dev/null || die "the engine does not start here"
"$new/bin/switchbench" --version >/dev/null || die "the command does not start here"
rm -rf "$prefix"
mv "$new" "$prefix"
trap - EXIT

say "Switchbench $version is in $prefix. To have it in your path:"
say "  PATH=$prefix/bin:\$PATH"
say "Then: switchbench doctor"
