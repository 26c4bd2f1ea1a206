# SPDX-License-Identifier: BSD-3-Clause
#
# What `switchbench push` runs on a host, by `sh -c`: see push.py. Whatever is said on standard
# output is a word and what it is about, marked as ours: the login's own text may stand before it on
# the same line. What fails says why on standard error.
#
#   sh ask|take TO NAME MACHINE PRIVILEGE SUM
#
# ask   "have" where the folder NAME is in TO and whole, which is then made the current one
#       (SUM is the SHA-256 of its SHA256SUMS)
# take  the same from an archive on standard input, "copied"
set -eu
umask 022
task=$1 to=${2:-$HOME/.local/lib/switchbench} name=$3 machine=$4 privilege=$5 sum=$6

say() {
  echo "switchbench push: $*"
}

fail() {
  say "$*" >&2
  exit 1
}

# Files that the sums don't name (those stand twice in the list): libraries are found by their folder,
# so one more is not nothing.
unlisted() {
  (cd "$1" && { cut -c67- SHA256SUMS; cut -c67- SHA256SUMS; find . ! -type d ! -path ./SHA256SUMS | cut -c3-; }) |
    sort | uniq -u
}

is_whole() {
  [ -f "$1/SHA256SUMS" ] && [ "$(sha256sum <"$1/SHA256SUMS")" = "$sum  -" ] &&
    (cd "$1" && sha256sum -c SHA256SUMS >/dev/null 2>&1) && [ -z "$(unlisted "$1")" ]
}

# Who may write there, or rename a folder above it, decides what runs with root's rights.
guard() {
  place=$1 spared=
  while :; do
    mode=$(stat -L -c '%u %A' "$place/") || fail "$place can't be looked at"
    case $mode in
    "0 d"????-??-?) ;;
    "0 d"????????[tT]) [ -n "$spared" ] || fail "$place is everybody's: $privilege wants one of root's" ;;
    *) fail "$place can be written by others than root, and $privilege wants one of root's" ;;
    esac
    [ -n "$place" ] || return 0
    place=${place%/*} spared=yes
  done
}

# Both as it is named and as its links lead: from then on only that is used.
settle_place() {
  while [ "$to" != "${to%/}" ]; do to=${to%/}; done
  there=$to
  until [ -e "$there/" ]; do there=${there%/*}; done
  guard "$there"
  real=$(cd "$there/" && pwd -P)
  real=${real%/}
  guard "$real"
  to=$real${to#"$there"}
}

# Another host may do the same in the same place at the same time: a home folder by NFS.
take() {
  mkdir -p "$to" || fail "$to can't be made"
  fresh=$(mktemp -d "$to/.$name.XXXXXX") || fail "nothing can be written in $to"
  trap 'rm -rf "$fresh"' EXIT
  tar -xzf - -C "$fresh" || fail "the archive can't be unpacked in $to (is the disk full?)"
  is_whole "$fresh" || fail "what came is not what was sent"
  chmod 755 "$fresh"
  is_whole "$folder" || rm -rf "$folder"
  mv -T "$fresh" "$folder" 2>/dev/null || is_whole "$folder" || fail "$folder can't be made"
}

settle() {
  [ "$privilege" = none ] || chown -R 0:0 "$folder"
  ln -sfn "$name" "$to/.current.$$"
  mv -T "$to/.current.$$" "$to/current"
}

[ "$(uname -m)" = "$machine" ] || fail "it is a $(uname -m), and this build is for $machine"
[ "$privilege" = none ] || settle_place
folder=$to/$name
case $task in
ask)
  is_whole "$folder" || { say lack; exit 0; }
  settle
  say "have $to"
  ;;
take)
  take
  settle
  say "copied $to"
  ;;
esac
