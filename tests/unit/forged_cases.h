/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames whose sequence number was forged, over a bed of any transport that counts frames: a jump
 * that no sender can make is refused, and what honest senders, networks and receivers do is not.
 * A bed has a sender, a receiver, and times of its own.
 */
#ifndef TESTS_FORGED_CASES_H
#define TESTS_FORGED_CASES_H

#include "clock.h"
#include "transport.h"

#define FORGED_SIZE 512
#define FORGED_LINE_BPS UINT64_C(100000000)
#define FORGED_START_NS NS_PER_S
#define FORGED_STEP_NS (100 * NS_PER_US) /* from one frame to the next, at the load */

/* How a frame differs from the honest one. */
struct forgery {
    uint32_t ahead;   /* of its sequence number */
    int64_t later_ns; /* of its stamp */
};

struct forged_counts {
    uint64_t honest;
    uint64_t forged;
};

struct forged_bed {
    unsigned batch; /* frames after which the receiver looks */
    const struct flow_side *received;
    /* Sends so many frames, which wait for the receiver; behind each tenth waits a forged one, too,
     * unless `forgery` is NULL. Adds them to `sent`. */
    void (*send)(unsigned frames, const struct forgery *forgery, struct forged_counts *sent);
    /* Sends one frame, which is forged on its way. */
    void (*send_forged)(const struct forgery *forgery);
    /* Time passes; what is sent in it is lost. */
    void (*lose)(int64_t for_ns);
    /* The receiver gets all that waits, now. */
    void (*receive)(void);
    /* cmocka's: of each case; of all. Without a line: nothing is known of it, and a paced sender
     * keeps to its load. */
    int (*begin)(void **state);
    int (*begin_without_line)(void **state);
    int (*end)(void **state);
    int (*open)(void **state);
    int (*close)(void **state);
};

/* The phase of a bed's lanes. */
struct phase forged_phase(const void *options);

/* All cases, as cmocka_run_group_tests. */
int forged_cases_run(const struct forged_bed *bed);

#endif
