/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief One rank's part in a dependent phase (doc/developer/schedules.md), without any I/O: which
 * messages are open now, what is computed between them, when a repetition begins and ends.
 *
 * The same for all transports, who know how bytes travel:
 *
 *     executor_begin
 *     again and again: send and receive what is open (sends, receives), and count it down; when
 *     executor_step_done, executor_next says what is to be done now
 *
 * A step is complete when its own sends are handed over (their memory may be used again) and its
 * receives are here: the ranks wait for each other in no other way. Messages of one flow go in the
 * order in which they are listed, so both ends know how long each is.
 *
 * Repetitions of the schedule follow each other in batches. Between two batches all ranks meet in a
 * dissemination barrier (Hensgen, Finkel, Manber 1988) of messages without bytes over the same
 * flows, outside of the measured time. Its messages carry bits, OR-ed: whether it is over, and
 * whether the next batch counts; so that all ranks end after the same batch and measure the same.
 * A batch may have a lead: repetitions before it that are not timed, so that how far apart ranks
 * leave the barrier is in nobody's time.
 *
 * Where results are verified the repetitions of a batch take turns in some memories, as many as the
 * nearer caches hold, filled before the barrier that begins the batch and verified behind its last
 * step: so the last result in each is looked at, and none of this is in anybody's time.
 *
 * The main thread makes an executor and reads it afterwards, one worker drives it; in between
 * nothing here allocates, or makes a system call but for the clock.
 */
#ifndef ENGINE_SCHEDULE_EXECUTOR_H
#define ENGINE_SCHEDULE_EXECUTOR_H

#include "err.h"
#include "histogram.h"
#include "schedule.h"
#include "transport.h"

#define EXECUTOR_NONE UINT32_MAX
#define EXECUTOR_POINTS 8

struct step_message {
    uint32_t flow;  /**< place in the lane's sends or receives */
    uint32_t after; /**< the one before it of the same flow and step; EXECUTOR_NONE */
    uint32_t next;  /**< the one after it */
    uint64_t bytes;
    uint64_t at; /**< its place: see executor_address */
};

enum executor_state {
    EXECUTOR_OPEN,  /**< there are messages to send or receive */
    EXECUTOR_BUSY,  /**< it computes: call again, soon */
    EXECUTOR_ENDED, /**< all ranks are through */
    EXECUTOR_WRONG, /**< the result is wrong: `error` says where */
};

/** @brief Bits of a barrier's messages. */
#define EXECUTOR_STOP 1u      /**< no further batch */
#define EXECUTOR_UNCOUNTED 2u /**< the next batch is not measured */

/** @brief What was measured of one rank. */
struct execution {
    uint64_t repetitions;   /**< measured */
    uint64_t batches;       /**< of them */
    uint64_t sum_ns;        /**< of all repetitions */
    uint64_t verified;      /**< repetitions whose result was looked at, and right */
    struct histogram times; /**< of a repetition: the mean of each batch */
};

struct executor_step {
    uint32_t first_send, send_count;       /**< of `messages` */
    uint32_t first_receive, receive_count; /**< of `messages` */
    size_t first_local, local_count;       /**< of the schedule's operations that are no messages */
};

struct schedule_executor {
    /** @brief For the transport, until it calls executor_next: */
    const struct step_message *sends;
    const struct step_message *receives;
    uint32_t send_count;
    uint32_t receive_count;
    uint32_t sends_left; /**< of them; the transport counts down what is through */
    uint32_t receives_left;
    bool busy;       /**< it computes: executor_next is to be called again, soon */
    bool in_barrier; /**< they are the barrier's: they carry `bits`, and count nowhere */
    uint8_t bits;
    /** @brief For the transport's preparation: the rank's memory, and the most of a step. */
    uint8_t *memory;
    uint32_t most_sends;
    uint32_t most_receives;
    uint64_t most_bytes;   /**< of a message */
    uint64_t memory_bytes; /**< of `memory`, which is never NULL; whole pages */
    bool begun;
    bool ended;
    struct err error;
    struct execution execution;

    /* --- its own --- */
    const struct phase *phase;
    const struct pattern_plan *plan;
    uint32_t rank, ranks;
    struct schedule schedule;
    uint8_t *place;  /**< the present repetition's memory ... */
    uint64_t stride; /**< ... and from one to the next ... */
    uint32_t copies; /**< ... of which there are so many */
    struct step_message *messages;
    struct executor_step *steps; /**< of the schedule, then the barrier's rounds */
    uint32_t step_count;         /**< of the schedule */
    uint32_t rounds;
    uint32_t position;
    size_t local;        /**< operations of the present step that are done ... */
    uint64_t done;       /**< ... and bytes or floating point operations of the next one */
    uint32_t repetition; /**< of the batch and its lead */
    uint64_t batch;      /**< since the beginning */
    bool counted;        /**< the present batch is measured */
    bool ran;            /**< one has, and was not verified yet */
    bool refilling;      /**< between batches: it verifies and fills, `repetition` next */
    int64_t begun_ns;
    uint64_t spent_ns;         /**< of the last batch */
    double x[EXECUTOR_POINTS]; /**< what it computes with */
};

/**
 * @brief Begin; the first messages are open then, those of a barrier; none where its memory is
 * filled first.
 *
 * @param executor Executor.
 */
void executor_begin(struct schedule_executor *executor);
/**
 * @brief Return where a message's bytes are; of no meaning without any.
 *
 * @param executor Executor.
 * @param message Message.
 * @return Address.
 */
static inline uint8_t *executor_address(const struct schedule_executor *executor,
                                        const struct step_message *message)
{
    return executor->place + message->at;
}
/**
 * @brief Merge what a received message of a barrier carried.
 *
 * @param executor Executor.
 * @param bits Bits.
 */
static inline void executor_merge_bits(struct schedule_executor *executor, uint8_t bits)
{
    executor->bits |= bits;
}
/**
 * @brief Go on after all that was open is through.
 *
 * It computes for a millisecond or so at most, but for the filling and verifying of a repetition's
 * memory.
 *
 * @param executor Executor.
 * @return State.
 */
enum executor_state executor_next(struct schedule_executor *executor);

/**
 * @brief Return whether nothing of what was open is left: executor_next() is due.
 *
 * @param executor Executor.
 * @return True: nothing is.
 */
static inline bool executor_step_done(const struct schedule_executor *executor)
{
    return !executor->ended && executor->sends_left + executor->receives_left == 0;
}

/**
 * @brief Count bytes of a message that have moved.
 *
 * The barrier's count nowhere.
 *
 * @param executor Executor.
 * @param side Flow; counted in.
 * @param bytes Bytes that moved.
 * @param through They are its last ones.
 */
static inline void executor_count(const struct schedule_executor *executor, struct flow_side *side,
                                  uint64_t bytes, bool through)
{
    if (executor->in_barrier)
        return;
    side->live.payload_bytes += bytes;
    side->live.messages += through;
}

/**
 * @brief Return how long a repetition computes, at the least speed that is expected: nothing moves
 * meanwhile.
 *
 * @param executor Executor.
 * @return ns.
 */
int64_t executor_compute_ns(const struct schedule_executor *executor);

#endif
