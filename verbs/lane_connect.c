/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_connect.h"

#include "clock.h"
#include "connection_pool.h"

#include <errno.h>
#include <string.h>

#define CONNECT_TIMEOUT_NS (20 * NS_PER_S)
#define SUSPECT_NS (3 * NS_PER_S) /* then the sentence names the partner that is awaited */
#define AT_ONCE 32u               /* infos that are asked for at the same time */

/* --- infos --- */

static struct blob_key key_of(const struct verbs_endpoint *endpoint, bool ours)
{
    return (struct blob_key){.src = endpoint->flow->src,
                             .dst = endpoint->flow->dst,
                             .from_source = verbs_endpoint_at_source(endpoint) == ours,
                             .piece = endpoint->script.stream};
}

/* A forwarder's messages are read from where it received them. */
static void describe_ring_of(const struct verbs_qp *from, struct qp_info *info)
{
    info->ring = (struct remote_memory){.address = (uintptr_t)from->ring, .key = from->range.rkey};
    info->slots = from->config.slots;
    info->stride = from->config.stride;
    info->first = from->place;
}

static int publish(struct verbs_endpoint *endpoint, struct err *err)
{
    const struct stream_context *context = endpoint->context;
    const struct blob_exchange *blob_exchange = context->lane->request.blob_exchange;
    struct blob_key key = key_of(endpoint, true);
    struct blob blob;
    int rc;

    verbs_qp_describe(endpoint->qp, &endpoint->mine);
    if (!verbs_endpoint_sends(endpoint) && context->options.connect == VERBS_CONNECT_CM) {
        verbs_cm_expect(context->port, &endpoint->call);
        endpoint->mine.token = endpoint->call.token;
    }
    if (endpoint->config.forwards && context->options.operation == VERBS_READ)
        describe_ring_of(((const struct verbs_sender *)endpoint)->from->base.qp, &endpoint->mine);
    qp_info_write(&endpoint->mine, &blob);
    rc = blob_exchange->publish(blob_exchange->context, &key, &blob);
    return rc < 0 ? err_set(err, rc, "%s: can't publish a queue pair: %s", context->port->label,
                            strerror(-rc))
                  : 0;
}

static int fetch(struct verbs_endpoint *endpoint, struct err *err)
{
    const struct blob_exchange *blob_exchange = endpoint->context->lane->request.blob_exchange;
    struct blob_key key = key_of(endpoint, false);
    struct blob blob;
    int rc = blob_exchange->fetch(blob_exchange->context, &key, &blob);

    if (rc < 0)
        return rc;
    if (qp_info_read(&endpoint->theirs, &blob))
        return 0;
    return err_set(err, -EPROTO,
                   "%s: rank %u speaks another version of the verbs protocol: use the same "
                   "version of switchbench-node everywhere",
                   endpoint->context->port->label, verbs_endpoint_partner(endpoint));
}

/* --- one end --- */

static void connected(struct verbs_lane *lane, struct verbs_endpoint *endpoint)
{
    endpoint->link = VERBS_LINK_READY;
    lane->ready++;
    if (verbs_endpoint_sends(endpoint))
        verbs_sender_connected((struct verbs_sender *)endpoint);
    else
        verbs_receiver_connected((struct verbs_receiver *)endpoint);
}

static int check_families(const struct verbs_endpoint *endpoint, struct err *err)
{
    const struct verbs_gid *gid = endpoint->config.gid;
    char ours[VERBS_GID_TEXT];
    char theirs[VERBS_GID_TEXT];

    if (!endpoint->context->port->ethernet || endpoint->context->port->iwarp || gid == NULL ||
        verbs_gid_is_ipv4(gid->bytes) == verbs_gid_is_ipv4(endpoint->theirs.gid))
        return 0;
    return err_set(err, -EAFNOSUPPORT,
                   "%s: its GID %s and rank %u's %s are of different address families; give both "
                   "a gid_index of one family",
                   endpoint->context->port->label, verbs_gid_text(gid->bytes, ours),
                   verbs_endpoint_partner(endpoint), verbs_gid_text(endpoint->theirs.gid, theirs));
}

static int begin_call(struct verbs_endpoint *endpoint, struct err *err)
{
    struct cm_call *call = &endpoint->call;

    endpoint->link = VERBS_LINK_CALLING;
    call->qp = endpoint->qp;
    call->calls = verbs_endpoint_sends(endpoint);
    if (call->calls)
        call->token = endpoint->theirs.token;
    call->reads = endpoint->theirs.reads;
    call->rank = verbs_endpoint_partner(endpoint);
    return verbs_cm_begin(call, err);
}

/* Both infos are known. */
static int negotiate(struct verbs_lane *lane, struct verbs_endpoint *endpoint, struct err *err)
{
    int rc;

    if (qp_info_connected(&endpoint->mine, &endpoint->theirs)) {
        connected(lane, endpoint);
        return 0;
    }
    rc = check_families(endpoint, err);
    if (rc == 0 && endpoint->qp->reused)
        rc = connection_pool_reset(endpoint->qp, err);
    if (rc == 0 && lane->context.options.connect == VERBS_CONNECT_CM)
        return begin_call(endpoint, err);
    if (rc == 0)
        rc = verbs_qp_connect(endpoint->qp, &endpoint->theirs, err);
    if (rc == 0)
        connected(lane, endpoint);
    return rc;
}

static int advance(struct verbs_lane *lane, struct verbs_endpoint *endpoint, struct err *err)
{
    int rc = 0;

    if (endpoint->link == VERBS_LINK_PUBLISHED) {
        rc = fetch(endpoint, err);
        rc = rc == 0 ? negotiate(lane, endpoint, err) : rc;
    }
    if (rc == 0 && endpoint->link == VERBS_LINK_CALLING) {
        rc = verbs_cm_advance(&endpoint->call, err);
        if (rc == 0)
            connected(lane, endpoint);
    }
    return rc;
}

/* --- the lane --- */

static int publish_all(struct verbs_lane *lane, struct err *err)
{
    int rc = 0;

    for (unsigned i = 0; i < verbs_lane_endpoints(lane) && rc == 0; i++)
        rc = publish(verbs_lane_endpoint(lane, i), err);
    return rc;
}

static int await_partner(const struct verbs_lane *lane, int64_t waited_ns, struct err *err)
{
    const struct verbs_endpoint *endpoint = verbs_lane_endpoint(lane, lane->connected_count);
    int code = waited_ns >= CONNECT_TIMEOUT_NS ? -ETIMEDOUT : -EAGAIN;

    if (waited_ns < SUSPECT_NS)
        return -EAGAIN;
    return err_set(
        err, code, "%s: rank %u %s", lane->context.port->label, verbs_endpoint_partner(endpoint),
        endpoint->link == VERBS_LINK_CALLING ? "does not answer rdma_cm at its address"
                                             : "has not offered its queue pair for this phase");
}

int verbs_lane_connect(struct verbs_lane *lane, int64_t now_ns, struct err *err)
{
    unsigned count = verbs_lane_endpoints(lane);
    int rc = 0;

    if (lane->connecting_since_ns == 0) {
        lane->connecting_since_ns = now_ns;
        rc = publish_all(lane, err);
        if (rc < 0)
            return rc;
    }
    verbs_port_events(lane->context.port);
    verbs_cm_work(lane->context.port);
    for (unsigned i = lane->connected_count; i < count && i < lane->connected_count + AT_ONCE;
         i++) {
        struct verbs_endpoint *endpoint = verbs_lane_endpoint(lane, i);

        rc = endpoint->link == VERBS_LINK_READY ? 0 : advance(lane, endpoint, err);
        if (rc < 0 && rc != -EAGAIN)
            return rc;
        if (i == lane->connected_count && endpoint->link == VERBS_LINK_READY)
            lane->connected_count++;
    }
    if (lane->ready == count)
        return 0;
    return await_partner(lane, now_ns - lane->connecting_since_ns, err);
}
