/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All ranks of a schedule in one process: they progress in random order, and a send ends only when
 * its receiver has opened the receive that matches it. Nothing is buffered.
 */
#ifndef SCHEDULE_SIM_H
#define SCHEDULE_SIM_H

#include "schedule.h"

struct schedule_sim; /* opaque */

/* Computes and checks all ranks' schedules of a phase, and fills their memory. Fails the test where
 * a schedule breaks the rules of schedule.h. `plan` must outlive it. */
struct schedule_sim *schedule_sim_make(const struct pattern_plan *plan, uint32_t phase, uint32_t n,
                                       uint64_t seed);
void schedule_sim_free(struct schedule_sim *sim);

/* What pattern_schedule_sum says of a rank is what its ops and flows say; fails the test if not. */
void assert_sums(const struct pattern_plan *plan, uint32_t phase, uint32_t rank);

/* Runs so many repetitions one after the other without anything between. Returns whether all ranks
 * came to the end; false: they are stuck. */
bool schedule_sim_run(struct schedule_sim *sim, uint32_t repetitions);

const struct schedule *schedule_sim_schedule(const struct schedule_sim *sim, uint32_t rank);
void *schedule_sim_memory(struct schedule_sim *sim, uint32_t rank);

/* Flips a bit of the last byte of the next message with payload that anybody receives. */
void schedule_sim_spoil(struct schedule_sim *sim);

/* Verifies each rank's memory; a wrong element fails the test with a sentence. */
void schedule_sim_verify(const struct schedule_sim *sim);

#endif
