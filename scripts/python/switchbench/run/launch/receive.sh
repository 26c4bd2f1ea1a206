# SPDX-License-Identifier: BSD-3-Clause
#
# `switchbench push` runs this script on a host by `sh -c` (push.py). A result line on standard output
# begins with "switchbench push:", because a login may print its own text before it on the same
# line. Error messages go to standard error.
#
#   sh ask|take TO NAME MACHINE PRIVILEGE SUM
#
# ask   print "have" if folder NAME in TO is complete, and make it the current version
#       (SUM is the SHA-256 of its SHA256SUMS)
# take  unpack NAME from an archive on standard input, make it current, print "copied"
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

# Print files that SHA256SUMS does not list (listed ones are twice in the list). The loader searches
# the folder for libraries, so an additional file could be loaded.
unlisted() {
  (cd "$1" && { cut -c67- SHA256SUMS; cut -c67- SHA256SUMS; find . ! -type d ! -path ./SHA256SUMS | cut -c3-; }) |
    sort | uniq -u
}

is_whole() {
  [ -f "$1/SHA256SUMS" ] && [ "$(sha256sum <"$1/SHA256SUMS")" = "$sum  -" ] &&
    (cd "$1" && sha256sum -c SHA256SUMS >/dev/null 2>&1) && [ -z "$(unlisted "$1")" ]
}

# A user who can write to the folder, or rename a folder above it, could replace a program that root
# runs.
guard() {
  place=$1 spared=
  while :; do
    mode=$(stat -L -c '%u %A' "$place/") || fail "can't read owner and mode of $place"
    case $mode in
    "0 d"????-??-?) ;;
    "0 d"????????[tT]) [ -n "$spared" ] || fail "all users can write to $place: privilege $privilege needs a folder that only root can write" ;;
    *) fail "others than root can write to $place: privilege $privilege needs a folder that only root can write" ;;
    esac
    [ -n "$place" ] || return 0
    place=${place%/*} spared=yes
  done
}

# Check the path as given and with its links resolved; later steps use only the resolved path.
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

# Another host may install into the same folder at the same time, such as a home folder on NFS.
take() {
  mkdir -p "$to" || fail "can't make the folder $to"
  fresh=$(mktemp -d "$to/.$name.XXXXXX") || fail "can't write to $to"
  trap 'rm -rf "$fresh"' EXIT
  tar -xzf - -C "$fresh" || fail "can't unpack the archive in $to (is the disk full?)"
  is_whole "$fresh" || fail "the received files differ from the sent ones: push again"
  chmod 755 "$fresh"
  is_whole "$folder" || rm -rf "$folder"
  mv -T "$fresh" "$folder" 2>/dev/null || is_whole "$folder" || fail "can't make the folder $folder"
}

settle() {
  [ "$privilege" = none ] || chown -R 0:0 "$folder"
  ln -sfn "$name" "$to/.current.$$"
  mv -T "$to/.current.$$" "$to/current"
}

[ "$(uname -m)" = "$machine" ] || fail "the host is $(uname -m), and this build is for $machine"
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
