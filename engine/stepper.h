/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One rank's part in a dependent phase (doc/schedules.md), without any I/O: which messages are open
 * now, what is computed between them, when a repetition begins and ends. The same for all
 * transports, who know how bytes travel:
 *
 *     stepper_begin
 *     again and again: send and receive what is open (sends, receives); when all of it is through,
 *     stepper_next says what is to be done now
 *
 * A step is complete when its own sends are handed over (their memory may be used again) and its
 * receives are here: the ranks wait for each other in no other way. Messages of one flow go in the
 * order in which they are listed, so both ends know how long each is.
 *
 * Repetitions of the schedule follow each other in batches. Between two batches all ranks meet in a
 * dissemination barrier (Hensgen, Finkel, Manber 1988) of messages without bytes over the same
 * flows, outside of the measured time. Its messages carry bits, OR-ed: whether it is over, and
 * whether the next batch counts; so that all ranks end after the same batch and measure the same.
 *
 * The main thread makes a stepper and reads it afterwards, one worker drives it; in between nothing
 * here allocates, or makes a system call but for the clock.
 */
#ifndef ENGINE_STEPPER_H
#define ENGINE_STEPPER_H

#include "err.h"
#include "histogram.h"
#include "schedule.h"
#include "transport.h"

#define STEPPER_NONE UINT32_MAX
#define STEPPER_POINTS 8

struct stepper_message {
    uint32_t flow;  /* place in the lane's sends or receives */
    uint32_t after; /* the one before it, of the same flow and step; STEPPER_NONE: there is none */
    uint64_t bytes;
    uint8_t *at; /* in the rank's memory; of no meaning without bytes */
};

enum stepper_state {
    STEPPER_OPEN,  /* there are messages to send or receive */
    STEPPER_BUSY,  /* it computes: call again, soon */
    STEPPER_ENDED, /* all ranks are through */
    STEPPER_WRONG, /* the result is wrong: `error` says where */
};

/* Bits of a barrier's messages. */
#define STEPPER_STOP 1u      /* no further batch */
#define STEPPER_UNCOUNTED 2u /* the next batch is not measured */

/* What was measured of one rank. */
struct execution {
    uint64_t repetitions;   /* measured */
    uint64_t batches;       /* of them */
    uint64_t sum_ns;        /* of all repetitions */
    uint64_t verified;      /* repetitions whose result was looked at, and right */
    struct histogram times; /* of a repetition: the mean of each batch */
    uint64_t messages_lost; /* the transport gave them up ... */
    uint64_t timeouts;      /* ... in so many waits */
};

struct stepper_step {
    uint32_t first_send, send_count;       /* of `messages` */
    uint32_t first_receive, receive_count; /* of `messages` */
    size_t first_local, local_count;       /* of the schedule's operations that are no messages */
};

struct stepper {
    /* For the transport, until it calls stepper_next: */
    const struct stepper_message *sends;
    const struct stepper_message *receives;
    uint32_t send_count;
    uint32_t receive_count;
    bool meeting; /* they are the barrier's: they carry `bits`, and count nowhere */
    uint8_t bits;
    /* For the transport's preparation: the rank's memory, and the most of a step. */
    uint8_t *memory;
    uint32_t most_sends;
    uint32_t most_receives;
    uint64_t most_bytes;   /* of a message */
    uint64_t memory_bytes; /* of `memory`, which is never NULL; whole pages */
    bool begun;
    bool ended;
    struct err error;
    struct execution execution;

    /* --- its own --- */
    const struct phase *phase;
    const struct pattern_plan *plan;
    uint32_t rank, ranks;
    struct schedule schedule;
    struct stepper_message *messages;
    struct stepper_step *steps; /* of the schedule, then the barrier's rounds */
    uint32_t step_count;        /* of the schedule */
    uint32_t rounds;
    uint32_t position;
    size_t local;        /* operations of the present step that are done ... */
    uint64_t done;       /* ... and bytes or floating point operations of the next one */
    uint32_t repetition; /* of the batch */
    uint64_t batch;      /* since the beginning */
    bool counted;        /* the present batch is measured */
    int64_t begun_ns;
    double x[STEPPER_POINTS]; /* what it computes with */
};

struct stepper_conf {
    const struct phase *phase;       /* lives as long as the stepper */
    const struct pattern_plan *plan; /* the same */
    uint32_t rank, ranks;
    const struct lane_flow *sends; /* all flows of the rank in the phase */
    uint32_t send_count;
    const struct lane_flow *receives;
    uint32_t receive_count;
};

/* -ENOMEM with a sentence. */
int stepper_make(struct stepper **stepper, const struct stepper_conf *conf, struct err *err);
void stepper_free(struct stepper *stepper); /* NULL is none */

/* The first messages are open then: those of a barrier. */
void stepper_begin(struct stepper *stepper);
/* What a received message of a barrier carried. */
static inline void stepper_hear(struct stepper *stepper, uint8_t bits)
{
    stepper->bits |= bits;
}
/* All that was open is through. It computes for a millisecond or so at most, but for the whole
 * memory's filling and verifying. */
enum stepper_state stepper_next(struct stepper *stepper);

/* Ends it in the middle of a batch, which is not measured: messages are lost, and nobody else goes
 * on. */
static inline void stepper_quit(struct stepper *stepper)
{
    stepper->ended = true;
}

/* Shows all that a repetition receives, or (`meeting`) a barrier, in their order: for a transport
 * that must know beforehand. */
void stepper_each_receive(const struct stepper *stepper, bool meeting,
                          void (*show)(void *context, const struct stepper_message *message),
                          void *context);

/* How long a repetition computes, at the least speed that is expected: nothing moves meanwhile. */
int64_t stepper_work_ns(const struct stepper *stepper);

#endif
