/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A long wire: passes Ethernet frames between two interfaces, each way with a rate and a delay.
 *
 *     wire <interface> <interface> <milliseconds> <Mbit per second>
 *
 * A frame leaves when those before it have, at that rate, and so many milliseconds later. Where too much
 * waits, frames are dropped, as a switch does. Stopped (SIGSTOP), the wire is cut. One thread.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Bytes of a frame, and those that wait, at most. */
enum { FRAME = 16 << 10, WAITING = 4 << 20 };

/* What came in by one interface, and when it leaves by the other. */
struct frame {
    struct frame *next;
    double due;
    size_t length;
    char bytes[];
};

struct way {
    int from, to;
    double free_at; /* when the last frame has left */
    size_t waiting;
    struct frame *first, **last;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* All frames that an interface brings, and none that leave by it. */
static int attach(const char *name)
{
    int s = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), yes = 1, room = WAITING;
    struct sockaddr_ll where = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex(name)};
    if (s < 0 || where.sll_ifindex == 0 || setsockopt(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes) != 0 ||
        setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0 ||
        setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) != 0 ||
        bind(s, (struct sockaddr *)&where, sizeof where) != 0) {
        fprintf(stderr, "wire: %s: %s\n", name, strerror(errno));
        exit(1);
    }
    return s;
}

/* Takes what has come; `per_byte` and `delay` in milliseconds. */
static void take(struct way *w, double per_byte, double delay)
{
    static char bytes[FRAME];
    ssize_t got;
    while ((got = recv(w->from, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        struct frame *f = w->waiting < WAITING ? malloc(sizeof *f + (size_t)got) : NULL;
        double at = now();
        if (!f)
            continue;
        w->free_at = (w->free_at > at ? w->free_at : at) + (double)got * per_byte;
        *f = (struct frame){.due = w->free_at + delay, .length = (size_t)got};
        memcpy(f->bytes, bytes, (size_t)got);
        *w->last = f;
        w->last = &f->next;
        w->waiting += (size_t)got;
    }
}

static void pass(struct way *w)
{
    while (w->first && w->first->due <= now()) {
        struct frame *f = w->first;
        /* What the other side does not take is dropped: TCP sends it again. */
        (void)!send(w->to, f->bytes, f->length, MSG_DONTWAIT);
        w->waiting -= f->length;
        w->first = f->next;
        if (!w->first)
            w->last = &w->first;
        free(f);
    }
}

int main(int argc, char **argv)
{
    if (argc != 5 || atof(argv[4]) <= 0) {
        fprintf(stderr, "wire: <interface> <interface> <milliseconds> <Mbit per second>\n");
        return 2;
    }
    int ends[2] = {attach(argv[1]), attach(argv[2])};
    double delay = atof(argv[3]), per_byte = 8 / (1e3 * atof(argv[4]));
    struct way ways[2] = {{.from = ends[0], .to = ends[1]}, {.from = ends[1], .to = ends[0]}};
    for (int i = 0; i < 2; i++)
        ways[i].last = &ways[i].first;
    for (;;) {
        struct pollfd fds[2] = {{.fd = ends[0], .events = POLLIN}, {.fd = ends[1], .events = POLLIN}};
        double next = now() + 1000;
        for (int i = 0; i < 2; i++)
            if (ways[i].first && ways[i].first->due < next)
                next = ways[i].first->due;
        double wait = next > now() ? next - now() : 0;
        struct timespec pause = {.tv_sec = (time_t)(wait / 1e3), .tv_nsec = (long)(wait * 1e6) % 1000000000};
        ppoll(fds, 2, &pause, NULL);
        for (int i = 0; i < 2; i++) {
            take(&ways[i], per_byte, delay);
            pass(&ways[i]);
        }
    }
}
