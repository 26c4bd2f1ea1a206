/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_sizes.h"

#include "frame_pingpong.h"

#include <assert.h>
#include <errno.h>

/* A MAC pads what is too short; what is made by software alone takes frames as they are. */
static int check_padding(const struct transport_port *port, struct err *err)
{
    static const char *const software[] = {"net_memif", "net_ring", "net_null"};

    if (port->kernel)
        return !port->iface.on_bus ? 0
                                   : err_set(err, -ENOTSUP,
                                             "%s: frames below 64 bytes are not possible on this "
                                             "port: the NIC of '%s' pads them",
                                             port->conf->name, port->iface.name);
    for (size_t i = 0; i < RTE_DIM(software); i++)
        if (strcmp(port->driver, software[i]) == 0)
            return 0;
    return err_set(err, -ENOTSUP,
                   "%s: frames below 64 bytes are not possible on this port: a NIC of driver %s "
                   "pads them",
                   port->conf->name, port->driver);
}

static int check_size(const struct dpdk_lane *lane, const struct lane_request *request,
                      uint32_t size, struct err *err)
{
    const struct transport_port *port = request->port;
    bool undersize = dpdk_options(request->phase)->undersize && size < FRAME_SIZE_MIN;
    uint32_t least =
        undersize ? lane->shape.payload + SIGNATURE_BYTES + FRAME_FCS : frame_least(&lane->shape);
    uint32_t most = port->frame_max + (lane->shape.vlan ? FRAME_VLAN : 0);

    if (size < least)
        return err_set(err, -EINVAL, "%s: %s frames%s have %u bytes at least, not %u",
                       port->conf->name, frame_kind_name(lane->shape.kind),
                       lane->shape.vlan ? " with a VLAN tag" : "", least, size);
    if (size > most || size > FRAME_SIZE_MAX)
        return err_set(err, -EINVAL, "%s: frames have %u bytes at most here, not %u: %s",
                       port->conf->name, most < FRAME_SIZE_MAX ? most : FRAME_SIZE_MAX, size,
                       port->kernel ? "the interface's MTU decides" : "the device decides");
    return undersize ? check_padding(port, err) : 0;
}

/* One of the lane's different sizes, by its place; it is made where there is none of these bytes.
 */
static uint8_t size_place(struct dpdk_lane *lane, uint32_t frame_bytes)
{
    uint32_t length = frame_bytes - FRAME_FCS;
    uint8_t *known = &lane->size_of_length[length];

    if (*known == LANE_NO_SIZE) {
        *known = (uint8_t)lane->size_count++;
        lane->sizes[*known] = (struct lane_size){
            .frame_bytes = frame_bytes,
            .payload_bytes = length - lane->shape.payload,
            .length = (uint16_t)length,
        };
        frame_expect(&lane->sizes[*known].expect, &lane->shape, length);
    }
    return *known;
}

/* The phase's list of sizes, or of its messages', becomes its different sizes and an order. */
int lane_choose_sizes(struct dpdk_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    uint32_t most = lane->port->frame_max + (lane->shape.vlan ? FRAME_VLAN : 0);
    uint32_t around = lane->shape.payload + SIGNATURE_BYTES + FRAME_FCS;
    uint32_t bytes[TRANSPORT_SIZES_MAX];
    int count = (int)phase->size_count, rc;

    memset(lane->size_of_length, LANE_NO_SIZE, sizeof lane->size_of_length);
    if (phase->messages)
        count = frame_pingpong_sizes(request, lane->port->conf->name, around,
                                     RTE_MIN(most, FRAME_SIZE_MAX), bytes, err);
    for (int i = 0; i < count; i++) {
        uint32_t size = phase->messages
                            ? frame_pingpong_size(around, frame_least(&lane->shape), bytes[i])
                            : phase->sizes[i];

        if ((rc = check_size(lane, request, size, err)) != 0)
            return rc;
        lane->order[lane->order_count++] = size_place(lane, size);
    }
    return count < 0 ? count : 0;
}

/* Frames that a flow sends until it has moved `bytes` of payload, in whole frames. */
static uint64_t frames_for(const struct dpdk_lane *lane, uint64_t bytes)
{
    uint64_t round = 0, frames;

    assert(lane->order_count > 0);
    for (uint32_t i = 0; i < lane->order_count; i++)
        round += lane->sizes[lane->order[i]].payload_bytes;
    frames = bytes / round * lane->order_count;
    bytes %= round;
    for (uint32_t i = 0; bytes > 0; i++) {
        uint32_t payload = lane->sizes[lane->order[i]].payload_bytes;

        bytes -= payload < bytes ? payload : bytes;
        frames++;
    }
    return frames;
}

uint64_t lane_frames(const struct dpdk_lane *lane, uint64_t flows)
{
    const struct phase *phase = lane->lane.request.phase;
    uint64_t sources = lane->receiver.sources;

    if (phase->traffic == TRAFFIC_PROBE)
        return phase->probes * flows;
    if (phase->traffic != TRAFFIC_TRANSFER)
        return UINT64_MAX;
    if (lane->order_count == 1)
        return frames_for(lane, phase->transfer_bytes) * flows;
    return frames_for(lane, (phase->transfer_bytes + sources - 1) / sources) * sources * flows;
}
