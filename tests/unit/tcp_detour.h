/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Something in the middle of a TCP connection, for tests: a listener that passes bytes on to a
 * port in both directions and changes them on the way.
 */
#ifndef TESTS_TCP_DETOUR_H
#define TESTS_TCP_DETOUR_H

#include "transport.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One direction: bytes read from `from` that `to` has not taken yet. */
struct detour_way {
    int from;
    int to;
    uint8_t buffer[65536];
    size_t held;
    uint64_t passed; /* bytes read so far */
    void (*change)(uint8_t *data, size_t bytes, uint64_t at);
};

struct detour {
    int listener;
    struct blob blob;   /* how to reach the detour */
    struct blob target; /* where it leads */
    int near;           /* the connector's end; -1: none yet */
    int far;            /* the acceptor's */
    struct detour_way there;
    struct detour_way back;
    /* Called with each piece that is on its way, from the connector and to it; `at` is its place
     * in the stream. NULL: unchanged. */
    void (*change)(uint8_t *data, size_t bytes, uint64_t at);
    void (*change_back)(uint8_t *data, size_t bytes, uint64_t at);
};

void detour_open(struct detour *detour, const struct blob *target);
/* Moves what can be moved; a world's pump. */
void detour_pump(void *detour);
/* Both connections end at once, as when a host dies. */
void detour_cut(struct detour *detour);
void detour_close(struct detour *detour);

#endif
