/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `reorder` records: how a flow's frames were out of order, of flows that had any.
 */
#include "trial.h"

#include <stdio.h>

/* "-16:" and a count of 13 digits with its space, for each place */
#define DISPLACED_BYTES ((DISORDER_REACH * 2 + 1) * 18)

/* "-1:12 0:9976 1:12": frames by displacement, places without frames left out. */
static void write_displaced(const struct flow_disorder *disorder, char *text, size_t room)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < (int)DISORDER_REACH * 2 + 1 && used < room; i++)
        if (disorder->displaced[i] > 0)
            used += (size_t)snprintf(text + used, room - used, "%s%d:%llu", used > 0 ? " " : "",
                                     i - (int)DISORDER_REACH,
                                     (unsigned long long)disorder->displaced[i]);
}

void report_disorder(const struct phase_run *run, const struct phase_lane *lane,
                     const struct lane_flow *flow)
{
    const struct node_place **ranks = lane->own->part->ranks;
    const struct flow_side *side = flow->side;
    const struct flow_disorder *disorder = &side->disorder;
    char displaced[DISPLACED_BYTES];
    json_t *record;

    if (disorder->extent_most == 0)
        return; /* in order, or a transport that does not look */
    write_displaced(disorder, displaced, sizeof displaced);
    record = report_new(run, "reorder");
    record_set_text(record, "network", lane->own->part->doc->network);
    record_set_text(record, "src", ranks[flow->src]->name);
    record_set_text(record, "dst", ranks[flow->dst]->name);
    record_set_count(record, "reordered", (int64_t)side->reordered);
    record_set_count(record, "extent_sum", (int64_t)disorder->extent_sum);
    record_set_count(record, "extent_most", (int64_t)disorder->extent_most);
    record_set_count(record, "near", (int64_t)disorder->near);
    record_set_text(record, "displaced", displaced);
    record_send(run->trial->node->records, record);
}
