/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the stand-in for an accelerator (standin.c): so many bytes per process, at two addresses. A
 * program hands out the first one's; the CPU may only use the second one's.
 */
#ifndef COLL_RUST_TESTS_STANDIN_H
#define COLL_RUST_TESTS_STANDIN_H

#define STANDIN_DEVICE 0x2a0000000000ul /* PROT_NONE */
#define STANDIN_HOST 0x2b0000000000ul   /* the same bytes */
#define STANDIN_BYTES (1ul << 30)

/* What the component has copied beside the caller, of this process; at an address of its own. */
#define STANDIN_COUNTS 0x2c0000000000ul
struct standin_counts {
    unsigned long into, out;             /* copies from the device's memory, and to it */
    unsigned long last_into, first_out;  /* which one of all of them, from 1, was the last, or first, of them */
    unsigned long bytes_into, bytes_out;
    unsigned long at_once;               /* copies of the caller's own, either way */
    unsigned long under_way;             /* not over */
    unsigned long locked;                /* pieces of host memory whose pages are locked */
};
#define STANDIN ((struct standin_counts *)STANDIN_COUNTS)

#endif
