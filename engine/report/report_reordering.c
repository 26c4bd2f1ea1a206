/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `reorder` records: how a flow's frames were out of order, of flows that had any.
 */
#include "report_reordering.h"

#include "phase_run.h"
#include "report_common.h"

void report_disorder(const struct phase_run *run, const struct phase_lane *lane,
                     const struct lane_flow *flow)
{
    const struct node_place **ranks = lane->own->part->ranks;
    const struct flow_side *side = flow->side;
    const struct flow_disorder *disorder = &side->disorder;
    json_t *record;

    if (disorder->extent_most == 0)
        return; /* in order, or a transport that does not look */
    record = report_new(run, "reorder");
    record_set_text(record, "network", lane->own->part->doc->network);
    record_set_text(record, "src", ranks[flow->src]->name);
    record_set_text(record, "dst", ranks[flow->dst]->name);
    record_set_count(record, "reordered", (int64_t)side->reordered);
    record_set_count(record, "extent_sum", (int64_t)disorder->extent_sum);
    record_set_count(record, "extent_most", (int64_t)disorder->extent_most);
    record_set_count(record, "near", (int64_t)disorder->near);
    record_send(run->trial->node->records, record);
}
