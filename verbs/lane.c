/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The verbs transport: messages through RDMA devices by libibverbs, on InfiniBand and RoCE.
 *
 * - A flow is `queue_pairs` queue pairs. They are made when a phase is prepared, and connected by
 *   infos that travel over the run's authenticated datagrams. A stream that is answered has one
 *   more for its answers.
 * - Receivers verify what arrives (message.h says what is compared) and give credit for places
 *   that are free again, so that nothing is sent that has no place.
 * - A load at layer 1 becomes a payload rate by what a message's packets cost on the line.
 * - At its end each stream sends an end mark.
 */
#include "clock.h"
#include "netlink.h"
#include "schedule_executor.h"
#include "verbs.h"

#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEPTH_MAX 16384
#define QUEUE_PAIRS_MAX 64
#define MESSAGE_MAX (1u << 30)
#define SIGNAL_MAX 32
#define RING_BYTES (32u << 20) /* of one queue pair, if this is at least two messages ... */
#define LANE_SHARE 4           /* ... and maximum part of the port's memory for the whole lane */
#define SLOTS_BY_DEPTH 2u      /* places for one depth while the credit for another is sent */
#define PINGPONG_SLOTS 4u      /* late messages of an unreliable service need places too */
#define SCHEDULE_SLOTS 17u     /* pieces of messages sent ahead, and the end mark */
/* Maximum latency probes per second with a software device, because each packet takes CPU time that
 * the load needs. */
#define SOFTWARE_FPS 100.0
#define SUSPECT_NS (3 * NS_PER_S) /* time after which the sentence names the awaited partner */
#define AT_ONCE 32u               /* infos requested at the same time */

/* --- options --- */

#define MEMBER(type, key, member) OPTION(type, verbs_options, key, member)

static const char *const service_names[] = {
    [VERBS_RC] = "rc", [VERBS_UC] = "uc", [VERBS_UD] = "ud", NULL};
static const char *const operation_names[] = {[VERBS_SEND] = "send", [VERBS_WRITE] = "write", NULL};

/* Options of the verbs transport. Rules that depend on the device are checked when a phase is
 * prepared. */
static const struct option options[] = {
    {MEMBER(OPTION_WORD, "service", qp.service), .words = service_names},
    {MEMBER(OPTION_WORD, "operation", qp.operation), .words = operation_names},
    {MEMBER(OPTION_NUMBER, "depth", qp.depth), .min = 1, .max = DEPTH_MAX, .initial = 128},
    {MEMBER(OPTION_NUMBER, "queue_pairs", queue_pairs), .min = 1, .max = QUEUE_PAIRS_MAX,
     .initial = 1},
    {MEMBER(OPTION_NUMBER, "mtu", mtu), .max = UINT16_MAX},
    {MEMBER(OPTION_NUMBER, "gid_index", qp.gid_index), .max = UINT8_MAX,
     .initial = VERBS_AUTOMATIC},
    {MEMBER(OPTION_NUMBER, "service_level", qp.service_level), .max = 15},
    {MEMBER(OPTION_NUMBER, "traffic_class", qp.traffic_class), .max = UINT8_MAX},
    {MEMBER(OPTION_NUMBER, "pkey_index", qp.pkey_index), .max = UINT16_MAX},
    {MEMBER(OPTION_NUMBER, "retry", qp.retry), .max = 6, .initial = 6,
     .why = "7 means retries without end, which would hide a dead partner"},
    {MEMBER(OPTION_NUMBER, "timeout", qp.timeout), .min = 1, .max = 31, .initial = 14},
    {.key = NULL},
};

static const struct option_table option_table = {options, sizeof(struct verbs_options)};

/* --- abilities of the port --- */

/* Reject a partner in this host, because its traffic would not pass the network. */
static int check_partner(const struct verbs_lane *lane, const struct lane_flow *flow, bool sends,
                         struct err *err)
{
    const struct transport_port *port = lane->port;
    uint32_t rank = sends ? flow->dst : flow->src;
    struct verbs_address address;
    char gid[VERBS_GID_TEXT];
    bool ipv4, local;
    int fd;

    if (!verbs_address_read(&address, &flow->partner))
        return err_set(err, -EINVAL, "%s: rank %u has sent no verbs address", port->label, rank);
    if (address.ethernet != port->ethernet)
        return err_set(err, -EINVAL,
                       "%s: rank %u's port is %s, this one is %s: they can't reach each other; put "
                       "them into different networks",
                       port->label, rank, address.ethernet ? "RoCE" : "InfiniBand",
                       port->ethernet ? "RoCE" : "InfiniBand");
    if (port->gid != NULL && memcmp(address.gid, port->gid->gid.raw, sizeof address.gid) == 0)
        return err_set(err, -EINVAL,
                       "%s: rank %u is this same port, so the bytes would never leave it",
                       port->label, rank);
    if (!port->software || !port->ethernet)
        return 0;
    /* A software device sends by the kernel's routes, which may lead to an address within the host,
     * without a wire. */
    fd = netlink_open();
    ipv4 = verbs_gid_is_ipv4(address.gid);
    local = fd >= 0 &&
            route_is_local(fd, ipv4 ? AF_INET : AF_INET6, address.gid + (ipv4 ? VERBS_IPV4_AT : 0),
                           if_nametoindex(port->netdev));
    if (fd >= 0)
        close(fd);
    if (local)
        return err_set(
            err, -EINVAL,
            "%s: rank %u (%s) is on this same host, and a software device delivers messages to its "
            "own host internally, so the bytes would never leave the host; use ports of two hosts, "
            "or route between the two interfaces over the wire",
            port->label, rank, verbs_gid_text(address.gid, gid));
    return 0;
}

/* Check that the GID index of the options is in the port's table, or that the port has a default
 * GID. */
static int check_gid(const struct transport_port *port, int index, struct err *err)
{
    char list[256] = "";
    size_t used = 0;

    if (index == VERBS_AUTOMATIC ? port->gid != NULL : verbs_port_gid(port, index) != NULL)
        return 0;
    for (size_t i = 0; i < port->gid_count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", i > 0 ? ", " : "",
                                 port->gids[i].gid_index);
    if (port->gid_count == 0)
        return err_set(err, -EADDRNOTAVAIL,
                       "%s: the port has no GID; give %s an address and bring it up", port->label,
                       port->netdev[0] != '\0' ? port->netdev : "its interface");
    return err_set(err, -EINVAL,
                   "%s: gid_index %d is not in the port's GID table, which has %s: use one of "
                   "these, or remove gid_index",
                   port->label, index, list);
}

/* Check the options against the port's abilities, and against each other. */
static int check(const struct verbs_lane *lane, struct err *err)
{
    static const bool possible[3][2] = {
        [VERBS_RC] = {true, true},
        [VERBS_UC] = {[VERBS_WRITE] = true},
        [VERBS_UD] = {[VERBS_SEND] = true},
    };
    const struct verbs_options *o = &lane->options;
    const struct transport_port *port = lane->port;
    const char *label = port->label;
    const struct lane_request *request = &lane->base.lane.request;
    const struct phase *phase = request->phase;
    uint32_t active = verbs_mtu_bytes(port->attributes.active_mtu);
    uint32_t device = port->attributes.max_msg_sz, most = 0;
    enum ibv_mtu code;
    int rc;

    for (uint32_t i = 0; i < phase->size_count; i++)
        most = phase->sizes[i] > most ? phase->sizes[i] : most;
    if (!possible[o->qp.service][o->qp.operation])
        return err_set(err, -EINVAL,
                       "%s: verbs service %s has no operation %s; rc has send and write, uc has "
                       "write, ud has send",
                       label, service_names[o->qp.service], operation_names[o->qp.operation]);
    if (o->mtu != 0 && !verbs_mtu_code(o->mtu, &code))
        return err_set(err, -EINVAL, "%s: mtu %u: a path MTU must be 256, 512, 1024, 2048 or 4096",
                       label, o->mtu);
    if (o->mtu > active)
        return err_set(err, -EINVAL,
                       "%s: mtu %u is larger than the port's active MTU %u; use at most that, or "
                       "raise the MTU of the link (on RoCE that of %s, and of the switch)",
                       label, o->mtu, active,
                       port->netdev[0] != '\0' ? port->netdev : "its interface");
    if ((int)o->qp.depth + (int)VERBS_CONTROL_WRS > port->limits.max_qp_wr)
        return err_set(err, -EINVAL,
                       "%s: depth %u: the device's queue pairs hold %d messages at most", label,
                       o->qp.depth, port->limits.max_qp_wr - (int)VERBS_CONTROL_WRS);
    if (o->qp.pkey_index >= port->attributes.pkey_tbl_len && o->qp.pkey_index > 0)
        return err_set(err, -EINVAL, "%s: pkey_index %u: the port's P_Key table has %u keys", label,
                       o->qp.pkey_index, port->attributes.pkey_tbl_len);
    if (most > MESSAGE_MAX || most > device)
        return err_set(err, -EMSGSIZE,
                       "%s: a message of %u bytes is too long: this device sends at most %u bytes "
                       "at once; use smaller message_sizes",
                       label, most, device < MESSAGE_MAX ? device : MESSAGE_MAX);
    if (o->qp.service == VERBS_UD && most > lane->mtu && phase->traffic != TRAFFIC_PROBE)
        return err_set(err, -EMSGSIZE,
                       "%s: a message of %u bytes is too long: with service ud a message is one "
                       "packet of at most %u bytes, the path MTU",
                       label, most, lane->mtu);
    if (phase->traffic == TRAFFIC_SCHEDULE &&
        (o->qp.service != VERBS_RC || o->qp.operation != VERBS_SEND))
        return err_set(err, -EINVAL, "%s: a schedule needs service rc and operation send", label);
    rc = check_gid(port, o->qp.gid_index, err);
    for (uint32_t i = 0; i < request->send_count && rc == 0; i++)
        rc = check_partner(lane, &request->flows[i], true, err);
    for (uint32_t i = 0; i < request->receive_count && rc == 0; i++)
        rc = check_partner(lane, &lane_receives(request)[i], false, err);
    return rc;
}

/* Return the bytes at layer 1 of a message of `bytes`: InfiniBand Architecture 5.2, RoCEv2 annex
 * A17. Ethernet: preamble to gap and FCS 38, IPv4 20 or IPv6 40, UDP 8; transport 12 and the
 * checksum 4; InfiniBand: local header 8, both checksums 6. First or only packets have the
 * operation's header (16); datagrams 8. */
static double line_bytes(const struct verbs_lane *lane, uint32_t bytes)
{
    const struct ibv_gid_entry *gid = lane->port->gid;
    double packet = 12 + 6 + 8;
    uint32_t packets = (bytes + lane->mtu - 1) / lane->mtu;
    double once = lane->options.qp.operation != VERBS_SEND ? 16 : 0;

    if (lane->port->ethernet)
        packet = 12 + 4 + 38 + 8 + (gid != NULL && verbs_gid_is_ipv4(gid->gid.raw) ? 20 : 40);
    if (lane->options.qp.service == VERBS_UD)
        packet += 8;
    return bytes + packets * packet + once;
}

/* --- queue pairs --- */

/* Return the size of the phase's largest message, in bytes. */
static uint32_t largest(const struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->base.lane.request;
    const struct phase *phase = request->phase;
    uint32_t most = 0;

    if (phase->traffic == TRAFFIC_SCHEDULE) {
        uint64_t bytes = request->executor->most_bytes;

        return MESSAGE_HEADER_BYTES +
               (bytes < VERBS_PIECE_BYTES ? (uint32_t)bytes : VERBS_PIECE_BYTES);
    }
    for (uint32_t i = 0; i < phase->size_count; i++)
        most = lane->base.sizes[i] > most ? lane->base.sizes[i] : most;
    return most;
}

static uint32_t stride_of(const struct verbs_lane *lane, uint32_t bytes)
{
    if (bytes < MESSAGE_HEADER_BYTES)
        bytes = MESSAGE_HEADER_BYTES;
    if (lane->options.qp.service == VERBS_UD)
        bytes += VERBS_GRH_BYTES;
    return (bytes + 63) / 64 * 64;
}

/* Return the number of places in a ring: `wanted`, but at least two, and at most as many as the
 * memory limits above and the device's queues allow. A lane may have no stream at all. */
static uint32_t slots_of(const struct verbs_lane *lane, uint64_t wanted, uint32_t stride)
{
    const struct transport_port *port = lane->port;
    uint64_t ends = message_lane_ends(&lane->base);
    uint64_t most = port->memory_max / LANE_SHARE / (ends > 0 ? ends : 1);

    most = most < RING_BYTES ? most : RING_BYTES;
    if (wanted * stride > most)
        wanted = most / stride;
    if (wanted > (uint64_t)port->limits.max_qp_wr)
        wanted = (uint64_t)port->limits.max_qp_wr;
    return wanted > VERBS_RING_MIN ? (uint32_t)wanted : VERBS_RING_MIN;
}

/* Set the configuration of a stream end's queue pair, and allocate the end's arrays. Latency probes
 * use the service of the load, so that the network treats both alike, and an operation whose
 * destination can answer. */
static int make_end(struct verbs_lane *lane, struct verbs_end *end)
{
    const struct verbs_options *o = &lane->options;
    const struct transport_port *port = lane->port;
    struct qp_config *config = &end->config;
    const bool sends = end->base.sends;
    struct verbs_out *out = sends ? (struct verbs_out *)(void *)end : NULL;
    struct verbs_in *in = sends ? NULL : (struct verbs_in *)(void *)end;

    *config = (struct qp_config){
        .options = o->qp,
        .gid =
            o->qp.gid_index == VERBS_AUTOMATIC ? port->gid : verbs_port_gid(port, o->qp.gid_index),
        .role = sends ? QP_SENDER : QP_RECEIVER,
        .stream = end->base.stream.script.stream,
        .mtu = lane->mtu,
        .slots = lane->slots,
        .stride = lane->stride,
    };
    if (message_end_probes(&end->base)) {
        config->options.operation = o->qp.service == VERBS_UC ? VERBS_WRITE : VERBS_SEND;
        config->options.depth = VERBS_PROBES_OUT;
        config->stride = stride_of(lane, MESSAGE_PROBE_BYTES);
        config->slots = slots_of(lane, VERBS_PROBES_OUT + 1, config->stride);
    }
    end->stride = config->stride;
    if (in != NULL && lane->base.schedules)
        in->lengths = calloc(config->slots, sizeof *in->lengths);
    if (in != NULL)
        return lane->base.schedules && in->lengths == NULL ? -ENOMEM : 0;
    config->slots = VERBS_CREDIT_SLOTS;
    config->stride = VERBS_CREDIT_STRIDE;
    out->signal_every = config->stream < lane->base.streams ? lane->signal_every : 1;
    out->span = config->options.depth;
    out->bytes_after = calloc((size_t)out->span + 1, sizeof *out->bytes_after);
    return out->bytes_after != NULL ? 0 : -ENOMEM;
}

static int make_ends(struct verbs_lane *lane, struct err *err)
{
    const struct schedule_executor *executor = lane->base.lane.request.executor;
    uint32_t depth = lane->options.qp.depth;
    uint32_t most = largest(lane), wanted = depth * SLOTS_BY_DEPTH, quarter;
    int rc = 0;

    if (lane->base.prober.pingpong)
        wanted = PINGPONG_SLOTS;
    else if (lane->base.schedules)
        wanted = SCHEDULE_SLOTS;
    lane->stride = stride_of(lane, most);
    lane->slots = slots_of(lane, wanted, lane->stride);
    /* Messages are signalled four times per maximum in flight, which is less than the depth where
     * the ring has fewer places. */
    quarter = (lane->slots < depth ? lane->slots : depth) / 4;
    quarter = quarter < SIGNAL_MAX ? quarter : SIGNAL_MAX;
    lane->signal_every = quarter > 0 ? quarter : 1;
    for (unsigned i = 0; i < message_lane_ends(&lane->base) && rc == 0; i++)
        rc = make_end(lane, verbs_lane_end(lane, i));
    if (rc < 0)
        return err_set(err, rc, "%s: out of memory", lane->port->label);
    if (lane->base.schedules) {
        lane->memory = ibv_reg_mr(lane->port->pd, executor->memory, executor->memory_bytes, 0);
        if (lane->memory == NULL)
            return registered_memory_error(lane->port->label, executor->memory_bytes, errno, err);
    }
    rc = verbs_port_payload(lane->port, most > MESSAGE_PROBE_BYTES ? most : MESSAGE_PROBE_BYTES,
                            err);
    for (unsigned i = 0; i < message_lane_ends(&lane->base) && rc == 0; i++) {
        struct verbs_end *end = verbs_lane_end(lane, i);

        rc = verbs_qp_make(&end->qp, lane->port, &end->config, err);
    }
    return rc;
}

static void destroy(struct lane *base)
{
    struct verbs_lane *lane = (struct verbs_lane *)(void *)base;

    for (unsigned i = 0;
         lane->base.outs != NULL && lane->base.ins != NULL && i < message_lane_ends(&lane->base);
         i++) {
        struct verbs_end *end = verbs_lane_end(lane, i);

        free(end->base.sends ? (void *)((struct verbs_out *)(void *)end)->bytes_after
                             : ((struct verbs_in *)(void *)end)->lengths);
        if (end->qp != NULL)
            verbs_qp_free(end->qp);
    }
    if (lane->memory != NULL)
        ibv_dereg_mr(lane->memory);
    message_lane_free(&lane->base);
    free(lane);
}

/* --- the lane --- */

static int prepare(struct lane *base, struct err *err)
{
    struct verbs_lane *lane = (struct verbs_lane *)(void *)base;
    const struct lane_request *request = &base->request;
    struct transport_port *port = request->port;
    struct message_plan plan = {.transport = "verbs",
                                .label = port->label,
                                .streams_key = "queue_pairs",
                                .check_bytes = MESSAGE_CHECK_BYTES};
    struct verbs_options *o;
    double payload = 0, line = 0;
    bool huge = false;
    int rc;

    o = &lane->options;
    *o = *(const struct verbs_options *)request->phase->options;
    lane->port = port;
    lane->mtu = (uint16_t)(o->mtu != 0 ? o->mtu : verbs_mtu_bytes(port->attributes.active_mtu));
    lane->events = request->sleeps;
    plan.streams = o->queue_pairs;
    rc = check(lane, err);
    if (rc == 0) {
        if (o->qp.service == VERBS_UD && lane->mtu < plan.check_bytes)
            plan.check_bytes = lane->mtu;
        plan.unreliable = o->qp.service != VERBS_RC;
        plan.sampled = request->phase->traffic == TRAFFIC_STREAM;
        /* The rate depends on the phase alone, so that both ends compute the same. */
        plan.probe_fps = prober_rate(request, line_bytes(lane, MESSAGE_PROBE_BYTES));
        if (request->phase->latency.probe_fps < 0 && port->software &&
            plan.probe_fps > SOFTWARE_FPS)
            plan.probe_fps = SOFTWARE_FPS;
        rc = message_lane_make(&lane->base, &verbs_hooks, &plan, err);
    }
    if (rc == 0)
        rc = make_ends(lane, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < request->phase->size_count; i++) {
        payload += lane->base.sizes[i];
        line += line_bytes(lane, lane->base.sizes[i]);
    }
    lane->payload_share = payload / line; /* of the load's bytes at layer 1 */
    for (unsigned i = 0; i < message_lane_ends(&lane->base); i++)
        huge = huge || verbs_lane_end(lane, i)->qp->memory.huge;
    lane->base.lane.wake_fd = lane->events ? port->channel->fd : -1;
    snprintf(lane->base.lane.variant, sizeof lane->base.lane.variant, "%s %s%s%s, %s%s",
             service_names[o->qp.service], operation_names[o->qp.operation],
             o->qp.operation == VERBS_WRITE ? " immediate" : "",
             lane->base.forwards ? " forward" : "", lane->events ? "event" : "poll",
             huge ? ", hugepages" : "");
    return 0;
}

/* --- connecting --- */

static struct blob_key key_of(const struct verbs_end *end, bool ours)
{
    return (struct blob_key){.src = end->base.flow->src,
                             .dst = end->base.flow->dst,
                             .from_source = verbs_at_source(end) == ours,
                             .piece = end->base.stream.script.stream};
}

static int publish(const struct verbs_end *end, struct err *err)
{
    const struct blob_exchange *blob_exchange = end->base.lane->lane.request.blob_exchange;
    struct blob_key key = key_of(end, true);
    struct qp_info mine;
    struct blob blob = {.size = sizeof mine};
    int rc;

    verbs_qp_describe(end->qp, &mine);
    memcpy(blob.bytes, &mine, sizeof mine);
    rc = blob_exchange->publish(blob_exchange->context, &key, &blob);
    return rc < 0
               ? err_set(err, rc, "%s: can't send the address of a queue pair to its partner: %s",
                         end->base.lane->label, strerror(-rc))
               : 0;
}

/* Check that the info of a partner's queue pair fits this end. Returns 0 or a negative errno with
 * an error message. */
static int check_info(const struct verbs_end *end, struct err *err)
{
    const struct ibv_gid_entry *gid = end->config.gid;
    const struct qp_info *theirs = &end->theirs;
    const char *label = end->base.lane->label;
    char ours_text[VERBS_GID_TEXT], theirs_text[VERBS_GID_TEXT];

    if (end->base.sends && !qp_info_fits(theirs, end->stride))
        return err_set(err, -EPROTO,
                       "%s: rank %u has %u receive buffers of %u bytes and an MTU of %u, which are "
                       "invalid for "
                       "messages of %u bytes: use the same version of switchbench-node everywhere",
                       label, verbs_partner(end), theirs->slots, theirs->stride, theirs->mtu,
                       end->stride);
    if (!end->qp->port->ethernet || gid == NULL ||
        verbs_gid_is_ipv4(gid->gid.raw) == verbs_gid_is_ipv4(theirs->gid))
        return 0;
    return err_set(err, -EAFNOSUPPORT,
                   "%s: its GID %s and rank %u's %s are of different address families; give both "
                   "a gid_index of one family",
                   label, verbs_gid_text(gid->gid.raw, ours_text), verbs_partner(end),
                   verbs_gid_text(theirs->gid, theirs_text));
}

static int advance(struct verbs_end *end, struct err *err)
{
    const struct blob_exchange *blob_exchange = end->base.lane->lane.request.blob_exchange;
    struct blob_key key = key_of(end, false);
    struct blob blob;
    int rc = blob_exchange->fetch(blob_exchange->context, &key, &blob);

    if (rc < 0)
        return rc;
    if (!qp_info_read(&end->theirs, &blob))
        return err_set(err, -EPROTO,
                       "%s: rank %u has another version of the verbs protocol: use the same "
                       "version of switchbench-node everywhere",
                       end->base.lane->label, verbs_partner(end));
    rc = check_info(end, err);
    if (rc == 0)
        rc = verbs_qp_connect(end->qp, &end->theirs, err);
    end->connected = rc == 0;
    if (end->connected && end->base.sends)
        verbs_out_connected((struct verbs_out *)(void *)end);
    return rc;
}

/* Connect the queue pairs of a lane. Each end publishes the info of its queue pair, and connects to
 * the partner's queue pair. This serves RoCE and InfiniBand, which needs no IP address for it, with
 * all services; rdma_cm, which iWARP would need, connects neither UC and UD as used here nor
 * InfiniBand without IPoIB.
 *
 * No message is sent before the barrier that follows, so an end need not know whether its
 * partner has connected too. */
static int connect_lane(struct lane *base, int64_t now_ns, struct err *err)
{
    struct verbs_lane *lane = (struct verbs_lane *)(void *)base;
    unsigned count = message_lane_ends(&lane->base);
    int rc = 0;

    if (lane->connecting_since_ns == 0) {
        lane->connecting_since_ns = now_ns;
        for (unsigned i = 0; i < count && rc == 0; i++)
            rc = publish(verbs_lane_end(lane, i), err);
        if (rc < 0)
            return rc;
    }
    verbs_port_events(lane->port);
    for (unsigned i = lane->connected; i < count && i < lane->connected + AT_ONCE; i++) {
        rc = verbs_lane_end(lane, i)->connected ? 0 : advance(verbs_lane_end(lane, i), err);
        if (rc < 0 && rc != -EAGAIN)
            return rc;
        if (i == lane->connected && rc == 0)
            lane->connected++;
    }
    if (lane->connected == count)
        return 0;
    if (now_ns - lane->connecting_since_ns < SUSPECT_NS)
        return -EAGAIN;
    return err_set(err, -EAGAIN,
                   "%s: rank %u has not sent the address of its queue pair for this phase",
                   lane->port->label, verbs_partner(verbs_lane_end(lane, lane->connected)));
}

/* --- measurements --- */

/* Read the metrics of a flow, from its queue pairs and their configuration. */
static void read_flow(struct lane *base, const struct lane_flow *flow, struct flow_reading *reading)
{
    const struct verbs_lane *lane = (const struct verbs_lane *)(const void *)base;
    const struct verbs_options *o = &lane->options;
    bool sends = flow->src == base->request.rank;
    size_t place = (size_t)(flow - base->request.flows) - (sends ? 0 : base->request.send_count);
    const struct verbs_end *one = NULL;
    double bytes = 0, waits = 0, missed = 0;

    message_lane_read_flow(base, flow, reading);
    assert(lane->base.streams > 0);
    for (unsigned i = 0; i < lane->base.streams; i++) {
        unsigned index = (unsigned)place * lane->base.stride + i;

        one = verbs_lane_end(lane, index + (sends ? 0 : lane->base.out_count));
        bytes += (double)(sizeof *one->qp + one->qp->memory.bytes);
        missed += (double)one->base.stream.missed;
        if (sends)
            waits += (double)((const struct verbs_out *)(const void *)one)->waits;
    }
    const struct flow_metric all[] = {
        {"depth", o->qp.depth},
        {"queue_pairs", lane->base.streams},
        {"signal_every", lane->signal_every},
        {"inline_bytes", one->qp->inline_bytes},
        {"path_mtu_bytes", one->qp->mtu},
        {"gid_index", one->qp->config.gid != NULL ? (double)one->qp->config.gid->gid_index : -1},
        {"slots", sends ? one->theirs.slots : one->qp->config.slots},
        {"queue_pair_bytes", bytes / lane->base.streams},
        {"retry", o->qp.retry},
        {"timeout_us", 4.096 * (double)(1u << o->qp.timeout)},
        {sends ? "credit_waits" : "missed_messages", sends ? waits : missed},
    };
    static_assert(sizeof all / sizeof all[0] <= FLOW_METRICS_MAX, "all fit");
    memcpy(reading->metrics, all, sizeof all);
    reading->metric_count = sizeof all / sizeof all[0];
}

/* Nothing happens between phases: the device answers the network. */
const struct transport transport_verbs = {
    .name = "verbs",
    .capabilities = TRANSPORT_KNOWS_END | TRANSPORT_NEEDS_RDMA,
    .options = &option_table,
    .port_bytes = sizeof(struct transport_port),
    .lane_bytes = sizeof(struct verbs_lane),
    .open = verbs_port_open,
    .facts = verbs_port_facts,
    .prepare = prepare,
    .connect = connect_lane,
    .poll = message_lane_poll,
    .read_flow = read_flow,
    .destroy = destroy,
    .close = verbs_port_close,
};
