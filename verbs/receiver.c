/* SPDX-License-Identifier: BSD-3-Clause */
#include "receiver.h"

#include "clock.h"
#include "mode.h"

#include <errno.h>
#include <stdlib.h>

#define AGAIN_NS (5 * NS_PER_MS) /* unreliable: a credit may have been lost */
#define SILENT_NS (2 * NS_PER_S) /* unreliable: then no eof will come any more */

int verbs_receiver_init(struct verbs_receiver *receiver, bool whole)
{
    const struct stream_context *context = receiver->base.context;

    receiver->verifier = (struct verbs_verifier){
        .script = receiver->base.script,
        .side = receiver->base.flow->side,
        .count = context->lane->request.count,
        .reliable = context->reliable,
        .whole = whole,
    };
    verbs_verify_start(&receiver->verifier);
    if (!context->mode->uncounted)
        return 0;
    receiver->lengths = calloc(receiver->base.config.slots, sizeof *receiver->lengths);
    return receiver->lengths != NULL ? 0 : -ENOMEM;
}

void verbs_receiver_free(struct verbs_receiver *receiver)
{
    free(receiver->lengths);
}

void verbs_receiver_connected(struct verbs_receiver *receiver)
{
    receiver->place = receiver->to_post_place = receiver->base.qp->place;
}

/* --- giving back --- */

void verbs_receiver_give_back(struct verbs_receiver *receiver, uint32_t count)
{
    receiver->held -= count;
    receiver->to_post += count;
}

void verbs_receiver_leave(struct verbs_receiver *receiver)
{
    receiver->place = verbs_receiver_after(receiver, receiver->place);
    receiver->to_post++;
}

static void post_receives(struct verbs_receiver *receiver)
{
    struct verbs_qp *qp = receiver->base.qp;
    int code = verbs_qp_post_receives(qp, receiver->to_post_place, receiver->to_post);

    receiver->to_post_place = (receiver->to_post_place + receiver->to_post) % qp->config.slots;
    receiver->to_post = 0;
    if (code != 0)
        verbs_fault_post(&receiver->base, code);
}

static bool credit_is_due(const struct verbs_receiver *receiver, uint64_t credit, int64_t now_ns)
{
    const struct verbs_endpoint *endpoint = &receiver->base;
    const struct stream_context *context = endpoint->context;
    bool again = !context->reliable && now_ns - receiver->credited_ns >= AGAIN_NS;

    /* What is answered needs none; that the eof has come must be told. */
    if (context->has_replies)
        return again && endpoint->finished;
    if (credit - receiver->credited > endpoint->qp->config.slots / 4)
        return true;
    return again && (credit > receiver->credited || endpoint->finished);
}

/* Posts receives again, gives credit. */
static void give_credit(struct verbs_receiver *receiver, int64_t now_ns)
{
    struct verbs_endpoint *endpoint = &receiver->base;
    /* So many messages of the phase are dealt with: taken and given back, or lost. */
    uint64_t credit = receiver->verifier.at.sequence - receiver->held;

    if (receiver->to_post > 0)
        post_receives(receiver);
    if (!credit_is_due(receiver, credit, now_ns) || endpoint->control_busy || endpoint->failed)
        return;
    receiver->credited = credit;
    receiver->credited_ns = now_ns;
    verbs_endpoint_credit(endpoint, endpoint->finished, credit);
}

/* --- taking --- */

void verbs_receiver_take(struct verbs_receiver *receiver, const uint8_t *data, uint32_t bytes,
                         int64_t now_ns)
{
    struct flow_side *side = receiver->base.flow->side;

    receiver->place = verbs_receiver_after(receiver, receiver->place);
    receiver->held++;
    if (verbs_verify_message(&receiver->verifier, data, bytes)) {
        side->first_ns = side->first_ns > 0 ? side->first_ns : now_ns;
        side->last_ns = now_ns;
        receiver->came_ns = now_ns;
        receiver->base.context->lane->arrived_ns = now_ns;
    }
    if (!receiver->forwards)
        verbs_receiver_give_back(receiver, 1);
}

bool verbs_receiver_read_eof(struct verbs_receiver *receiver, const struct verbs_notice *eof)
{
    uint64_t messages, bytes;

    if (!verbs_notice_read(eof, VERBS_KIND_EOF, &receiver->base.script, &messages, &bytes))
        return false;
    receiver->total = messages;
    receiver->total_bytes = bytes;
    receiver->eof_seen = true;
    return true;
}

/* --- schedules --- */

const uint8_t *verbs_receiver_arrived(const struct verbs_receiver *receiver, uint32_t *bytes)
{
    *bytes = receiver->arrived > 0 ? receiver->lengths[receiver->place] : 0;
    return receiver->arrived > 0 ? verbs_receiver_slot(receiver, receiver->place) : NULL;
}

void verbs_receiver_took(struct verbs_receiver *receiver, uint32_t bytes)
{
    receiver->arrived--;
    verbs_receiver_leave(receiver);
    receiver->verifier.at.sequence++;
    receiver->verifier.at.before += bytes;
}

void verbs_receiver_take_eof(struct verbs_receiver *receiver)
{
    uint32_t bytes;
    const uint8_t *data = verbs_receiver_arrived(receiver, &bytes);

    if (bytes != sizeof(struct verbs_notice) ||
        !verbs_receiver_read_eof(receiver, (const struct verbs_notice *)(const void *)data))
        err_set(&receiver->base.context->lane->error, -EPROTO,
                "rank %u sent a message behind the last barrier", receiver->base.flow->src);
    receiver->arrived--;
    verbs_receiver_leave(receiver);
}

/* --- the stream --- */

/* All that the eof tells of has come; of an unreliable service what will come. */
static void finish(struct verbs_receiver *receiver)
{
    const struct verbs_cursor *at = &receiver->verifier.at;

    receiver->base.finished = true;
    receiver->whole = at->sequence == receiver->total && at->before == receiver->total_bytes;
    if (receiver->base.context->reliable && !receiver->whole)
        receiver->base.flow->side->corrupted += sizeof(struct verbs_notice);
    receiver->credited_ns = 0;
}

/* An unreliable service may have lost the last messages, and the eof. */
static bool will_not_come(const struct verbs_receiver *receiver, int64_t now_ns)
{
    const struct stream_context *context = receiver->base.context;
    int64_t stop_ns = context->lane->stop_ns;
    int64_t since_ns = receiver->came_ns;

    if (context->reliable)
        return false;
    if (receiver->eof_seen)
        return true;
    if (context->may_rest) /* the drain has its limit */
        return false;
    if (since_ns == 0 || (stop_ns != CLOCK_NEVER && since_ns < stop_ns))
        since_ns = stop_ns;
    return since_ns != CLOCK_NEVER && now_ns - since_ns > SILENT_NS;
}

static unsigned poll_completions(struct verbs_receiver *receiver, int64_t now_ns)
{
    const struct verbs_mode *mode = receiver->base.context->mode;
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(receiver->base.qp->cq, VERBS_BATCH, completions);
    unsigned taken = 0;

    for (int i = 0; i < count; i++) {
        if (completions[i].status != IBV_WC_SUCCESS)
            verbs_fault(&receiver->base, &completions[i]);
        else if (verbs_work_of(&completions[i]) == VERBS_WORK_CONTROL)
            receiver->base.control_busy = false;
        else
            taken += mode->consume(receiver, &completions[i], now_ns);
    }
    return taken;
}

unsigned verbs_receiver_poll(struct verbs_receiver *receiver, int64_t now_ns)
{
    unsigned taken = poll_completions(receiver, now_ns);

    if (!receiver->base.finished && taken == 0 &&
        ((receiver->eof_seen && receiver->verifier.at.sequence >= receiver->total) ||
         will_not_come(receiver, now_ns)))
        finish(receiver);
    give_credit(receiver, now_ns);
    return taken;
}
