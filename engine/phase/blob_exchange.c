/* SPDX-License-Identifier: BSD-3-Clause */
#include "blob_exchange.h"

#include "clock.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* How a letter is called between nodes. The highest bit keeps it apart from ports' addresses
 * (trial_blob_id), whose trial numbers do not reach that far. */
static uint64_t blob_id(const struct phase_lane *lane, const struct courier_letter *letter)
{
    const struct phase_run *run = lane->run;
    const uint32_t words[] = {
        run->trial->doc->id,   run->trial->doc->repeat,
        lane->own->part_index, run->number,
        letter->src,           letter->dst,
        letter->from_source,   letter->piece,
    };
    uint8_t hash[crypto_generichash_BYTES_MIN];
    uint64_t id;

    crypto_generichash(hash, sizeof hash, (const uint8_t *)words, sizeof words, NULL, 0);
    memcpy(&id, hash, sizeof id);
    return id | UINT64_C(1) << 63;
}

struct posted {
    struct posted *next;
    uint64_t id;
};

static int publish(void *context, const struct courier_letter *letter, const struct blob *blob)
{
    struct phase_lane *lane = context;
    uint64_t id = blob_id(lane, letter);
    struct posted *posted = malloc(sizeof *posted);
    int rc = posted != NULL ? control_publish(lane->run->trial->node->control, id, blob) : -ENOMEM;

    if (rc < 0) {
        free(posted);
        return rc;
    }
    *posted = (struct posted){.next = lane->posted, .id = id};
    lane->posted = posted;
    return 0;
}

/* A partner that has sent or received here has fetched all. One that was still waiting when the
 * phase failed must find the letters: those stay. */
void blob_exchange_end(struct phase_lane *lane)
{
    bool had_traffic = lane->lane != NULL && lane->lane->started_ns > 0;

    while (lane->posted != NULL) {
        struct posted *posted = lane->posted;

        lane->posted = posted->next;
        if (had_traffic)
            control_withdraw(lane->run->trial->node->control, posted->id);
        free(posted);
    }
}

/* The partner's node may be this one: then its letter lies in our own mailbox. */
static int fetch(void *context, const struct courier_letter *letter, struct blob *blob)
{
    const struct phase_lane *lane = context;
    uint32_t rank = letter->from_source ? letter->src : letter->dst;

    return control_fetch(lane->run->trial->node->control, lane->own->part->ranks[rank]->node,
                         blob_id(lane, letter), blob, clock_now());
}

struct courier blob_exchange_of(struct phase_lane *lane)
{
    return (struct courier){lane, publish, fetch};
}
