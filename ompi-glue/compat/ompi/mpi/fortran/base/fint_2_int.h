/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stand-in for a header that Open MPI's own headers include but that packages do not install.
 * It lies behind every other folder of the search path (-idirafter): a real one wins.
 *
 * Only scalar conversions are used by what the shim includes (the call of a Fortran reduction function).
 */
#ifndef OMPI_FORTRAN_BASE_FINT_2_INT_H
#define OMPI_FORTRAN_BASE_FINT_2_INT_H

#include "ompi_config.h"

#define OMPI_INT_2_FINT(value) ((MPI_Fint) (value))
#define OMPI_FINT_2_INT(value) ((int) (value))

#endif
