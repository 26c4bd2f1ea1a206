/* SPDX-License-Identifier: BSD-3-Clause */
#include "phase_times.h"

#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* sync none: after its drain a phase is held for partners that are not through yet; then the next
 * is prepared. */
#define CLOCK_HOLD_NS (150 * NS_PER_MS)
#define CLOCK_GAP_NS (250 * NS_PER_MS)

static int64_t longest_flow_list(const struct phase_run *run)
{
    int64_t most = 1;

    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];

        most = lane->send_count > most ? lane->send_count : most;
        most = lane->receive_count > most ? lane->receive_count : most;
    }
    return most;
}

/* How many frames a port sends at its load: of a transfer about. */
static double frames_to_send(const struct phase_run *run, const struct phase_lane *lane)
{
    const struct phase *phase = &run->template;

    if (phase_is_probe(run))
        return (double)phase->probes * (double)lane->send_count;
    if (phase->traffic == TRAFFIC_BURST)
        return lane->send_count > 0
                   ? (double)lane->phase.burst.own_frames * (double)phase->burst.count
                   : 0;
    return ((double)phase->transfer_bytes / phase_mean_size(&lane->phase) * 1.5 + 1) *
           (double)longest_flow_list(run);
}

/* How long a port sends if nothing hinders it. */
static int64_t nominal_ns(const struct phase_run *run)
{
    const struct phase *phase = &run->template;
    double slowest_s = 0;
    double gaps_s = 0;

    if (phase->traffic == TRAFFIC_BURST)
        gaps_s = (double)(phase->burst.count - 1) * (double)phase->burst.gap_ns / 1e9;
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct load *load = &run->lanes[i].phase.load;
        double bits = (phase_mean_size(&run->lanes[i].phase) + FRAME_OVERHEAD_L1) * 8.0;
        double frames = frames_to_send(run, &run->lanes[i]);
        double fps = load->rate_fps > 0 ? load->rate_fps : load->rate_bps / bits;
        double seconds = fps > 0 ? frames / fps + gaps_s : 0;

        if (run->lanes[i].lane != NULL && seconds > slowest_s)
            slowest_s = seconds;
    }
    return (int64_t)(slowest_s * 1e9);
}

int64_t phase_own_sending_ns(const struct phase_run *run)
{
    const struct doc_trial *doc = run->trial->doc;

    if (!phase_is_timed(&run->template))
        return nominal_ns(run);
    return doc->warmup_ns + doc->window_ns + doc->cooldown_ns;
}

/* Writes the agreed start and what follows from it into the template and each lane's phase. */
void phase_set_times(struct phase_run *run, int64_t start_ns)
{
    const struct doc_trial *doc = run->trial->doc;
    struct phase *phase = &run->template;

    phase->start_ns = start_ns;
    if (phase_is_timed(phase)) {
        phase->open_ns = start_ns + doc->warmup_ns;
        phase->close_ns = phase->open_ns + doc->window_ns;
        phase->stop_ns = phase->close_ns + doc->cooldown_ns;
    } else { /* the window is all of it; it ends when the last byte is there */
        phase->open_ns = start_ns;
        phase->close_ns = start_ns;
        phase->stop_ns = CLOCK_NEVER;
    }
    for (size_t i = 0; i < run->lane_count; i++) {
        struct phase_lane *lane = &run->lanes[i];

        lane->phase.start_ns = phase->start_ns;
        lane->phase.open_ns = phase->open_ns;
        lane->phase.close_ns = phase->close_ns;
        lane->phase.stop_ns = phase->stop_ns;
        for (uint32_t q = 0; q < lane->queue_count; q++)
            lane->queues[q].lane->stop_ns = phase->stop_ns;
    }
}

bool phase_goes_by_clock(const struct phase_run *run)
{
    return run->trial->doc->by_clock && !phase_is_probe(run);
}

/* From a phase's start until it is held no longer. */
int64_t phase_clock_hold_ns(const struct phase_run *run)
{
    return run->sending_ns + run->trial->doc->drain_timeout_ns + CLOCK_HOLD_NS;
}

int64_t phase_clock_step_ns(const struct phase_run *run)
{
    return phase_clock_hold_ns(run) + CLOCK_GAP_NS;
}

int64_t phase_timeout_ns(const struct phase_run *run)
{
    return 2 * run->trial->node->job->barrier_timeout_ms * NS_PER_MS;
}

/* --- the clock: a phase runs with the offset that was known at its start. Once it is over,
 * datagrams from both sides of it say more (run_clock.h): by how much that was off in the
 * middle of the window, which can be put right afterwards, and how far the clock may have been from
 * that anywhere in the window, which can't --- */

#define LOOKS 5 /* through a window, its ends included */

struct phase_clock clock_of_phase(const struct phase_run *run)
{
    struct control *control = run->trial->node->control;
    const struct phase *phase = &run->template;
    int64_t open_ns = phase->open_ns;
    int64_t close_ns = phase_is_timed(phase) ? phase->close_ns : run->end.at_ns;
    int64_t span_ns = close_ns > open_ns ? close_ns - open_ns : 0;
    struct offset_estimate middle = control_clock_at(control, open_ns + span_ns / 2);
    struct phase_clock clock = {.bound_ns = -1};

    if (run->bound_ns < 0 || middle.bound_ns < 0)
        return clock;
    clock.shift_ns = middle.offset_ns - run->offset_ns;
    clock.bound_ns = middle.bound_ns;
    for (int64_t look = 0; look < LOOKS; look++) {
        struct offset_estimate there =
            control_clock_at(control, open_ns + span_ns * look / (LOOKS - 1));
        int64_t off_ns = llabs(there.offset_ns - middle.offset_ns) + there.bound_ns;

        clock.bound_ns = off_ns > clock.bound_ns ? off_ns : clock.bound_ns;
    }
    /* A disciplined clock only jumps: when, nobody knows. Its error was read at both ends. */
    if (control_clocks(control).mode == CLOCK_PTP)
        clock.bound_ns = llabs(clock.shift_ns) +
                         (run->bound_ns > clock.bound_ns ? run->bound_ns : clock.bound_ns);
    return clock;
}

/* --- what was used --- */

struct phase_cost phase_cost_now(void)
{
    struct phase_cost cost = {.at_ns = clock_now(), .idle_s = -1};
    unsigned long long idle = 0, iowait = 0;
    FILE *stat = fopen("/proc/stat", "re");
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    cost.process_s = (double)used.tv_sec + (double)used.tv_nsec / 1e9;
    if (stat == NULL)
        return cost;
    /* Busy time is sampled by ticks and misses short work; idle time is not. */
    if (fscanf(stat, "cpu %*u %*u %*u %llu %llu", &idle, &iowait) == 2)
        cost.idle_s = (double)(idle + iowait) / (double)sysconf(_SC_CLK_TCK);
    fclose(stat);
    return cost;
}
