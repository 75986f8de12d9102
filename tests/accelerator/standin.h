/*
 * The memory of the stand-in for an accelerator (standin.c): so many bytes per process, at two addresses. A
 * program hands out the first one's; the CPU may only use the second one's.
 */
#ifndef COLL_RUST_TESTS_STANDIN_H
#define COLL_RUST_TESTS_STANDIN_H

#define STANDIN_DEVICE 0x2a0000000000ul /* PROT_NONE */
#define STANDIN_HOST 0x2b0000000000ul   /* the same bytes */
#define STANDIN_BYTES (1ul << 30)

#endif
