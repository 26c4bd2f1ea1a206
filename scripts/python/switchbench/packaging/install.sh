#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
#   ./install [PREFIX]             into PREFIX, /opt/switchbench unless told; a former one is replaced
#   ./install --check              only verify the checksums
#
# Needs sh, cp, cut, find, grep, mkdir, mv, readlink, rm, sed, sha256sum, sort, uname and uniq, and
# no network. Nothing outside of PREFIX is touched; removing PREFIX removes all of it.
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
    # Files that are right are not worth a line each, and are said in English alone.
    found=$(LC_ALL=C sha256sum -c SHA256SUMS 2>&1) ||
        die "the archive is damaged; get it again: $(printf '%s\n' "$found" | grep -v ': OK$')"
    # Named ones stand twice in the list, or three times. Python leaves caches where it has run.
    strange=$({
        cut -c67- SHA256SUMS
        cut -c67- SHA256SUMS
        find . -type f ! -path ./SHA256SUMS ! -path '*/__pycache__/*' | cut -c3-
    } | LC_ALL=C sort | uniq -u)
    [ -z "$strange" ] || die "there are files that are none of the archive's; unpack it again: $strange"
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

# "PREFIX/" and what is made beside it would be another folder's content.
while [ "$prefix" != "${prefix%/}" ]; do prefix=${prefix%/}; done
case $prefix in
'' | . | .. | */. | */..) die "PREFIX is a folder of its own, by its name: not /, . or .." ;;
/*) ;;
*) prefix=$OLDPWD/$prefix ;;
esac
if [ -e "$prefix" ] && ! is_former "$prefix" && ! is_empty "$prefix"; then
    die "$prefix is there and is no installation of Switchbench: nothing was changed"
fi

# Beside it first, so that a copy that fails leaves what was there.
new=$prefix.new.$$
old=$prefix.old.$$
put_back() {
    rm -rf "$new"
    [ ! -e "$old" ] || [ -e "$prefix" ] || mv "$old" "$prefix"
}
trap put_back EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$new" || die "$new can't be made: give a PREFIX that you may write"
cp -RP bin engine python share CONTENTS SHA256SUMS "$new" || die "could not copy to $new"
"$new/engine/switchbench-node" --version >/dev/null || die "the engine does not start here"
"$new/bin/switchbench" --version >/dev/null || die "the command does not start here"
[ ! -e "$prefix" ] || mv "$prefix" "$old" || die "$prefix can't be replaced"
mv "$new" "$prefix" || die "$new can't be moved to $prefix"
trap - EXIT HUP INT TERM
rm -rf "$old"

say "Switchbench $version is in $prefix. To have it in your path:"
say "  PATH=$prefix/bin:\$PATH"
say "Then: switchbench doctor"
