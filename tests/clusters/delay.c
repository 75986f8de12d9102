/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A link that takes time: relays TCP connections, and holds back what passes for so long.
 *
 *     delay <address> <port> <to address> <to port> <milliseconds>
 *
 * One way each: a round trip takes twice as long. One thread, any number of connections.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 32, PIECE = 64 << 10, HELD = 64 << 20 };

/* What came from one end, and when it may leave by the other. */
struct piece {
    struct piece *next;
    double due;
    size_t length, left;
    char bytes[];
};

struct way {
    int from, to, ended;
    size_t held;
    struct piece *first, **last;
};

static struct way ways[2 * MOST];
static int count;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static struct sockaddr_in address(const char *host, const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, host, &a.sin_addr) != 1) {
        fprintf(stderr, "delay: %s is no address\n", host);
        exit(2);
    }
    return a;
}

static void prepare(int fd)
{
    int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* A connection more. */
static void take(int listener, const struct sockaddr_in *to)
{
    int in = accept(listener, NULL, NULL), out = socket(AF_INET, SOCK_STREAM, 0);
    if (in < 0 || count == MOST || connect(out, (const struct sockaddr *)to, sizeof *to) != 0) {
        close(in);
        close(out);
        return;
    }
    prepare(in);
    prepare(out);
    for (int i = 0; i < 2; i++) {
        struct way *w = &ways[2 * count + i];
        *w = (struct way){.from = i ? out : in, .to = i ? in : out};
        w->last = &w->first;
    }
    count++;
}

static void receive(struct way *w, double delay)
{
    struct piece *p = malloc(sizeof *p + PIECE);
    ssize_t got = p ? read(w->from, p->bytes, PIECE) : -1;
    if (got <= 0) {
        w->ended = got == 0 || (errno != EAGAIN && errno != EINTR);
        free(p);
        return;
    }
    *p = (struct piece){.due = now() + delay, .length = (size_t)got};
    *w->last = p;
    w->last = &p->next;
    w->held += (size_t)got;
}

/* Sends what is due. */
static void send_on(struct way *w)
{
    while (w->first && w->first->due <= now()) {
        struct piece *p = w->first;
        ssize_t sent = write(w->to, p->bytes + p->left, p->length - p->left);
        if (sent < 0) {
            w->ended |= errno != EAGAIN && errno != EINTR;
            return;
        }
        p->left += (size_t)sent;
        w->held -= (size_t)sent;
        if (p->left < p->length)
            return;
        w->first = p->next;
        if (!w->first)
            w->last = &w->first;
        free(p);
    }
}

/* Takes away connections that one end has closed, when what was held has left. */
static void close_ended(void)
{
    for (int c = 0; c < count; c++) {
        struct way *pair = &ways[2 * c];
        if (!(pair[0].ended && !pair[0].first) && !(pair[1].ended && !pair[1].first))
            continue;
        close(pair[0].from);
        close(pair[1].from);
        count--;
        memmove(pair, pair + 2, sizeof *pair * 2 * (size_t)(count - c));
        for (int i = 2 * c; i < 2 * count; i++)
            if (!ways[i].first)
                ways[i].last = &ways[i].first;
        c--;
    }
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "delay: <address> <port> <to address> <to port> <milliseconds>\n");
        return 2;
    }
    struct sockaddr_in here = address(argv[1], argv[2]), to = address(argv[3], argv[4]);
    double delay = atof(argv[5]);
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) != 0 || listen(listener, 8) != 0) {
        perror("delay");
        return 1;
    }
    for (;;) {
        struct pollfd fds[1 + 2 * MOST] = {{.fd = listener, .events = POLLIN}};
        double next = now() + 1000;
        for (int i = 0; i < 2 * count; i++) {
            struct way *w = &ways[i], *back = &ways[i ^ 1];
            /* Of its descriptor: what comes by it, and what leaves by it. */
            int due = back->first && back->first->due <= now();
            short events = (short)((w->held < HELD && !w->ended ? POLLIN : 0) | (due ? POLLOUT : 0));
            fds[1 + i] = (struct pollfd){.fd = w->from, .events = events};
            if (w->first && w->first->due > now() && w->first->due < next)
                next = w->first->due;
        }
        double wait = next - now();
        int seen = count;
        struct timespec pause = {.tv_nsec = wait > 0 ? (long)(wait * 1e6) % 1000000000 : 0, .tv_sec = wait > 0 ? (time_t)(wait / 1e3) : 0};
        ppoll(fds, (nfds_t)(1 + 2 * count), &pause, NULL);
        for (int i = 0; i < 2 * seen; i++) {
            if (fds[1 + i].revents & (POLLIN | POLLHUP | POLLERR))
                receive(&ways[i], delay);
            send_on(&ways[i]);
        }
        if (fds[0].revents & POLLIN)
            take(listener, &to);
        close_ended();
    }
}
