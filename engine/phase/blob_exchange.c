/* SPDX-License-Identifier: BSD-3-Clause */
#include "blob_exchange.h"

#include "clock.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
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

struct published {
    struct published *next;
    uint64_t id;
};

static int publish(void *context, const struct blob_key *key, const struct blob *blob)
{
    struct phase_lane *lane = context;
    uint64_t id = blob_id(lane, key);
    struct published *published = malloc(sizeof *published);
    int rc =
        published != NULL ? control_publish(lane->run->trial->node->control, id, blob) : -ENOMEM;

    if (rc < 0) {
        free(published);
        return rc;
    }
    *published = (struct published){.next = lane->published, .id = id};
    lane->published = published;
    return 0;
}

/* A partner that has sent or received here has fetched all. One that was still waiting when the
 * phase failed must find the blobs: those stay. */
void blob_exchange_end(struct phase_lane *lane)
{
    bool had_traffic = lane->lane != NULL && lane->lane->started_ns > 0;

    while (lane->published != NULL) {
        struct published *published = lane->published;

        lane->published = published->next;
        if (had_traffic)
            control_withdraw(lane->run->trial->node->control, published->id);
        free(published);
    }
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
