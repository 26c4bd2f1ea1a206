/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each end publishes an info of its queue pair and connects to the partner's. So one way serves
 * RoCE and InfiniBand, which needs no IP address for it, with all services; rdma_cm, which iWARP
 * would need, connects neither UC and UD as they are used here nor InfiniBand without IPoIB.
 */
#include "lane_connect.h"

#include "clock.h"

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

static int publish(struct verbs_endpoint *endpoint, struct err *err)
{
    const struct stream_context *context = endpoint->context;
    const struct blob_exchange *blob_exchange = context->lane->request.blob_exchange;
    struct blob_key key = key_of(endpoint, true);
    struct blob blob;
    int rc;

    verbs_qp_describe(endpoint->qp, &endpoint->mine);
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
    endpoint->connected = true;
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

    if (!endpoint->context->port->ethernet || gid == NULL ||
        verbs_gid_is_ipv4(gid->bytes) == verbs_gid_is_ipv4(endpoint->theirs.gid))
        return 0;
    return err_set(err, -EAFNOSUPPORT,
                   "%s: its GID %s and rank %u's %s are of different address families; give both "
                   "a gid_index of one family",
                   endpoint->context->port->label, verbs_gid_text(gid->bytes, ours),
                   verbs_endpoint_partner(endpoint), verbs_gid_text(endpoint->theirs.gid, theirs));
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
        rc = verbs_qp_reset(endpoint->qp, err);
    if (rc == 0)
        rc = verbs_qp_connect(endpoint->qp, &endpoint->theirs, err);
    if (rc == 0)
        connected(lane, endpoint);
    return rc;
}

static int advance(struct verbs_lane *lane, struct verbs_endpoint *endpoint, struct err *err)
{
    int rc = fetch(endpoint, err);

    return rc == 0 ? negotiate(lane, endpoint, err) : rc;
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
    return err_set(err, code, "%s: rank %u has not offered its queue pair for this phase",
                   lane->context.port->label, verbs_endpoint_partner(endpoint));
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
    for (unsigned i = lane->connected_count; i < count && i < lane->connected_count + AT_ONCE;
         i++) {
        struct verbs_endpoint *endpoint = verbs_lane_endpoint(lane, i);

        rc = endpoint->connected ? 0 : advance(lane, endpoint, err);
        if (rc < 0 && rc != -EAGAIN)
            return rc;
        if (i == lane->connected_count && endpoint->connected)
            lane->connected_count++;
    }
    if (lane->ready == count)
        return 0;
    return await_partner(lane, now_ns - lane->connecting_since_ns, err);
}
