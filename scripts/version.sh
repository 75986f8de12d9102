#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints the component's version, which Cargo.toml has and nothing else.
#
#   scripts/version.sh            as it is there: 1.2.3
#   scripts/version.sh --flags    as flags for the C half: -DCR_VERSION_MAJOR=1 -DCR_VERSION_MINOR=2
#                                 -DCR_VERSION_PATCH=3
set -eu
form='\1.\2.\3'
[ "${1:-}" != --flags ] || form='-DCR_VERSION_MAJOR=\1 -DCR_VERSION_MINOR=\2 -DCR_VERSION_PATCH=\3'
sed -n "/^\[workspace.package\]/,/^\[[^p]/s/^version = \"\([0-9]*\)\.\([0-9]*\)\.\([0-9]*\).*/$form/p" "$(dirname "$0")/../Cargo.toml"
