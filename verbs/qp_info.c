/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_info.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define VERSION 1u

/* In network byte order, without holes. */
struct wire {
    uint32_t version;
    uint32_t number;
    uint32_t connected_to;
    uint32_t turn;
    uint32_t packet;
    uint32_t queue_key;
    uint16_t lid;
    uint16_t mtu;
    uint32_t reads;
    uint8_t gid[16];
    uint64_t ring_address;
    uint32_t ring_key;
    uint32_t slots;
    uint32_t stride;
    uint32_t first;
    uint64_t control_address;
    uint64_t token;
    uint32_t control_key;
    uint32_t zero;
};
static_assert(sizeof(struct wire) == 96, "layout");
static_assert(sizeof(struct wire) <= BLOB_BYTES_MAX, "fits into a blob");

void qp_info_write(const struct qp_info *info, struct blob *blob)
{
    struct wire wire = {
        .version = htobe32(VERSION),
        .number = htobe32(info->number),
        .connected_to = htobe32(info->connected_to),
        .turn = htobe32(info->turn),
        .packet = htobe32(info->packet),
        .queue_key = htobe32(info->queue_key),
        .lid = htobe16(info->lid),
        .mtu = htobe16(info->mtu),
        .reads = htobe32(info->reads),
        .ring_address = htobe64(info->ring.address),
        .ring_key = htobe32(info->ring.key),
        .slots = htobe32(info->slots),
        .stride = htobe32(info->stride),
        .first = htobe32(info->first),
        .control_address = htobe64(info->control.address),
        .token = htobe64(info->token),
        .control_key = htobe32(info->control.key),
    };

    memcpy(wire.gid, info->gid, sizeof wire.gid);
    *blob = (struct blob){.size = sizeof wire};
    memcpy(blob->bytes, &wire, sizeof wire);
}

bool qp_info_read(struct qp_info *info, const struct blob *blob)
{
    struct wire wire;

    if (blob->size != sizeof wire)
        return false;
    memcpy(&wire, blob->bytes, sizeof wire);
    *info = (struct qp_info){
        .number = be32toh(wire.number),
        .connected_to = be32toh(wire.connected_to),
        .turn = be32toh(wire.turn),
        .packet = be32toh(wire.packet),
        .queue_key = be32toh(wire.queue_key),
        .lid = be16toh(wire.lid),
        .mtu = be16toh(wire.mtu),
        .reads = (uint8_t)be32toh(wire.reads),
        .ring = {be64toh(wire.ring_address), be32toh(wire.ring_key)},
        .slots = be32toh(wire.slots),
        .stride = be32toh(wire.stride),
        .first = be32toh(wire.first),
        .control = {be64toh(wire.control_address), be32toh(wire.control_key)},
        .token = be64toh(wire.token),
    };
    memcpy(info->gid, wire.gid, sizeof wire.gid);
    return be32toh(wire.version) == VERSION;
}

struct qp_agreement qp_negotiate(const struct qp_info *mine, const struct qp_info *theirs)
{
    bool same = mine->connected_to == theirs->number && theirs->connected_to == mine->number &&
                mine->turn == theirs->turn;
    bool we_kept = mine->connected_to != 0;
    bool they_kept = theirs->connected_to != 0;

    if (we_kept && they_kept && same)
        return (struct qp_agreement){.reuse = true};
    return (struct qp_agreement){.replace = we_kept, .await = they_kept};
}
