/* SPDX-License-Identifier: BSD-3-Clause */
/* One collective, to see a job start or be refused; with an argument, none. */
#include "harness.h"

int main(int argc, char **argv)
{
    int sum = 0;
    test_init(&argc, &argv, "hello", MPI_THREAD_SINGLE);
    if (argc > 1) {
        check(test_size > 1, "alone");
        return test_end();
    }
    doing("Allreduce");
    MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(sum == test_size, "Allreduce got %d, expected %d", sum, test_size);
    return test_end();
}
