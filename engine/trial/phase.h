/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A trial inside a node: its parts (networks), this node's own ranks in them, and the phase
 * that is being run.
 *
 * Private to trial/.
 */
#ifndef ENGINE_PHASE_H
#define ENGINE_PHASE_H

#include "compute_load.h"
#include "node.h"
#include "schedule_executor.h"
#include "worker.h"

#include <stddef.h>

#define PHASE_PROBE UINT32_MAX /**< the phase number of a plan's probe */

/** @brief One network's share: its transport, rank -> place, and the plan of its pattern. */
struct trial_part {
    const struct doc_part *doc;
    const struct transport *transport;
    const struct port_location **ranks;
    uint32_t n;
    struct pattern_plan *plan;
};

/** @brief A rank that lives on this node. */
struct local_rank {
    const struct trial_part *part;
    uint32_t part_index;
    uint32_t rank;
    uint32_t port; /**< of this node */
};

#define MARGIN_MEMORY 8

/**
 * @brief How long after a barrier a phase starts.
 *
 * A barrier tells all nodes when the last of them entered it; the start is a margin later. Until
 * then each must be through the barrier and its workers at their lanes, or it starts late. How long
 * that took at the last starts is noted, and the next margin follows from it; all nodes take the
 * longest that any of them wants. The first is a guess on the safe side.
 *
 * Two kinds of haste. A transfer waits for its slowest rank anyway and is often short, so that the
 * margin is most of what it costs to go from one to the next: it gets the median of what was needed
 * and half as much again. A stream lasts seconds and a late rank spoils its window: it gets four
 * times the longest, but for one outlier, and half a second at most unless starts need more.
 */
struct start_margin {
    int64_t first_ns;
    int64_t needed_ns[MARGIN_MEMORY]; /**< at the last starts, in a ring */
    uint32_t noted;
};

struct trial {
    struct node *node;
    const struct doc_trial *doc;
    struct trial_part *parts;
    struct local_rank *own;
    size_t own_count;
    bool *taken;          /**< by place: the port has a rank */
    uint32_t phase_count; /**< of the longest plan */
    int64_t begun_ns;
    int64_t clock_start_ns; /**< sync none: when the first phase began (run time) ... */
    int64_t offset_ns;      /**< ... and run time - local time as it was then */
    uint32_t clock_turn;    /**< sync none: how many phases have begun */
    uint32_t probes_left;   /**< so often the plan is probed again where a pair is not reached */
    uint32_t states;        /**< STATE_ bits of its phases, over all nodes */
    struct start_margin start_margin;
    int connect_fd; /**< readable when lanes can be connected further; -1: nothing tells */
};

struct phase_run;

/** @brief A port's progress at some time: `progress` records have the rates since then. */
struct shown_progress {
    int64_t told_ns; /**< 0: nothing was told yet */
    uint64_t offered_bytes;
    uint64_t delivered_bytes;
    uint64_t line_bytes;
    bool in_window;
};

/**
 * @brief One own rank in the present phase.
 *
 * Its flows and counts are the whole port's.
 */
struct phase_lane {
    const struct phase_run *run;
    const struct local_rank *own;
    const struct transport *transport; /**< its part's */
    const struct node_port *port;
    struct blob_exchange blob_exchange;
    struct phase phase; /**< its own: what the part asks, and the port's load and tag */
    struct schedule_executor *executor; /**< NULL: no schedule */
    struct lane_flow *flows;            /**< those that it sends, then those that it receives */
    uint32_t send_count;
    uint32_t receive_count;
    uint32_t flow_count; /**< of both */
    bool is_idle;        /**< it has no flow in this phase, and does not listen: no lane */
    double part;         /**< of the trial's load that its sends have together */
    uint32_t fetched;    /**< of its flows' partners: addresses */
    struct port_count count;
    uint64_t *marked;  /**< payload that came until the last mark, by flow; NULL: no intervals */
    int64_t marked_ns; /**< when that was; 0: none was taken yet */
    atomic_ullong foreign; /**< frames for other ports, told by the workers while it runs */
    struct shown_progress shown;
    struct port_hardware before;
    struct port_hardware after;
    struct worker_lane *queues;
    uint32_t queue_count;
    struct lane *lane; /**< of queue 0; NULL: idle in this phase */
};

/** @brief What the barrier at the end of a phase agreed on. */
struct phase_outcome {
    uint32_t states;      /**< STATE_ bits over all nodes */
    double start_skew_us; /**< below 0: not known */
    double stop_skew_us;
    double skew_bound_us;   /**< below 0: no common clock */
    int64_t clock_bound_ns; /**< the greatest of all nodes' (struct phase_clock); -1: not known */
    int64_t elapsed_ns;     /**< start to the last byte anywhere (transfer), else to the stop */
};

/**
 * @brief What is known of this node's clock in a phase's window: run time = local + the offset that
 * the phase was run with + shift_ns, within +-bound_ns, all through the window.
 */
struct phase_clock {
    int64_t shift_ns;
    int64_t bound_ns; /**< -1: not known */
};

/** @brief What nodes tell each other in barriers, OR-ed. */
enum phase_state {
    STATE_UNREACHABLE = 1, /**< a probe did not arrive */
    STATE_FLOODED = 2,
    STATE_DRAIN_TIMEOUT = 4,
    STATE_NO_CLOCK = 8,
    STATE_STOPPED = 16,     /**< local only: the run ends */
    STATE_LANE_FAILED = 32, /**< a lane met a fault: what it measured is not whole */
};

/**
 * @brief What was used up to a moment: seconds of CPU by this process, seconds that the CPUs idled.
 */
struct phase_cost {
    int64_t at_ns;
    double process_s;
    double idle_s; /**< below 0: not known */
};

struct phase_run {
    struct trial *trial;
    uint32_t number;       /**< or PHASE_PROBE */
    bool is_probe;         /**< this is the connectivity check */
    bool is_timed;         /**< it has a window: it does not end when all is through */
    bool by_clock;         /**< sync none: it follows the one before it by the clock */
    struct phase template; /**< what all parts have in common */
    struct phase_lane *lanes;
    size_t lane_count;
    double busy_cores;         /**< that the load needs at the least */
    struct worker_task *tasks; /**< by worker */
    struct worker_lane **worker_lanes;
    /** @brief Agreed on before the start: */
    int64_t entry_run_ns; /**< when the last node was ready; 0: there was no barrier */
    int64_t start_run_ns;
    int64_t sending_ns;      /**< the longest that any node sends if nothing hinders it */
    int64_t offset_ns;       /**< run time = local + offset, as it was known then, ... */
    int64_t bound_ns;        /**< ... within this; -1: it was not */
    struct compute *compute; /**< NULL: nothing is computed beside the traffic */
    struct phase_cost begin;
    struct phase_cost end;
    struct phase_clock clock; /**< as it is reported */
    struct phase_outcome outcome;
};

/**
 * @brief Return whether the flow of a connectivity check did not bring a single frame or message.
 *
 * @param flow Flow.
 * @return True: it did not.
 */
static inline bool flow_unreached(const struct lane_flow *flow)
{
    return flow->side.live.frames == 0 && flow->side.live.messages == 0;
}

/* --- lanes (lanes.c) --- */

/**
 * @brief Make this node's lanes of a phase (flows, loads, partners' addresses) and connect them.
 *
 * Waits for partners while the node's loop goes on.
 *
 * @param run Phase.
 * @return 0; -ECANCELED: the run ends; another negative errno, and node->err has the sentence.
 */
int lanes_prepare(struct phase_run *run);
/**
 * @brief Release what was made, also in part.
 *
 * @param run Phase.
 */
void lanes_release(struct phase_run *run);
/**
 * @brief Sum up what each port's queues counted, and when they began and ended; the workers are
 * done.
 *
 * @param run Phase.
 */
void lanes_gather(struct phase_run *run);
/**
 * @brief Return the name between nodes of a rank's published address.
 *
 * @param trial Trial.
 * @param part Part of the trial, from 0.
 * @param rank Rank, from 0.
 * @return Number.
 */
uint64_t trial_blob_id(const struct trial *trial, uint32_t part, uint32_t rank);

/**
 * @brief Resolve the load that the document asks of a lane's port.
 *
 * Messages at 100 % are unlimited: the transport finds the line's end.
 *
 * @param lane Lane; its phase takes the load.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EINVAL with the sentence: the line can't carry it, or its share was asked for and the
 *        rate is unknown.
 */
int lane_resolve_load(struct phase_lane *lane, struct err *err);
/**
 * @brief Return the rate of a connectivity check: slow, since it is not known yet where the frames
 * go. 10 % of line, at most 1,000 a second; and the port's probes over 0.15 s at least, for
 * partners that begin late.
 *
 * @param lane Lane.
 * @param probes Probes of the port; 0: not known.
 * @return Frames or messages a second.
 */
double lane_probe_fps(const struct phase_lane *lane, uint32_t probes);

/* --- times (phase_times.c) --- */

/**
 * @brief Begin without any start.
 *
 * @param margin Margin.
 * @param sleeps Cores are shared, so threads wake up late.
 */
void start_margin_init(struct start_margin *margin, bool sleeps);
/**
 * @brief Note one start: from the last entry into the barrier until this node's workers were at
 * their lanes.
 *
 * @param margin Margin.
 * @param needed_ns What the start needed, ns.
 */
void start_margin_note(struct start_margin *margin, int64_t needed_ns);
/**
 * @brief Return the margin of the next start.
 *
 * @param margin Margin.
 * @return ns.
 */
int64_t start_margin_next(const struct start_margin *margin, bool hastes);

/**
 * @brief Agree on the start and write the phase's times, once this node's lanes are ready.
 *
 * Phases that follow each other by the clock have one barrier before the first, then a fixed step.
 *
 * @param run Phase.
 * @return 0, or -ECANCELED.
 */
int phase_agree_start(struct phase_run *run);
/**
 * @brief Agree on what the phase was like on all nodes, once this node's workers are done.
 *
 * @param run Phase; its outcome is written.
 * @param rc Below 0: the run ends in the middle, no barrier is entered, and what there is was
 *        measured by this node alone.
 * @return `rc`, or -ECANCELED.
 */
int phase_agree_end(struct phase_run *run, int rc);

/**
 * @brief Return how long a phase that goes by the clock is held for partners.
 *
 * @param run Phase.
 * @return ns since its start.
 */
int64_t phase_hold_ns(const struct phase_run *run);

/**
 * @brief Return what is known of this node's clock in a phase: once it is over, better than before.
 *
 * @param run Phase.
 * @return Shift and bound.
 */
struct phase_clock clock_of_phase(const struct phase_run *run);

/* --- records (report.c) --- */

/**
 * @brief Report, before the start, that this node comes too late for the window.
 *
 * @param run Phase.
 */
void report_late(const struct phase_run *run);
/**
 * @brief Report the rates of the node and its ports, while a phase runs.
 *
 * They are since the record before; in the window the mean since its first record, so that they
 * come to what the table says. All records say the node's sums.
 *
 * @param run Phase.
 * @param last_ns When the record before was made; takes the time of this one.
 */
void report_progress(struct phase_run *run, int64_t *last_ns);
/**
 * @brief Report what came of each flow from mark to mark.
 *
 * @param run Phase.
 * @param all Also where many records wait to be written.
 */
void report_intervals(struct phase_run *run, bool all);
/**
 * @brief Report a phase that has ended: its faults, each side of its flows, its ports, the node.
 *
 * Of a connectivity check: flows that are not reached, and ports; nothing where it is done again.
 *
 * @param run Phase.
 */
void report_end(struct phase_run *run);

/**
 * @brief Report the end of a trial.
 *
 * @param trial Trial.
 * @param state How the trial ended.
 */
void report_trial(const struct trial *trial, const char *state);

#endif
