/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_array.h"

#include "clock.h"
#include "eal.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <string.h>

#define TURN_FRAMES 32u
#define BURSTS_MOST 64u
#define CACHE 256
#define POOL_LEAST 8192u
#define POOL_MOST (1u << 18)
#define POOL_PER_PORT 1024u /* packets in rings and in transit */
#define POOL_BYTES 256u     /* of buffer, for a frame */
#define HEADER 18           /* with an 802.1Q tag */
#define SHORTEST_BITS (84.0 * 8)
#define LONG_NS (100 * NS_PER_US)

static_assert(RTE_PKTMBUF_HEADROOM >= sizeof(struct model_frame),
              "the model's part of a frame lies in the packet's headroom");

/* Return the model's frame of a received packet, stored in the packet's headroom: a ring device
 * passes on packets of other processes, in which only the headroom is free. */
static struct model_frame *frame_of(struct rte_mbuf *packet)
{
    struct model_frame *frame = packet->buf_addr;

    frame->host = packet;
    frame->data = rte_pktmbuf_mtod(packet, uint8_t *);
    frame->length = packet->pkt_len;
    return frame;
}

static struct model_frame *make(void *context, uint32_t length)
{
    struct port_array *port_array = context;
    struct rte_mbuf *packet = rte_pktmbuf_alloc(port_array->pool);

    if (packet == NULL)
        return NULL;
    if (rte_pktmbuf_append(packet, (uint16_t)length) == NULL) {
        rte_pktmbuf_free(packet);
        return NULL;
    }
    return frame_of(packet);
}

static void release(void *context, struct model_frame *frame)
{
    (void)context;
    rte_pktmbuf_free(frame->host);
}

/* --- the way out --- */

static bool is_ready(struct device *device)
{
    return device->kind->ready == NULL || device->kind->ready(device);
}

static void flush(struct port_array *port_array, struct device *device)
{
    uint16_t sent = device->kind->send(device, device->leaving, device->count);
    enum model_drop why = MODEL_DROP_HOST;

    if (sent < device->count && !is_ready(device))
        why = MODEL_DROP_LINK; /* the other end has closed meanwhile */
    for (uint16_t i = sent; i < device->count; i++) {
        model_refused(port_array->model, device->leaving[i]->buf_addr, why);
        rte_pktmbuf_free(device->leaving[i]);
    }
    device->count = 0;
}

static void queue_tx(struct port_array *port_array, struct device *device, struct rte_mbuf *packet)
{
    if (device->count == DEVICE_BURST)
        flush(port_array, device);
    device->leaving[device->count++] = packet;
}

/* Send a copy of a frame to another device at the same cable; the copy does not count as a frame of
 * the switch. */
static void queue_copy(struct port_array *port_array, struct device *device,
                       const struct model_frame *frame)
{
    struct model_frame *copy = make(port_array, frame->length);

    if (copy == NULL)
        return;
    memcpy(copy->data, frame->data, frame->length);
    copy->flow = NULL;
    queue_tx(port_array, device, copy->host);
}

static void leave(void *context, struct model_frame *frame, int64_t at_ns)
{
    struct port_array *port_array = context;
    struct array_port *port = &port_array->ports[frame->out];
    unsigned first, second;

    (void)at_ns;
    if (port->ready == 0) {
        model_refused(port_array->model, frame, MODEL_DROP_LINK);
        release(NULL, frame);
        return;
    }
    port_array->leaving |= (uint64_t)1 << frame->out;
    first = (unsigned)__builtin_ctz(port->ready);
    second = first + 1;
    if (second < port->count && (port->ready >> second & 1) != 0) {
        if ((frame->data[0] & 1) != 0)
            queue_copy(port_array, port->devices[second], frame);
        else if (port->heard[second] == model_mac(frame->data))
            first = second;
    }
    queue_tx(port_array, port->devices[first], frame->host);
}

static void flush_all(struct port_array *port_array)
{
    for (; port_array->leaving != 0; port_array->leaving &= port_array->leaving - 1) {
        struct array_port *port = &port_array->ports[__builtin_ctzll(port_array->leaving)];

        for (unsigned i = 0; i < port->count; i++)
            if (port->devices[i]->count > 0)
                flush(port_array, port->devices[i]);
    }
}

/* --- the way in --- */

static unsigned take_from(struct port_array *port_array, unsigned number, unsigned which,
                          uint16_t most)
{
    struct array_port *port = &port_array->ports[number];
    struct device *device = port->devices[which];
    struct rte_mbuf *packets[TURN_FRAMES];
    uint16_t count = device->kind->receive(device, packets, most);

    for (uint16_t i = 0; i < count; i++) {
        rte_prefetch0(packets[i]->buf_addr);
        rte_prefetch0(rte_pktmbuf_mtod(packets[i], void *));
    }
    for (uint16_t i = 0; i < count; i++) {
        struct model_frame *frame;

        if (packets[i]->nb_segs > 1 ||
            rte_pktmbuf_headroom(packets[i]) < sizeof(struct model_frame)) {
            rte_pktmbuf_free(packets[i]);
            port->lost++;
            continue;
        }
        frame = frame_of(packets[i]);
        if (port->count > 1 && frame->length >= RTE_ETHER_HDR_LEN)
            port->heard[which] = model_mac(frame->data + RTE_ETHER_ADDR_LEN);
        model_receive(port_array->model, number, frame, device->empty_ns);
    }
    return count;
}

/* Return how many frames of the shortest size a port's wire could have carried since it became
 * free, at most TURN_FRAMES. */
static uint16_t wanted(const struct array_port *port, int64_t free_ns, int64_t now_ns)
{
    int64_t since_ns = now_ns - free_ns;
    double frames;

    if (port->frames_per_ns == 0 || since_ns > LONG_NS)
        return TURN_FRAMES;
    frames = (double)since_ns * port->frames_per_ns + 1;
    return frames < TURN_FRAMES ? (uint16_t)frames : TURN_FRAMES;
}

/* Receive the frames of a port's devices: as many as the wire could have carried since the last
 * turn, so that late turns do not reduce the rate. Return their number. */
static unsigned take_port(struct port_array *port_array, unsigned number, int64_t now_ns)
{
    struct array_port *port = &port_array->ports[number];
    unsigned came = 0;

    for (unsigned k = 0; k < port->count; k++) {
        unsigned most, count, bursts = 0;
        int64_t free_ns;

        do {
            free_ns = model_wire_free(port_array->model, number);
            if (free_ns > now_ns)
                break;
            most = wanted(port, free_ns, now_ns);
            count = take_from(port_array, number, k, (uint16_t)most);
            came += count;
            if (count < most)
                port->devices[k]->empty_ns = now_ns;
        } while (count == most && port->frames_per_ns > 0 && ++bursts < BURSTS_MOST);
    }
    return came;
}

unsigned port_array_turn(struct port_array *port_array, int64_t now_ns)
{
    unsigned came = 0;

    for (unsigned i = 0; i < port_array->count; i++)
        came += take_port(port_array, i, now_ns);
    model_run(port_array->model, now_ns);
    flush_all(port_array);
    return came;
}

void port_array_look(struct port_array *port_array)
{
    for (unsigned i = 0; i < port_array->count; i++) {
        struct array_port *port = &port_array->ports[i];

        port->ready = 0;
        for (unsigned k = 0; k < port->count; k++) {
            struct device *device = port->devices[k];

            port->ready |= (unsigned)is_ready(device) << k;
            port->lost += device->kind->lost != NULL ? device->kind->lost(device) : 0;
        }
    }
}

/* --- life --- */

static uint32_t pool_size(const struct model_conf *conf)
{
    uint64_t frames = POOL_LEAST, buffers = conf->shared ? conf->buffer_bytes : 0;

    for (unsigned i = 0; i < conf->port_count; i++) {
        const struct model_port_conf *port = &conf->ports[i];

        if (port->vdev != NULL || port->iface != NULL)
            frames += POOL_PER_PORT;
        if (!conf->shared)
            buffers += port->buffer_bytes > 0 ? port->buffer_bytes : conf->buffer_bytes;
        if (conf->capacity_bps > 0 || conf->collapse.above > 0)
            buffers += conf->input_bytes;
    }
    frames += buffers / POOL_BYTES;
    return (uint32_t)(frames < POOL_MOST ? frames : POOL_MOST);
}

static int open_port(struct port_array *port_array, const struct model_port_conf *conf,
                     struct array_port *port, struct err *err)
{
    const struct model_conf *all = port_array->conf;
    struct device_need need = {port_array->pool, all->mtu + HEADER,
                               conf->buffer_bytes > 0 ? conf->buffer_bytes : all->buffer_bytes};
    int rc = 0;

    /* The other end of a trunk shapes by itself. */
    if (!conf->trunk)
        port->frames_per_ns = (double)conf->rate_bps / SHORTEST_BITS / 1e9;
    if (conf->vdev != NULL)
        rc = device_open_ethernet(&port->devices[port->count], conf->vdev, need.pool, err);
    port->count += conf->vdev != NULL && rc == 0;
    if (conf->iface != NULL && rc == 0) {
        rc = device_open_packet(&port->devices[port->count], conf->iface, &need, err);
        port->count += rc == 0;
    }
    for (unsigned i = 0; i < port->count; i++)
        port->devices[i]->empty_ns = clock_now();
    return rc;
}

int port_array_open(struct port_array *port_array, const struct model_conf *conf, struct err *err)
{
    uint32_t room =
        RTE_MAX(conf->mtu + HEADER + RTE_PKTMBUF_HEADROOM, (uint32_t)RTE_MBUF_DEFAULT_BUF_SIZE);
    int rc = 0;

    *port_array = (struct port_array){.conf = conf, .count = conf->port_count};
    port_array->host = (struct model_host){port_array, make, release, leave};
    port_array->pool =
        rte_pktmbuf_pool_create("switch", pool_size(conf), CACHE, 0,
                                (uint16_t)RTE_ALIGN(room, RTE_CACHE_LINE_SIZE), SOCKET_ID_ANY);
    if (port_array->pool == NULL)
        return err_set(err, -ENOMEM, "can't allocate memory for packets (%s): %s",
                       rte_strerror(rte_errno), eal_memory_remedy());
    for (unsigned i = 0; i < port_array->count && rc == 0; i++)
        rc = open_port(port_array, &conf->ports[i], &port_array->ports[i], err);
    if (rc == 0 && model_open(&port_array->model, conf, &port_array->host, clock_now()) != 0)
        rc = err_set(err, -ENOMEM, "out of memory");
    if (rc < 0)
        port_array_close(port_array);
    else
        port_array_look(port_array);
    return rc;
}

void port_array_close(struct port_array *port_array)
{
    for (unsigned i = 0; i < port_array->count; i++) {
        struct array_port *port = &port_array->ports[i];

        for (unsigned k = 0; k < port->count; k++)
            port->devices[k]->kind->close(port->devices[k]);
    }
    model_close(port_array->model);
    rte_mempool_free(port_array->pool);
}
