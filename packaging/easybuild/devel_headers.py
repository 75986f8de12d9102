# SPDX-License-Identifier: BSD-3-Clause
"""A hook for EasyBuild: Open MPI installs its internal headers, which coll/rust is compiled against."""


def parse_hook(ec, *args, **kwargs):
    if ec.name == 'OpenMPI':
        ec['configopts'] += ' --with-devel-headers'
