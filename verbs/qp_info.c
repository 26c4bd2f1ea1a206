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
    uint32_t kept_with;
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

void verbs_offer_write(const struct verbs_offer *offer, struct blob *blob)
{
    struct wire wire = {
        .version = htobe32(VERSION),
        .number = htobe32(offer->number),
        .kept_with = htobe32(offer->kept_with),
        .turn = htobe32(offer->turn),
        .packet = htobe32(offer->packet),
        .queue_key = htobe32(offer->queue_key),
        .lid = htobe16(offer->lid),
        .mtu = htobe16(offer->mtu),
        .reads = htobe32(offer->reads),
        .ring_address = htobe64(offer->ring.address),
        .ring_key = htobe32(offer->ring.key),
        .slots = htobe32(offer->slots),
        .stride = htobe32(offer->stride),
        .first = htobe32(offer->first),
        .control_address = htobe64(offer->control.address),
        .token = htobe64(offer->token),
        .control_key = htobe32(offer->control.key),
    };

    memcpy(wire.gid, offer->gid, sizeof wire.gid);
    *blob = (struct blob){.size = sizeof wire};
    memcpy(blob->bytes, &wire, sizeof wire);
}

bool verbs_offer_read(struct verbs_offer *offer, const struct blob *blob)
{
    struct wire wire;

    if (blob->size != sizeof wire)
        return false;
    memcpy(&wire, blob->bytes, sizeof wire);
    *offer = (struct verbs_offer){
        .number = be32toh(wire.number),
        .kept_with = be32toh(wire.kept_with),
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
    memcpy(offer->gid, wire.gid, sizeof wire.gid);
    return be32toh(wire.version) == VERSION;
}

enum verbs_verdict verbs_offers_compare(const struct verbs_offer *mine,
                                        const struct verbs_offer *theirs)
{
    bool we_kept = mine->kept_with != 0;
    bool they_kept = theirs->kept_with != 0;

    if (we_kept && they_kept && mine->kept_with == theirs->number &&
        theirs->kept_with == mine->number && mine->turn == theirs->turn)
        return VERBS_BOTH_KEPT;
    if (we_kept && they_kept)
        return VERBS_RENEW_AND_AWAIT;
    if (we_kept)
        return VERBS_RENEW;
    return they_kept ? VERBS_AWAIT : VERBS_CONNECT;
}
