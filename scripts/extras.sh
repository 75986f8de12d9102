#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs the manual pages and completions of a program, which it prints itself; or takes them away.
#
#   scripts/extras.sh install PROGRAM      a path: the program is run
#   scripts/extras.sh uninstall PROGRAM    only its name counts
#
#   MAN1DIR, DATADIR   where to; both begin with DESTDIR where there is one
set -euo pipefail

action=${1:-} program=${2:-}
name=${program##*/}
case $action in
install | uninstall) [ -n "$name" ] ;;
*) false ;;
esac || {
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
}
pages=${MAN1DIR:?names the folder of manual pages}
data=${DATADIR:?names the folder of completions}
bash=$data/bash-completion/completions/$name
zsh=$data/zsh/site-functions/_$name
fish=$data/fish/vendor_completions.d/$name.fish

if [ "$action" = uninstall ]; then
    rm -f "$pages/$name.1" "$pages/$name"-*.1 "$bash" "$zsh" "$fish"
    # Folders that installing made, and nobody else has used.
    for file in "$pages/$name.1" "$bash" "$zsh" "$fish"; do
        folder=$(dirname "$file")
        while [ "$folder" != "$data" ] && rmdir "$folder" 2>/dev/null; do folder=$(dirname "$folder"); done
    done
    exit
fi

# In one step, so that no page of an ended program stays half written.
put() {
    mkdir -p "$(dirname "$1")"
    "$program" "${@:2}" >"$1.new"
    chmod 644 "$1.new"
    mv -f "$1.new" "$1"
}
put "$pages/$name.1" man
# The program's own page names those of its subcommands: mpiperf\-run(1).
sed -n "s/^${name//-/\\\\-}\\\\-\([a-z-]*\)(1)\$/\1/p" "$pages/$name.1" | while read -r subcommand; do
    [ "$subcommand" = help ] || put "$pages/$name-$subcommand.1" man "$subcommand"
done
put "$bash" completions bash
put "$zsh" completions zsh
put "$fish" completions fish
