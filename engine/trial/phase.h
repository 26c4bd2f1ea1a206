/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief State of a trial inside a node: the trial's parts (networks), this node's own ranks, and
 * the present phase.
 *
 * Private to trial/.
 */
#ifndef ENGINE_PHASE_H
#define ENGINE_PHASE_H

#include "node.h"
#include "schedule_executor.h"
#include "worker.h"

#include <stddef.h>

#define PHASE_PROBE UINT32_MAX /**< phase number of a plan's probe */

/**
 * @brief Part of a trial that runs on one network: its transport, the locations of its ranks, and
 * its pattern's plan.
 */
struct trial_part {
    const struct doc_part *doc;
    const struct transport *transport;
    const struct port_location **ranks;
    uint32_t n;
    struct pattern_plan *plan;
};

/** @brief Rank of a trial that is on a port of this node. */
struct local_rank {
    const struct trial_part *part;
    uint32_t part_index;
    uint32_t rank;
    uint32_t port; /**< index in this node */
};

#define MARGIN_MEMORY 8

/**
 * @brief State for computing how long after a barrier a phase starts.
 *
 * In a barrier all nodes learn when the last node entered; the phase starts a margin later. Until
 * then each node must have passed the barrier, and its workers must poll their lanes, or the node
 * starts late. Each node records the time that the last starts needed and computes the next margin
 * from it; all nodes take the longest margin that any of them requests. The first margin is a
 * conservative guess.
 *
 * Margins are of two kinds. A transfer waits for its slowest rank anyway and is often short, so
 * that the margin is most of the time between transfers: it gets 1.5 times the median of the needed
 * times. A stream lasts seconds and a late rank spoils its window: it gets four times the longest
 * needed time, except for one outlier, and half a second at most unless starts need more.
 */
struct start_margin {
    int64_t first_ns;
    int64_t needed_ns[MARGIN_MEMORY]; /**< time needed by the last starts, in a ring */
    uint32_t noted;
};

struct trial {
    struct node *node;
    const struct doc_trial *doc;
    struct trial_part *parts;
    struct local_rank *own;
    size_t own_count;
    bool *taken;          /**< by port: the port has a rank */
    uint32_t phase_count; /**< phases of the longest plan */
    int64_t begun_ns;
    /** @brief Remaining repetitions of the plan's connectivity check, for pairs of ranks that were
     * not reached. */
    uint32_t probes_left;
    uint32_t states; /**< STATE_ bits of its phases, over all nodes */
    struct start_margin start_margin;
    int connect_fd; /**< readable when connecting lanes can continue; -1: no such descriptor */
};

struct phase_run;

/**
 * @brief Byte counts of a port at its last `progress` record; the next record has the rates since
 * that time.
 */
struct shown_progress {
    int64_t published_ns; /**< 0: no record yet */
    uint64_t offered_bytes;
    uint64_t delivered_bytes;
    uint64_t line_bytes;
    bool in_window;
};

/**
 * @brief State of one of this node's ranks in the present phase.
 *
 * Its flows and counts are those of the whole port.
 */
struct phase_lane {
    const struct phase_run *run;
    const struct local_rank *own;
    const struct transport *transport; /**< of its part */
    const struct node_port *port;
    struct blob_exchange blob_exchange;
    struct phase phase; /**< copy for this rank: the part's task, with the port's load and tag */
    struct schedule_executor *executor; /**< NULL: no schedule */
    struct lane_flow *flows;            /**< flows that it sends, then those that it receives */
    uint32_t send_count;
    uint32_t receive_count;
    uint32_t flow_count; /**< number of sent and received flows */
    bool is_idle;        /**< no flow in this phase, and not listening: no lane */
    double part;         /**< share of the trial's load that all its sent flows have together */
    uint32_t fetched;    /**< number of its flows' partners with a fetched address */
    struct port_count count;
    uint64_t *marked;      /**< payload by flow until the last mark; NULL: no intervals */
    int64_t marked_ns;     /**< time of the last mark; 0: none yet */
    atomic_ullong foreign; /**< frames for other ports, published by the workers during the phase */
    struct shown_progress shown;
    struct port_hardware before;
    struct port_hardware after;
    struct worker_lane *queues;
    uint32_t queue_count;
    struct lane *lane; /**< of queue 0; NULL: idle in this phase */
};

/** @brief Result of the barrier at the end of a phase. */
struct phase_outcome {
    uint32_t states;      /**< STATE_ bits over all nodes */
    double start_skew_us; /**< below 0: unknown */
    double stop_skew_us;
    /** @brief Maximum of all nodes' bounds (struct phase_clock); -1: no common clock. */
    int64_t clock_bound_ns;
    /** @brief Time from the start to the last byte at any node (transfer), else to the stop. */
    int64_t elapsed_ns;
};

/**
 * @brief Clock of this node in a phase's window: run time = local + the phase's offset + shift_ns,
 * within +-bound_ns, throughout the window.
 */
struct phase_clock {
    int64_t shift_ns;
    int64_t bound_ns; /**< -1: unknown */
};

/** @brief States that nodes exchange in barriers, reduced by OR. */
enum phase_state {
    STATE_UNREACHABLE = 1, /**< a probe did not arrive */
    STATE_FLOODED = 2,
    STATE_DRAIN_TIMEOUT = 4,
    STATE_NO_CLOCK = 8,
    STATE_STOPPED = 16,     /**< only on this node: the run ends */
    STATE_LANE_FAILED = 32, /**< a lane failed: its measurements are incomplete */
};

/** @brief CPU time used up to a point of time: by this process, and idle time of all CPUs, in
 * seconds. */
struct phase_cost {
    int64_t at_ns;
    double process_s;
    double idle_s; /**< below 0: unknown */
};

struct phase_run {
    struct trial *trial;
    uint32_t number;       /**< number of the phase, or PHASE_PROBE */
    bool is_probe;         /**< the phase is the connectivity check */
    bool is_timed;         /**< the phase has a window: it does not end when its task is complete */
    struct phase template; /**< common to all parts */
    struct phase_lane *lanes;
    size_t lane_count;
    struct worker_task *tasks; /**< one per worker */
    struct worker_lane **worker_lanes;
    /** @brief Times that all nodes agreed on before the start of the phase. */
    int64_t entry_run_ns; /**< entry of the last node into the barrier */
    int64_t start_run_ns;
    int64_t sending_ns; /**< longest unhindered sending time of any node */
    int64_t offset_ns;  /**< run time = local + offset, as known at the start */
    int64_t bound_ns;   /**< bound of this offset; -1: unknown */
    struct phase_cost begin;
    struct phase_cost end;
    struct phase_clock clock; /**< as reported */
    struct phase_outcome outcome;
};

/**
 * @brief Return whether no frame or message of a flow arrived in a connectivity check.
 *
 * @param flow Flow.
 * @return True: nothing arrived.
 */
static inline bool flow_unreached(const struct lane_flow *flow)
{
    return flow->side.live.frames == 0 && flow->side.live.messages == 0;
}

/* --- lanes (lanes.c) --- */

/**
 * @brief Make this node's lanes of a phase (flows, loads, partners' addresses) and connect them.
 *
 * Waits for partners while the node's loop continues.
 *
 * @param run Phase.
 * @return 0; -ECANCELED: the run ends; another negative errno, and node->err has the error message.
 */
int lanes_prepare(struct phase_run *run);
/**
 * @brief Release the lanes of a phase, even partly made ones.
 *
 * @param run Phase.
 */
void lanes_release(struct phase_run *run);
/**
 * @brief Add up the counts of each port's queues, and combine their begin and end times, once the
 * workers are done.
 *
 * @param run Phase.
 */
void lanes_gather(struct phase_run *run);
/**
 * @brief Return the id under which a rank's address is published among nodes.
 *
 * @param trial Trial.
 * @param part Part of the trial, from 0.
 * @param rank Rank, from 0.
 * @return Id of the blob.
 */
uint64_t trial_blob_id(const struct trial *trial, uint32_t part, uint32_t rank);

/**
 * @brief Compute the load of a lane's port, in bit/s or frames/s, from the trial document.
 *
 * Messages at 100 % are unlimited: the transport finds the line rate.
 *
 * @param lane Lane; its phase takes the load.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0; -EINVAL with an error message: the load exceeds the line rate, or is in percent of an
 *        unknown line rate.
 */
int lane_resolve_load(struct phase_lane *lane, struct err *err);
/**
 * @brief Return the rate of a connectivity check in frames or messages per second: 10 % of the line
 * rate, at most 1,000 per second.
 *
 * The rate is low because switches may not know the addresses yet. The port's probes take at least
 * 0.15 s, for partners that begin late.
 *
 * @param lane Lane.
 * @param probes Number of the port's probes; 0: unknown.
 * @return Frames or messages per second.
 */
double lane_probe_fps(const struct phase_lane *lane, uint32_t probes);

/* --- times (phase_times.c) --- */

/**
 * @brief Initialise the state of the start margin, before any start has been recorded.
 *
 * @param margin Margin.
 * @param sleeps True: cores are shared, so threads wake up late.
 */
void start_margin_init(struct start_margin *margin, bool sleeps);
/**
 * @brief Record the time that one start needed: from the last node's entry into the barrier until
 * this node's workers polled their lanes.
 *
 * @param margin Margin.
 * @param needed_ns Time that the start needed, ns.
 */
void start_margin_note(struct start_margin *margin, int64_t needed_ns);
/**
 * @brief Return the start margin: the time from the barrier to the start of the next phase.
 *
 * @param margin Margin.
 * @return Margin, ns.
 */
int64_t start_margin_next(const struct start_margin *margin, bool hastes);

/**
 * @brief Agree with all nodes, in a barrier, on the start of a phase, and write the phase's times;
 * called once this node's lanes are ready.
 *
 * @param run Phase.
 * @return 0, or -ECANCELED.
 */
int phase_agree_start(struct phase_run *run);
/**
 * @brief Exchange the results of a phase with all nodes in a barrier, once this node's workers are
 * done.
 *
 * @param run Phase; its outcome is written.
 * @param rc Below 0: the run ends early, no barrier is entered, and the outcome covers this node
 *        alone.
 * @return `rc`, or -ECANCELED.
 */
int phase_agree_end(struct phase_run *run, int rc);

/**
 * @brief Return the correction of this node's clock offset in a phase, and its error bound; both
 * are more exact once the phase is over.
 *
 * @param run Phase.
 * @return Shift and bound.
 */
struct phase_clock clock_of_phase(const struct phase_run *run);

/* --- records (report.c) --- */

/**
 * @brief Write an `event` record if this node was ready only after the phase's window had opened.
 *
 * @param run Phase.
 */
void report_late(const struct phase_run *run);
/**
 * @brief Write `progress` records with the rates of the node and its ports while a phase runs.
 *
 * The rates are since the previous record, or in the window the mean since its first record, so
 * that they converge to the table's values. All records have the node's sums.
 *
 * @param run Phase.
 * @param last_ns Time of the previous records; set to the time of these records.
 */
void report_progress(struct phase_run *run, int64_t *last_ns);
/**
 * @brief Write records with the payload that each flow received in each interval, for the intervals
 * that are complete.
 *
 * @param run Phase.
 * @param all True: write them even if many records are queued.
 */
void report_intervals(struct phase_run *run, bool all);
/**
 * @brief Write the records of a phase that has ended: its faults, each side of its flows, its
 * ports, the node.
 *
 * For a connectivity check: unreached flows, and ports; nothing where the check is repeated.
 *
 * @param run Phase.
 */
void report_end(struct phase_run *run);

/**
 * @brief Write the record of a trial's end.
 *
 * @param trial Trial.
 * @param state Word for how the trial ended.
 */
void report_trial(const struct trial *trial, const char *state);

#endif
