/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Makes the executor of a rank's schedule, before a phase: its memory, and its operations
 * turned into steps, with the rounds of the barrier behind them.
 */
#ifndef ENGINE_EXECUTOR_SETUP_H
#define ENGINE_EXECUTOR_SETUP_H

#include "schedule_executor.h"

struct executor_conf {
    const struct phase *phase;       /**< lives as long as the executor */
    const struct pattern_plan *plan; /**< the same */
    uint32_t rank, ranks;
    const struct lane_flow *sends; /**< all flows of the rank in the phase */
    uint32_t send_count;
    const struct lane_flow *receives;
    uint32_t receive_count;
};

/**
 * @brief Bytes of memory that a rank's steps take, in all.
 *
 * -ENOMEM.
 */
int executor_needs(const struct phase *phase, const struct pattern_plan *plan, uint32_t rank,
                   uint64_t *bytes);
/**
 * @brief -ENOMEM with a sentence.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int executor_make(struct schedule_executor **executor, const struct executor_conf *conf,
                  struct err *err);
void executor_free(struct schedule_executor *executor); /* NULL is none */

#endif
