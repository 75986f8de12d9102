# -*- shell-script -*-
# SPDX-License-Identifier: BSD-3-Clause
#
# For a build inside an Open MPI source tree, as ompi/mca/coll/rust; see docs/guide/install.md. The build against an
# installed Open MPI uses configure.ac instead.

# Always a DSO, also where components are linked into the library by default (5.0): the Rust standard library stays
# behind the component's version script.
AC_DEFUN([MCA_ompi_coll_rust_COMPILE_MODE], [
    AC_MSG_CHECKING([for MCA component $2:$3 compile mode])
    $4="dso"
    AC_MSG_RESULT([$$4])
])

# MCA_ompi_coll_rust_CONFIG([action-if-can-compile],
#                           [action-if-cant-compile])
# ---------------------------------------------------
AC_DEFUN([MCA_ompi_coll_rust_CONFIG],[
    AC_CONFIG_FILES([ompi/mca/coll/rust/Makefile])

    coll_rust_happy=yes
    AC_ARG_VAR([CARGO], [the cargo of Rust 1.88 or later, for the component coll:rust])
    AC_PATH_PROG([CARGO], [cargo], [none])
    AS_IF([test "$CARGO" = none], [coll_rust_happy=no])

    AS_IF([test "$coll_rust_happy" = yes],
          [AC_MSG_CHECKING([for the version of Rust])
           coll_rust_version=`$CARGO --version 2>/dev/null | sed -n 's/^cargo \(@<:@0-9.@:>@*\).*/\1/p'`
           AC_MSG_RESULT([${coll_rust_version:-none}])
           AS_VERSION_COMPARE([${coll_rust_version:-0}], [1.88], [coll_rust_happy=no])])

    # A component that is always a DSO is of no use where none is loaded.
    AS_IF([test "$enable_dlopen" = no], [coll_rust_happy=no])

    AS_IF([test "$coll_rust_happy" = yes], [$1], [$2])
])dnl

# MCA_ompi_coll_rust_POST_CONFIG(should_build)
# --------------------------------------------
AC_DEFUN([MCA_ompi_coll_rust_POST_CONFIG],[
    AM_CONDITIONAL([COLL_RUST_STANDALONE], [false])
    AM_CONDITIONAL([COLL_RUST_DEFAULT_FOLDER], [false])
    AM_CONDITIONAL([COLL_RUST_READY], [false])
    AM_CONDITIONAL([COLL_RUST_PROGRAMS], [false])
])dnl
