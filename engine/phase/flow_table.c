/* SPDX-License-Identifier: BSD-3-Clause */
#include "flow_table.h"

#include "burst.h"

#include <errno.h>
#include <stdlib.h>

#define FLOWS_USUAL 2         /* of a rank in a phase, each way: most patterns have no more */
#define PROBE_PHASES_MAX 2048 /* of a longer plan the first so many phases are probed */

static int compare_flows(const void *a, const void *b)
{
    const struct pattern_flow *x = a;
    const struct pattern_flow *y = b;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return x->dst < y->dst ? -1 : x->dst > y->dst;
}

static size_t drop_repeats(struct pattern_flow *flows, size_t count)
{
    size_t kept = 0;

    if (count == 0) /* then there may be no list either, and qsort wants one */
        return 0;
    qsort(flows, count, sizeof *flows, compare_flows);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare_flows(&flows[kept - 1], &flows[i]) != 0)
            flows[kept++] = flows[i];
    return kept;
}

struct flow_list {
    struct pattern_flow *flows;
    size_t count;
    size_t room;
};

static int make_room(struct flow_list *list, size_t more)
{
    size_t room = (list->count + more) * 2;
    struct pattern_flow *grown;

    if (list->count + more <= list->room)
        return 0;
    grown = realloc(list->flows, room * sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    list->flows = grown;
    list->room = room;
    return 0;
}

static int append_phase(struct flow_list *list, const struct local_rank *own, uint32_t phase,
                        enum pattern_side side)
{
    const struct pattern_plan *plan = own->part->plan;
    size_t n;
    int rc = make_room(list, FLOWS_USUAL);

    if (rc < 0)
        return rc;
    n = pattern_flows(plan, phase, own->rank, side, list->flows + list->count,
                      list->room - list->count);
    if (n > list->room - list->count) {
        rc = make_room(list, n);
        if (rc == 0)
            pattern_flows(plan, phase, own->rank, side, list->flows + list->count, n);
    }
    list->count += rc == 0 ? n : 0;
    return rc;
}

/* The flows of one side of an own rank: of one phase, or for the probe of all, each once. */
static int collect_flows(const struct phase_run *run, const struct local_rank *own,
                         enum pattern_side side, struct flow_list *list)
{
    uint32_t phases = pattern_phases(own->part->plan);
    int rc = 0;

    if (!phase_is_probe(run))
        return run->number < phases ? append_phase(list, own, run->number, side) : 0;
    for (uint32_t i = 0; i < phases && i < PROBE_PHASES_MAX && rc == 0; i++)
        rc = append_phase(list, own, i, side);
    list->count = drop_repeats(list->flows, list->count);
    for (size_t i = 0; list->flows != NULL && i < list->count; i++)
        list->flows[i].role = PATTERN_GENERATE; /* each hop of a chain is probed by itself */
    return rc;
}

static struct lane_flow *make_flows(const struct flow_list *list)
{
    struct lane_flow *flows = calloc(list->count + 1, sizeof *flows);

    for (size_t i = 0; flows != NULL && i < list->count; i++) {
        flows[i].src = list->flows[i].src;
        flows[i].dst = list->flows[i].dst;
        flows[i].role = list->flows[i].role;
    }
    return flows;
}

/* What the port sends of the trial's load and of a burst, and each flow's share of that, where they
 * differ: of a probe, or of a transfer, each flow sends as much as the others. */
static void set_shares(const struct phase_run *run, struct phase_lane *lane,
                       const struct flow_list *sends, const struct flow_list *receives)
{
    uint64_t sum = 0;
    bool even = true;

    lane->part = 1;
    lane->phase.burst.own_frames = lane->phase.burst.frames;
    if (phase_is_probe(run))
        return;
    if (sends->count == 0 && receives->count > 0 && receives->flows[0].share > 0)
        lane->part = (double)receives->flows[0].share / PATTERN_WHOLE; /* as one who sends to it */
    if (sends->count == 0 || sends->flows[0].share == 0)
        return;
    for (size_t i = 0; i < sends->count; i++)
        sum += sends->flows[i].share;
    lane->part = (double)sum / PATTERN_WHOLE;
    if (run->trial->doc->pattern.share_count > 0) /* of a load of the receivers a burst is whole */
        lane->phase.burst.own_frames = burst_of_port(lane->phase.burst.frames, lane->part);
    for (size_t i = 1; i < sends->count; i++)
        even = even && sends->flows[i].share == sends->flows[0].share;
    even =
        even || (run->template.traffic != TRAFFIC_STREAM && run->template.traffic != TRAFFIC_BURST);
    for (size_t i = 0; i < sends->count && !even; i++)
        lane->sends[i].share = (double)sends->flows[i].share / (double)sum;
}

int flow_table_fill(const struct phase_run *run, struct phase_lane *lane)
{
    struct flow_list sends = {0};
    struct flow_list receives = {0};
    int rc = collect_flows(run, lane->own, PATTERN_SENDS, &sends);

    if (rc == 0)
        rc = collect_flows(run, lane->own, PATTERN_RECEIVES, &receives);
    if (rc == 0) {
        lane->sends = make_flows(&sends);
        lane->receives = make_flows(&receives);
        lane->send_count = (uint32_t)sends.count;
        lane->receive_count = (uint32_t)receives.count;
        lane->sides = calloc(sends.count + receives.count + 1, sizeof *lane->sides);
        if (lane->sends == NULL || lane->receives == NULL || lane->sides == NULL)
            rc = -ENOMEM;
        else
            set_shares(run, lane, &sends, &receives);
    }
    free(sends.flows);
    free(receives.flows);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < lane->send_count; i++)
        lane->sends[i].side = &lane->sides[i];
    for (uint32_t i = 0; i < lane->receive_count; i++)
        lane->receives[i].side = &lane->sides[lane->send_count + i];
    return 0;
}
