/* SPDX-License-Identifier: BSD-3-Clause */
#include "blob_exchange.h"

#include "clock.h"

#include <sodium.h>
#include <string.h>

/* How a blob is called between nodes. The highest bit keeps it apart from ports' addresses
 * (trial_blob_id), whose trial numbers do not reach that far. */
static uint64_t blob_id(const struct phase_lane *lane, const struct blob_key *key)
{
    const struct phase_run *run = lane->run;
    const uint32_t words[] = {
        run->trial->doc->id,
        run->trial->doc->repeat,
        lane->own->part_index,
        run->number,
        key->src,
        key->dst,
        key->from_source,
        key->piece,
    };
    uint8_t hash[crypto_generichash_BYTES_MIN];
    uint64_t id;

    crypto_generichash(hash, sizeof hash, (const uint8_t *)words, sizeof words, NULL, 0);
    memcpy(&id, hash, sizeof id);
    return id | UINT64_C(1) << 63;
}

static int publish(void *context, const struct blob_key *key, const struct blob *blob)
{
    struct phase_lane *lane = context;

    return control_publish(lane->run->trial->node->control, blob_id(lane, key), blob);
}

/* The partner's node may be this one: then its blob lies in our own store. */
static int fetch(void *context, const struct blob_key *key, struct blob *blob)
{
    const struct phase_lane *lane = context;
    uint32_t rank = key->from_source ? key->src : key->dst;

    return control_fetch(lane->run->trial->node->control, lane->own->part->ranks[rank]->node,
                         blob_id(lane, key), blob, clock_now());
}

struct blob_exchange blob_exchange_of(struct phase_lane *lane)
{
    return (struct blob_exchange){lane, publish, fetch};
}
