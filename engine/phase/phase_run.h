/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A trial inside a node: its parts (networks), this node's own ranks in them, and the phase that
 * is being run. Private to trial.c, phase.c, lanes.c and report.c.
 */
#ifndef ENGINE_TRIAL_H
#define ENGINE_TRIAL_H

#include "compute_load.h"
#include "interval_ring.h"
#include "start_margin.h"
#include "node.h"
#include "schedule_executor.h"

#include <assert.h>

#define PHASE_PROBE UINT32_MAX /* the phase number of a plan's probe */

/* One network's share: rank -> place, and the plan of its pattern. */
struct trial_part {
    const struct doc_part *doc;
    const struct node_place **ranks;
    uint32_t n;
    struct pattern_plan *plan;
};

/* A rank that lives on this node. */
struct own_rank {
    const struct trial_part *part;
    uint32_t part_index;
    uint32_t rank;
    uint32_t port; /* of this node */
};

struct trial {
    struct node *node;
    const struct doc_trial *doc;
    const struct transport *transport;
    struct trial_part *parts;
    struct own_rank *own;
    size_t own_count;
    bool *taken;          /* by place: the port has a rank */
    uint32_t phase_count; /* of the longest plan */
    int64_t begun_ns;
    int64_t clock_start_ns; /* sync none: when the first phase began (run time) ... */
    int64_t offset_ns;      /* ... and run time - local time as it was then */
    uint32_t clock_turn;    /* sync none: how many phases have begun */
    uint32_t probes_left;   /* so often the plan is probed again where a pair is not reached */
    struct lead lead;
    int settle_fd; /* readable when lanes can be settled further; -1: nothing tells */
};

/* One queue of an own rank's port in the present phase. */
struct queue_lane {
    struct lane *lane;
    struct lane_flow *sends;
    struct lane_flow *receives;
    uint32_t send_count;
    struct flow_side *sides; /* its part of flows that several queues share; NULL: none are */
    struct interim *interim; /* NULL: none */
    struct port_count count;
};

struct phase_run;

#define INTERIM_BATCH 8u /* marks of one record */

/* Marks that were taken and wait for their record; the first one is where that begins. */
struct interim_rows {
    uint64_t *bytes; /* by mark, by flow; NULL: no interim results */
    int64_t at_ns[INTERIM_BATCH + 1];
    uint32_t count;
};

/* One own rank in the present phase. Its flows and counts are the whole port's. */
struct phase_lane {
    const struct phase_run *run;
    const struct own_rank *own;
    struct courier courier;
    struct posted *posted;   /* letters that the courier has published (lanes.c) */
    struct phase phase;      /* its own: load and tag differ between ports and parts */
    struct stepper *stepper; /* NULL: no schedule */
    struct lane_flow *sends;
    struct lane_flow *receives;
    uint32_t send_count;
    uint32_t receive_count;
    uint32_t fetched;        /* addresses of partners: of sends, then of receives */
    struct flow_side *sides; /* of sends, then of receives */
    struct port_count count;
    struct interim_rows interim;
    atomic_ullong foreign; /* frames for other ports, told by the workers while it runs */
    struct port_progress progress;
    uint64_t offered_shown; /* so much of it has been in `progress` records */
    uint64_t delivered_shown;
    struct port_hardware before;
    struct port_hardware after;
    struct queue_lane *queues;
    uint32_t queue_count;
    struct lane *lane; /* of queue 0; NULL: idle in this phase */
};

/* What the barrier at the end of a phase agreed on. */
struct phase_outcome {
    uint32_t states;      /* STATE_ bits over all nodes */
    double start_skew_us; /* below 0: not known */
    double stop_skew_us;
    double skew_bound_us;   /* below 0: no common clock */
    int64_t clock_bound_ns; /* the greatest of all nodes' (struct phase_clock); -1: not known */
    int64_t elapsed_ns;     /* start to the last byte anywhere (transfer), else to the stop */
};

/* What is known of this node's clock in a phase's window: run time = local + the offset that the
 * phase was run with + shift_ns, within +-bound_ns, all through the window. */
struct phase_clock {
    int64_t shift_ns;
    int64_t bound_ns; /* -1: not known */
};

/* What nodes tell each other in barriers, OR-ed. */
enum phase_state {
    STATE_UNREACHABLE = 1, /* a probe did not arrive */
    STATE_FLOODED = 2,
    STATE_UNDRAINED = 4,
    STATE_NO_CLOCK = 8,
    STATE_STOPPED = 16, /* local only: the run ends */
    STATE_BROKEN = 32,  /* a lane met a fault: what it measured is not whole */
    STATE_UNREADY = 64, /* the next phase's lanes are not ready yet */
};

/* What was used up to a moment: seconds of CPU by this process, seconds that the CPUs idled. */
struct phase_cost {
    int64_t at_ns;
    double process_s;
    double idle_s; /* below 0: not known */
};

struct phase_run {
    struct trial *trial;
    uint32_t number; /* or PHASE_PROBE */
    struct phase template;
    struct phase_lane *lanes;
    size_t lane_count;
    double busy_cores;         /* that the load needs at the least */
    struct worker_task *tasks; /* by worker */
    struct worker_lane *worker_lanes;
    int failed; /* to prepare, with this code and sentence; 0: it did not */
    struct err err;
    bool admitted;        /* there is memory for its steps */
    bool due;             /* no other phase's memory comes back before it */
    bool made;            /* all lanes are prepared ... */
    bool ready;           /* ... and settled */
    bool agreed;          /* the next four are known */
    int64_t entry_run_ns; /* when the last node was ready; 0: there was no barrier */
    int64_t start_run_ns;
    int64_t sending_ns;      /* the longest that any node sends if nothing hinders it */
    int64_t offset_ns;       /* run time = local + offset, as it was known then, ... */
    int64_t bound_ns;        /* ... within this; -1: it was not */
    struct compute *compute; /* NULL: nothing is computed beside the traffic */
    struct phase_cost begin;
    struct phase_cost end;
    struct phase_clock clock; /* as it is reported */
    struct phase_outcome outcome;
};

static inline bool phase_is_probe(const struct phase_run *run)
{
    return run->number == PHASE_PROBE;
}

/* Of one size or a genome, in bytes. */
static inline uint32_t phase_mean_size(const struct phase *phase)
{
    uint64_t sum = 0;

    assert(phase->size_count > 0); /* documents.c refuses an empty list */
    for (uint32_t i = 0; i < phase->size_count; i++)
        sum += phase->sizes[i];
    return (uint32_t)(sum / phase->size_count);
}

/* lanes.c: begins this node's lanes of a phase: which flows, at which load. 0, or a refusal. */
int lanes_begin(struct phase_run *run, struct err *err);
/* Goes on with them without waiting: partners' addresses fetched, lanes prepared and settled. 0:
 * all are ready. -EAGAIN: not yet, and the sentence may name a partner that is waited for. */
int lanes_advance(struct phase_run *run, struct err *err);
/* The same to the end. -ECANCELED when it fails or has failed (node->err says why). */
int lanes_prepare(struct phase_run *run);
/* What is readable when lanes_advance would get further; -1: nothing tells. */
int lanes_settle_fd(const struct phase_run *run);
/* Releases what was made, also in part. */
void lanes_release(struct phase_run *run);
/* The workers are done: sums up what each port's queues counted, and when they began and ended. */
void lanes_gather(struct phase_run *run);
/* Whose lane this is. */
const struct phase_lane *lanes_owner(const struct phase_run *run, const struct lane *lane);

/* phase.c: runs these phases of the trial one after the other, or the probe of its whole plan, from
 * preparation to records. 0; -ECANCELED when the run ends. *states: theirs are added. */
int phase_sequence(struct trial *trial, const uint32_t *numbers, size_t count, uint32_t *states);
/* Phases that follow each other by the clock: one barrier before the first, then a fixed step. */
bool phase_goes_by_clock(const struct phase_run *run);
int64_t phase_clock_step_ns(const struct phase_run *run);
/* How long this node's ports send, as far as they know. */
int64_t phase_own_sending_ns(const struct phase_run *run);

/* agree.c: this node's lanes are ready; when do all start? 0, or -ECANCELED. */
int agree_on_start(struct phase_run *run);
/* All nodes are through: what the phase was like on all of them; and the start of the next if all
 * are ready for it (next->agreed). NULL: there is no next, or it is not begun yet. */
int agree_on_end(struct phase_run *run, struct phase_run *next);
/* The run ends in the middle: what there is was measured by this node alone. */
void agree_alone(struct phase_run *run);
/* What this start would have needed, for the lead of the next. */
void agree_note_start(const struct phase_run *run);

/* report.c: a new record with the place that all of a phase's records share. */
json_t *report_new(const struct phase_run *run, const char *type);
/* A histogram in as many records as its buckets need: how many, and what each says of it. */
#define REPORT_HISTOGRAM_TEXT 480 /* bytes of buckets in one, which has room for long names */
uint32_t report_histogram_parts(const struct histogram *histogram);
void report_histogram_part(json_t *record, uint32_t part, uint32_t parts, const char *buckets);
/* report_interim.c: the interim results that are due; `all`: those that are not, too. */
void report_interim(struct phase_run *run, bool all);
/* report_disorder.c: how a flow's frames were out of order, if they were. */
void report_disorder(const struct phase_run *run, const struct phase_lane *lane,
                     const struct lane_flow *flow);
/* report_progress.c: what the node and each of its ports moved since *last_ns, which becomes now.
 */
void report_progress(struct phase_run *run, int64_t *last_ns);
/* report.c: the records of a phase that has ended. */
void report_phase(struct phase_run *run);
void report_probe(const struct phase_run *run);
void report_lane_errors(const struct phase_run *run);
/* report_messages.c: single times of messages; what was computed beside them. */
void report_samples(const struct phase_run *run);
void report_compute(const struct phase_run *run);
/* report_execution.c: what a rank needed for the repetitions of its schedule. */
void report_execution(const struct phase_run *run, const struct phase_lane *lane);
void report_compute_failed(const struct phase_run *run, int code);
/* Before the start: says so if this node comes too late for the window. */
void report_late(const struct phase_run *run);
void report_trial(const struct trial *trial, const char *state);
/* What the transport's times come to on a loopback in this node. */
void report_floor(const struct trial *trial, const struct latency floor[LATENCY_KINDS]);

/* Seconds of CPU that this process has used; seconds that this machine's CPUs have idled. */
double cpu_process_s(void);
double cpu_idle_s(void);

/* report_clock.c: as well as it is known now: when the phase is over, better than before. */
struct phase_clock clock_of_phase(const struct phase_run *run);
/* Writes the record of run->clock. */
void report_clock(const struct phase_run *run);

/* How a rank's published address is called between nodes. */
uint64_t trial_blob_id(const struct trial *trial, uint32_t part, uint32_t rank);

/* True for a probe whose flow did not bring a single frame or message. */
bool flow_unreached(const struct lane_flow *flow);

#endif
