/* SPDX-License-Identifier: BSD-3-Clause */
#include "report_port.h"

#include "report_common.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int64_t difference(int64_t before, int64_t after)
{
    return before < 0 || after < 0 ? -1 : after - before;
}

/* What an RDMA device says of the phase; null where it has no such counter. */
static void set_rdma(json_t *record, const struct phase_lane *lane)
{
    const struct port_hardware *before = &lane->before;
    const struct port_hardware *after = &lane->after;

    record_set_count(record, "retransmitted",
                     difference(before->retransmitted, after->retransmitted));
    record_set_count(record, "out_of_sequence",
                     difference(before->out_of_sequence, after->out_of_sequence));
    record_set_count(record, "not_ready", difference(before->not_ready, after->not_ready));
    record_set_count(record, "cnp_sent", difference(before->cnp_sent, after->cnp_sent));
    record_set_count(record, "cnp_handled", difference(before->cnp_handled, after->cnp_handled));
    record_set_count(record, "ecn_marked", difference(before->ecn_marked, after->ecn_marked));
}

void report_port(const struct phase_run *run, const struct phase_lane *lane)
{
    json_t *record = report_new(run, "port");
    bool frames = report_counts_frames(run);
    const struct port_hardware *before = &lane->before;
    const struct port_hardware *after = &lane->after;

    record_set_text(record, "network", lane->own->part->doc->network);
    record_set_text(record, "port", report_rank_name(lane, lane->own->rank));
    record_set_count(record, "sent_frames",
                     frames ? (int64_t)report_frames(lane->sends, lane->send_count) : -1);
    record_set_count(record, "received_frames",
                     frames ? (int64_t)report_frames(lane->receives, lane->receive_count) : -1);
    record_set_count(record, "misdelivered", frames ? (int64_t)lane->count.misdelivered : -1);
    record_set_count(record, "foreign", frames ? (int64_t)lane->count.foreign : -1);
    record_set_count(record, "guest_sent", frames ? (int64_t)lane->count.guest_sent : -1);
    record_set_count(record, "guest_received", frames ? (int64_t)lane->count.guest_received : -1);
    report_set_u64(record, "tag", lane->phase.tag);
    record_set_count(record, "send_refused", frames ? (int64_t)lane->count.send_refused : -1);
    record_set_count(record, "probes_sent", frames ? (int64_t)lane->count.probes_sent : -1);
    record_set_count(record, "probes_received", frames ? (int64_t)lane->count.probes_received : -1);
    record_set_text(record, "variant", lane->lane->variant);
    record_set_count(record, "hardware_received",
                     difference(before->received_frames, after->received_frames));
    record_set_count(record, "hardware_sent", difference(before->sent_frames, after->sent_frames));
    record_set_count(record, "dropped_receive",
                     difference(before->dropped_receive, after->dropped_receive));
    record_set_count(record, "dropped_send", difference(before->dropped_send, after->dropped_send));
    record_set_count(record, "errors", difference(before->errors, after->errors));
    record_set_count(record, "pause", difference(before->pause_received, after->pause_received));
    if (strcmp(run->trial->transport->name, "verbs") == 0)
        set_rdma(record, lane);
    report_set_run_time(run, record, "start_run_ns", lane->lane->started_ns);
    report_set_run_time(run, record, "stop_run_ns", lane->lane->stopped_ns);
    record_send(run->trial->node->records, record);
}

static void report_stray(const struct phase_run *run, const struct phase_lane *lane,
                         const struct stray_flow *stray)
{
    const struct trial_part *part = lane->own->part;
    bool known = stray->src < part->n && stray->dst < part->n; /* anybody may send what looks so */
    json_t *record;

    if (stray->frames == 0)
        return;
    record = report_new(run, "stray");
    record_set_text(record, "network", part->doc->network);
    record_set_text(record, "port", report_rank_name(lane, lane->own->rank));
    record_set_text(record, "src", known ? report_rank_name(lane, stray->src) : NULL);
    record_set_text(record, "dst", known ? report_rank_name(lane, stray->dst) : NULL);
    report_set_u64(record, "frames", stray->frames);
    record_send(run->trial->node->records, record);
}

/* Frames for others, by whose they are; beyond those that were told apart with no name. */
void report_misdelivered(const struct phase_run *run, const struct phase_lane *lane)
{
    const struct strays *strays = &lane->count.strays;
    struct stray_flow others = {strays->others, UINT16_MAX, UINT16_MAX};

    for (uint32_t i = 0; i < STRAYS_SLOTS; i++)
        report_stray(run, lane, &strays->flows[i]);
    report_stray(run, lane, &others);
}
