/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `port`, and `misdelivered-flow`: frames for others that came to a port.
 */
#include "report_record.h"

/* What a counter of the device says of the phase; null where it has none, or went back. */
static json_t *since(int64_t before, int64_t after)
{
    return record_count(count_rest(after, before));
}

void report_port(const struct phase_run *run, const struct phase_lane *lane)
{
    bool frames = report_counts_frames(lane);
    bool rdma = transport_can(lane_transport(lane), TRANSPORT_NEEDS_RDMA);
    const struct port_count *count = &lane->count;
    const struct port_hardware *a = &lane->before, *b = &lane->after;
    const struct record_row rows[] = {
        {"network", report_network(lane)},
        {"port", report_rank(lane, lane->own->rank)},
        {"sent_frames", report_count(frames, report_frames(lane->sends, lane->send_count))},
        {"received_frames",
         report_count(frames, report_frames(lane->receives, lane->receive_count))},
        {"misdelivered", report_count(frames, count->misdelivered)},
        {"unexpected", report_count(frames, count->foreign)},
        {"arp_nd_sent", report_count(frames, count->arp_nd_sent)},
        {"arp_nd_received", report_count(frames, count->arp_nd_received)},
        {"tag", json_integer(lane->phase.tag)},
        {"send_refused", report_count(frames, count->send_refused)},
        {"probes_sent", report_count(frames, count->probes_sent)},
        {"probes_received", report_count(frames, count->probes_received)},
        {"variant", record_text(lane->lane->variant)},
        {"hardware_received", since(a->received_frames, b->received_frames)},
        {"hardware_sent", since(a->sent_frames, b->sent_frames)},
        {"dropped_receive", since(a->dropped_receive, b->dropped_receive)},
        {"dropped_send", since(a->dropped_send, b->dropped_send)},
        {"no_carrier", since(a->no_carrier, b->no_carrier)},
        {"errors", since(a->errors, b->errors)},
        {"pause", since(a->pause_received, b->pause_received)},
        {"retransmitted", rdma ? since(a->retransmitted, b->retransmitted) : NULL},
        {"out_of_sequence", rdma ? since(a->out_of_sequence, b->out_of_sequence) : NULL},
        {"not_ready", rdma ? since(a->not_ready, b->not_ready) : NULL},
        {"cnp_sent", rdma ? since(a->cnp_sent, b->cnp_sent) : NULL},
        {"cnp_handled", rdma ? since(a->cnp_handled, b->cnp_handled) : NULL},
        {"ecn_marked", rdma ? since(a->ecn_marked, b->ecn_marked) : NULL},
        {"start_run_ns", report_run_time(run, lane->lane->started_ns)},
        {"stop_run_ns", report_run_time(run, lane->lane->stopped_ns)},
        {NULL, NULL},
    };

    report_write(run, "port", rows);
}

static void report_misdelivered_flow(const struct phase_run *run, const struct phase_lane *lane,
                                     const struct misdelivered_flow *flow)
{
    const struct trial_part *part = lane->own->part;
    bool known = flow->src < part->n && flow->dst < part->n; /* anybody may send what looks so */
    const struct record_row rows[] = {
        {"network", report_network(lane)},
        {"port", report_rank(lane, lane->own->rank)},
        {"src", known ? report_rank(lane, flow->src) : json_null()},
        {"dst", known ? report_rank(lane, flow->dst) : json_null()},
        {"frames", record_u64(flow->frames)},
        {NULL, NULL},
    };

    report_write(run, "misdelivered-flow", rows);
}

/* Frames for others, by whose they are; beyond those that were told apart with no name. */
void report_misdelivered(const struct phase_run *run, const struct phase_lane *lane)
{
    const struct misdelivered_flows *misdelivered = &lane->count.misdelivered_flows;
    struct misdelivered_flow others = {misdelivered->others, UINT16_MAX, UINT16_MAX};

    for (uint32_t i = 0; i < MISDELIVERED_SLOTS; i++)
        if (misdelivered->flows[i].frames > 0)
            report_misdelivered_flow(run, lane, &misdelivered->flows[i]);
    if (others.frames > 0)
        report_misdelivered_flow(run, lane, &others);
}
