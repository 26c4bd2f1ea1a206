/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the two ends of a queue pair find each other: each publishes an offer and fetches the
 * partner's. If both have kept their ends of one qp, that is all. An end that was kept by one
 * side only is thrown away, and a new one offered in its place, as piece 1.
 *
 * No message is sent before the barrier that follows, so an end need not know that its partner has
 * connected, too.
 */
#include "clock.h"
#include "latency_probes.h"
#include "rdma_cm.h"

#include <errno.h>
#include <string.h>

#define SETTLE_TIMEOUT_NS (20 * NS_PER_S)
#define SUSPECT_NS (3 * NS_PER_S) /* then whoever is waited for is named */
#define AT_ONCE 32u               /* offers that are asked for at the same time */

static struct courier_letter letter_of(const struct verbs_endpoint *endpoint, bool ours,
                                       uint16_t piece)
{
    return (struct courier_letter){.src = endpoint->flow->src,
                                   .dst = endpoint->flow->dst,
                                   .from_source = (endpoint->source != endpoint->is_reply) == ours,
                                   .piece = (uint16_t)(endpoint->script.stream * 2 + piece)};
}

static int publish(struct verbs_endpoint *endpoint, uint16_t piece, struct err *err)
{
    const struct courier *courier = endpoint->lane->lane.request.courier;
    struct courier_letter letter = letter_of(endpoint, true, piece);
    struct blob blob;
    int rc;

    verbs_qp_info(endpoint->qp, &endpoint->mine);
    endpoint->mine.token = verbs_cm_token(endpoint);
    if (endpoint->config.relays && endpoint->lane->options.operation == VERBS_READ)
        verbs_link_lend(endpoint);
    qp_info_write(&endpoint->mine, &blob);
    rc = courier->publish(courier->context, &letter, &blob);
    return rc < 0 ? err_set(err, rc, "%s: can't publish a queue pair: %s",
                            endpoint->lane->port->label, strerror(-rc))
                  : 0;
}

/* A forwarder's messages are read from where it received them. */
void verbs_link_lend(struct verbs_endpoint *endpoint)
{
    const struct verbs_sender *sender = (const struct verbs_sender *)endpoint;
    const struct verbs_qp *from = sender->from->endpoint.qp;

    endpoint->mine.ring = (struct remote_memory){(uintptr_t)from->ring, from->range.rkey};
    endpoint->mine.slots = from->config.slots;
    endpoint->mine.stride = from->config.stride;
    endpoint->mine.first = from->place;
}

int verbs_endpoint_acquire(struct verbs_endpoint *endpoint, struct err *err)
{
    return verbs_qp_acquire(&endpoint->qp, endpoint->lane->port, &endpoint->config, false, err);
}

static int fetch(struct verbs_endpoint *endpoint, uint16_t piece, struct err *err)
{
    const struct courier *courier = endpoint->lane->lane.request.courier;
    struct courier_letter letter = letter_of(endpoint, false, piece);
    struct blob blob;
    int rc = courier->fetch(courier->context, &letter, &blob);

    if (rc < 0)
        return rc;
    if (qp_info_read(&endpoint->theirs, &blob))
        return 0;
    return err_set(err, -EPROTO,
                   "%s: rank %u speaks another version of the verbs protocol: use the same "
                   "version of switchbench-node everywhere",
                   endpoint->lane->port->label, verbs_endpoint_partner(endpoint));
}

/* --- connecting --- */

static void connected(struct verbs_endpoint *endpoint)
{
    endpoint->link = VERBS_LINK_READY;
    endpoint->lane->ready++;
    if (endpoint->source)
        verbs_sender_connected((struct verbs_sender *)endpoint);
    else
        verbs_receiver_connected((struct verbs_receiver *)endpoint);
}

static int check_families(const struct verbs_endpoint *endpoint, struct err *err)
{
    const struct verbs_gid *gid = endpoint->config.gid;
    char ours[VERBS_GID_TEXT];
    char theirs[VERBS_GID_TEXT];

    if (!endpoint->lane->port->ethernet || endpoint->lane->port->iwarp || gid == NULL ||
        verbs_gid_is_ipv4(gid->bytes) == verbs_gid_is_ipv4(endpoint->theirs.gid))
        return 0;
    return err_set(err, -EAFNOSUPPORT,
                   "%s: its GID %s and rank %u's %s are of different address families; give both "
                   "a gid_index of one family",
                   endpoint->lane->port->label, verbs_gid_text(gid->bytes, ours),
                   verbs_endpoint_partner(endpoint), verbs_gid_text(endpoint->theirs.gid, theirs));
}

static int connect_new(struct verbs_endpoint *endpoint, struct err *err)
{
    int rc = check_families(endpoint, err);

    if (rc < 0)
        return rc;
    if (endpoint->lane->options.connect == VERBS_CONNECT_CM) {
        endpoint->link = VERBS_LINK_CALLING;
        return verbs_cm_begin(endpoint, err);
    }
    rc = verbs_qp_connect(endpoint->qp, &endpoint->theirs, &endpoint->lane->options, err);
    if (rc == 0)
        connected(endpoint);
    return rc;
}

/* The end that was kept is of no use. */
static int renew(struct verbs_endpoint *endpoint, struct err *err)
{
    int rc;

    verbs_qp_free(endpoint->qp);
    endpoint->qp = NULL;
    rc = verbs_qp_acquire(&endpoint->qp, endpoint->lane->port, &endpoint->config, true, err);
    return rc == 0 ? publish(endpoint, 1, err) : rc;
}

static int decide(struct verbs_endpoint *endpoint, struct err *err)
{
    enum qp_agreement agreement = qp_negotiate(&endpoint->mine, &endpoint->theirs);
    int rc = 0;

    if (agreement == QP_REUSE) {
        connected(endpoint);
        return 0;
    }
    if (agreement == QP_REPLACE || agreement == QP_REPLACE_AND_AWAIT)
        rc = renew(endpoint, err);
    if (rc < 0)
        return rc;
    if (agreement == QP_CONNECT || agreement == QP_REPLACE)
        return connect_new(endpoint, err);
    endpoint->link = VERBS_LINK_AWAIT;
    return 0;
}

static int advance(struct verbs_endpoint *endpoint, struct err *err)
{
    int rc = 0;

    if (endpoint->link == VERBS_LINK_PUBLISHED) {
        rc = fetch(endpoint, 0, err);
        rc = rc == 0 ? decide(endpoint, err) : rc;
    }
    if (rc == 0 && endpoint->link == VERBS_LINK_AWAIT) {
        rc = fetch(endpoint, 1, err);
        rc = rc == 0 ? connect_new(endpoint, err) : rc;
    }
    if (rc == 0 && endpoint->link == VERBS_LINK_CALLING) {
        rc = verbs_cm_advance(endpoint, err);
        if (rc == 0)
            connected(endpoint);
    }
    return rc;
}

/* --- the lane --- */

static int publish_all(struct verbs_lane *lane, struct err *err)
{
    int rc = 0;

    for (unsigned i = 0; i < lane->sender_count + lane->receiver_count && rc == 0; i++)
        rc = publish(verbs_lane_endpoint(lane, i), 0, err);
    return rc;
}

static int await_partner(struct verbs_lane *lane, int64_t waited_ns, struct err *err)
{
    const struct verbs_endpoint *endpoint = verbs_lane_endpoint(lane, lane->connected_count);
    int code = waited_ns >= SETTLE_TIMEOUT_NS ? -ETIMEDOUT : -EAGAIN;

    if (waited_ns < SUSPECT_NS)
        return -EAGAIN;
    return err_set(err, code, "%s: rank %u %s", lane->port->label, verbs_endpoint_partner(endpoint),
                   endpoint->link == VERBS_LINK_CALLING
                       ? "does not answer rdma_cm at its address"
                       : "has not offered its queue pair for this phase");
}

static int settle_ends(struct verbs_lane *l, int64_t now_ns, struct err *err)
{
    unsigned count = l->sender_count + l->receiver_count;
    int rc = 0;

    if (l->connecting_since_ns == 0) {
        l->connecting_since_ns = now_ns;
        rc = publish_all(l, err);
        if (rc < 0)
            return rc;
    }
    verbs_port_events(l->port);
    verbs_cm_work(l->port);
    for (unsigned i = l->connected_count; i < count && i < l->connected_count + AT_ONCE; i++) {
        struct verbs_endpoint *endpoint = verbs_lane_endpoint(l, i);

        rc = endpoint->link == VERBS_LINK_READY ? 0 : advance(endpoint, err);
        if (rc < 0 && rc != -EAGAIN)
            return rc;
        if (i == l->connected_count && endpoint->link == VERBS_LINK_READY)
            l->connected_count++;
    }
    if (l->ready == count)
        return 0;
    return await_partner(l, now_ns - l->connecting_since_ns, err);
}

int verbs_lane_connect(struct lane *lane, int64_t now_ns, struct err *err)
{
    struct verbs_lane *l = (struct verbs_lane *)lane;
    struct verbs_lane *probes = verbs_probes_lane(l);
    int rc = settle_ends(l, now_ns, err);
    struct err beside = {""};
    int probes_rc;

    if (probes == NULL || (rc < 0 && rc != -EAGAIN))
        return rc;
    probes_rc = settle_ends(probes, now_ns, &beside);
    if (probes_rc == 0 || (probes_rc == -EAGAIN && rc == -EAGAIN))
        return rc;
    *err = beside;
    return probes_rc;
}

int verbs_port_connect_fd(struct transport_port *port)
{
    return verbs_cm_fd(port);
}

int verbs_lane_wake_fd(struct lane *lane)
{
    const struct verbs_lane *l = (const struct verbs_lane *)lane;
    const struct verbs_options *o = &l->options;
    bool memory = o->operation == VERBS_READ || (o->operation == VERBS_WRITE && !o->immediate);

    return l->events && !memory ? l->port->channel->fd : -1;
}
