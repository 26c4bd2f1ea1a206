/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the two ends of a queue pair find each other: each publishes an offer and fetches the
 * partner's. If both have kept their ends of one pair, that is all. An end that was kept by one
 * side only is thrown away, and a new one offered in its place, as piece 1.
 *
 * No message is sent before the barrier that follows, so an end need not know that its partner has
 * connected, too.
 */
#include "clock.h"
#include "rdma_cm.h"
#include "latency_probes.h"

#include <errno.h>
#include <string.h>

#define SETTLE_TIMEOUT_NS (20 * NS_PER_S)
#define SUSPECT_NS (3 * NS_PER_S) /* then whoever is waited for is named */
#define AT_ONCE 32u               /* offers that are asked for at the same time */

static struct courier_letter letter_of(const struct verbs_end *end, bool ours, uint16_t piece)
{
    return (struct courier_letter){.src = end->flow->src,
                                   .dst = end->flow->dst,
                                   .from_source = (end->source != end->back) == ours,
                                   .piece = (uint16_t)(end->script.stream * 2 + piece)};
}

static int publish(struct verbs_end *end, uint16_t piece, struct err *err)
{
    const struct courier *courier = end->lane->lane.request.courier;
    struct courier_letter letter = letter_of(end, true, piece);
    struct blob blob;
    int rc;

    verbs_pair_offer(end->pair, &end->mine);
    end->mine.token = verbs_cm_token(end);
    if (end->need.relays && end->lane->options.operation == VERBS_READ)
        verbs_link_lend(end);
    verbs_offer_write(&end->mine, &blob);
    rc = courier->publish(courier->context, &letter, &blob);
    return rc < 0 ? err_set(err, rc, "%s: can't publish a queue pair: %s", end->lane->port->label,
                            strerror(-rc))
                  : 0;
}

/* A forwarder's messages are read from where it received them. */
void verbs_link_lend(struct verbs_end *end)
{
    const struct verbs_out *out = (const struct verbs_out *)end;
    const struct verbs_pair *from = out->from->end.pair;

    end->mine.ring = (struct verbs_window){(uintptr_t)from->ring, from->range.rkey};
    end->mine.slots = from->need.slots;
    end->mine.stride = from->need.stride;
    end->mine.first = from->place;
}

int verbs_link_begin(struct verbs_end *end, struct err *err)
{
    return verbs_pair_make(&end->pair, end->lane->port, &end->need, false, err);
}

static int fetch(struct verbs_end *end, uint16_t piece, struct err *err)
{
    const struct courier *courier = end->lane->lane.request.courier;
    struct courier_letter letter = letter_of(end, false, piece);
    struct blob blob;
    int rc = courier->fetch(courier->context, &letter, &blob);

    if (rc < 0)
        return rc;
    if (verbs_offer_read(&end->theirs, &blob))
        return 0;
    return err_set(err, -EPROTO,
                   "%s: rank %u speaks another version of the verbs protocol: use the same "
                   "version of switchbench-node everywhere",
                   end->lane->port->label, verbs_end_partner(end));
}

/* --- connecting --- */

static void connected(struct verbs_end *end)
{
    end->link = VERBS_LINK_READY;
    end->lane->ready++;
    if (end->source)
        verbs_out_connected((struct verbs_out *)end);
    else
        verbs_in_connected((struct verbs_in *)end);
}

static int check_families(const struct verbs_end *end, struct err *err)
{
    const struct verbs_gid *gid = end->need.gid;
    char ours[VERBS_GID_TEXT];
    char theirs[VERBS_GID_TEXT];

    if (!end->lane->port->ethernet || end->lane->port->iwarp || gid == NULL ||
        verbs_gid_is_ipv4(gid->bytes) == verbs_gid_is_ipv4(end->theirs.gid))
        return 0;
    return err_set(err, -EAFNOSUPPORT,
                   "%s: its GID %s and rank %u's %s are of different address families; give both "
                   "a gid_index of one family",
                   end->lane->port->label, verbs_gid_text(gid->bytes, ours), verbs_end_partner(end),
                   verbs_gid_text(end->theirs.gid, theirs));
}

static int connect_new(struct verbs_end *end, struct err *err)
{
    int rc = check_families(end, err);

    if (rc < 0)
        return rc;
    if (end->lane->options.connect == VERBS_CONNECT_CM) {
        end->link = VERBS_LINK_CALLING;
        return verbs_cm_begin(end, err);
    }
    rc = verbs_pair_connect(end->pair, &end->theirs, &end->lane->options, err);
    if (rc == 0)
        connected(end);
    return rc;
}

/* The end that was kept is of no use. */
static int renew(struct verbs_end *end, struct err *err)
{
    int rc;

    verbs_pair_free(end->pair);
    end->pair = NULL;
    rc = verbs_pair_make(&end->pair, end->lane->port, &end->need, true, err);
    return rc == 0 ? publish(end, 1, err) : rc;
}

static int decide(struct verbs_end *end, struct err *err)
{
    enum verbs_verdict verdict = verbs_offers_compare(&end->mine, &end->theirs);
    int rc = 0;

    if (verdict == VERBS_BOTH_KEPT) {
        connected(end);
        return 0;
    }
    if (verdict == VERBS_RENEW || verdict == VERBS_RENEW_AND_AWAIT)
        rc = renew(end, err);
    if (rc < 0)
        return rc;
    if (verdict == VERBS_CONNECT || verdict == VERBS_RENEW)
        return connect_new(end, err);
    end->link = VERBS_LINK_AWAIT;
    return 0;
}

static int advance(struct verbs_end *end, struct err *err)
{
    int rc = 0;

    if (end->link == VERBS_LINK_OFFERED) {
        rc = fetch(end, 0, err);
        rc = rc == 0 ? decide(end, err) : rc;
    }
    if (rc == 0 && end->link == VERBS_LINK_AWAIT) {
        rc = fetch(end, 1, err);
        rc = rc == 0 ? connect_new(end, err) : rc;
    }
    if (rc == 0 && end->link == VERBS_LINK_CALLING) {
        rc = verbs_cm_advance(end, err);
        if (rc == 0)
            connected(end);
    }
    return rc;
}

/* --- the lane --- */

static int publish_all(struct verbs_lane *lane, struct err *err)
{
    int rc = 0;

    for (unsigned i = 0; i < lane->out_count + lane->in_count && rc == 0; i++)
        rc = publish(verbs_lane_end(lane, i), 0, err);
    return rc;
}

static int await_partner(struct verbs_lane *lane, int64_t waited_ns, struct err *err)
{
    const struct verbs_end *end = verbs_lane_end(lane, lane->settled);
    int code = waited_ns >= SETTLE_TIMEOUT_NS ? -ETIMEDOUT : -EAGAIN;

    if (waited_ns < SUSPECT_NS)
        return -EAGAIN;
    return err_set(err, code, "%s: rank %u %s", lane->port->label, verbs_end_partner(end),
                   end->link == VERBS_LINK_CALLING
                       ? "does not answer rdma_cm at its address"
                       : "has not offered its queue pair for this phase");
}

static int settle_ends(struct verbs_lane *l, int64_t now_ns, struct err *err)
{
    unsigned count = l->out_count + l->in_count;
    int rc = 0;

    if (l->settle_since_ns == 0) {
        l->settle_since_ns = now_ns;
        rc = publish_all(l, err);
        if (rc < 0)
            return rc;
    }
    verbs_port_events(l->port);
    verbs_cm_work(l->port);
    for (unsigned i = l->settled; i < count && i < l->settled + AT_ONCE; i++) {
        struct verbs_end *end = verbs_lane_end(l, i);

        rc = end->link == VERBS_LINK_READY ? 0 : advance(end, err);
        if (rc < 0 && rc != -EAGAIN)
            return rc;
        if (i == l->settled && end->link == VERBS_LINK_READY)
            l->settled++;
    }
    if (l->ready == count)
        return 0;
    return await_partner(l, now_ns - l->settle_since_ns, err);
}

int verbs_lane_settle(struct lane *lane, int64_t now_ns, struct err *err)
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

int verbs_port_settle_fd(struct transport_port *port)
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
