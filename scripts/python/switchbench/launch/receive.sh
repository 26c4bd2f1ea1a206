# SPDX-License-Identifier: BSD-3-Clause
#
# What `switchbench push` runs on a host, by `sh -c`: see push.py. Whatever is said on standard
# output is a word and what it is about; what fails says why on standard error.
#
#   sh ask|take TO NAME MACHINE PRIVILEGE CAPABILITIES
#
# ask   "have" where the folder NAME is in TO and whole, which is then made the current one
# take  the same from an archive on standard input, "copied"
set -eu
umask 022
task=$1 to=${2:-$HOME/.local/lib/switchbench} name=$3 machine=$4 privilege=$5 capabilities=$6
folder=$to/$name
program=$folder/switchbench-node

fail() {
  echo "switchbench push: $*" >&2
  exit 1
}

is_whole() {
  [ -f "$1/SHA256SUMS" ] && (cd "$1" && sha256sum -c SHA256SUMS >/dev/null 2>&1)
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

# Root's, and for the group that pushed alone: whoever may start it has the capabilities.
allow() {
  chown -R 0:0 "$folder"
  chgrp "${SUDO_GID:-$(id -g)}" "$program"
  chmod 750 "$program"
  command -v setcap >/dev/null 2>&1 || PATH=$PATH:/usr/sbin:/sbin
  command -v setcap >/dev/null 2>&1 || fail "there is no setcap (Debian: libcap2-bin)"
  setcap "$capabilities+ep" "$program" || fail "setcap was refused on $program"
}

# One that was allowed once is not any more, where nothing of that is asked for.
settle() {
  case $privilege in
  setcap) allow ;;
  sudo) chown -R 0:0 "$folder" ;;
  esac
  ln -sfn "$name" "$to/.current.$$"
  mv -T "$to/.current.$$" "$to/current"
}

[ "$(uname -m)" = "$machine" ] || fail "it is a $(uname -m), and this build is for $machine"
case $task in
ask)
  is_whole "$folder" || { echo lack; exit 0; }
  settle
  echo "have $to"
  ;;
take)
  take
  settle
  echo "copied $to"
  ;;
esac
