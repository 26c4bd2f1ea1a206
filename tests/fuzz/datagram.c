/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fuzzing of all that datagrams reach: the parser, and behind it the state machines, as if the
 * fuzzer held the key. The input is a sequence of records: one byte of time that passes (ms), two
 * bytes of length, then the datagram's bytes. Built with -fsanitize=fuzzer by clang;
 * tests/unit/test_datagram.c runs the same entry point on seeded inputs with any compiler.
 */
#include "blob_store.h"
#include "membership.h"

#include <stdlib.h>
#include <string.h>

#define NODES 11
#define SELF 6

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const uint8_t key[DATAGRAM_KEY_BYTES] = {1};

static void check(bool right)
{
    if (!right)
        abort();
}

/* Whatever is sent must be for another node of the run, and be read back as it was written. */
static void check_sent(const struct datagram *datagram)
{
    uint8_t bytes[DATAGRAM_MAX];
    struct datagram again;
    size_t size = datagram_write(datagram, key, bytes);

    check(datagram->recipient < NODES && datagram->recipient != SELF);
    check(datagram_sealed(bytes, size, key));
    check(datagram_read(&again, bytes, size) == 0);
    check(again.type == datagram->type && again.recipient == datagram->recipient);
}

static void sent(void *context, struct datagram *datagram)
{
    if (context) /* as the membership would */
        datagram->from = 1;
    check_sent(datagram);
}

/* A datagram has one form only: what is accepted is written back to the same bytes. */
static void check_canonical(const struct datagram *datagram, const uint8_t *bytes, size_t size)
{
    uint8_t again[DATAGRAM_MAX];

    check(datagram_write(datagram, key, again) == size);
    check(!memcmp(bytes, again, size - DATAGRAM_SEAL_BYTES));
}

struct target {
    struct membership membership;
    struct blob_store blob_store;
};

static void take(struct target *target, const uint8_t *bytes, size_t size, int64_t now_ns)
{
    struct datagram datagram;
    struct blob blob;

    if (datagram_read(&datagram, bytes, size) < 0)
        return;
    check_canonical(&datagram, bytes, size);
    if (datagram.sender >= NODES || datagram.sender == SELF || datagram.recipient != SELF)
        return;
    membership_receive(&target->membership, &datagram, now_ns);
    if (datagram.type == DATAGRAM_FETCH || datagram.type == DATAGRAM_BLOB)
        blob_store_receive(&target->blob_store, &datagram);
    if (datagram.type == DATAGRAM_BLOB && blob_store_fetch(&target->blob_store, datagram.sender,
                                                           datagram.blob.id, &blob, now_ns) == 0)
        check(blob.size <= sizeof(blob.bytes));
}

static void enter_next(struct membership *membership, int64_t now_ns)
{
    const struct barrier_values mine = {.states = 1};

    if (membership_state(membership) == BARRIER_PASSED)
        membership_enter(membership, &mine, now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct target target;
    const struct datagram_outlet outlet = {sent, NULL}, mail_outlet = {sent, &target};
    const struct membership_conf conf = {.self = SELF,
                                         .count = NODES,
                                         .run_id = "fuzz",
                                         .key = {1},
                                         .nonce = 1,
                                         .boot = 1,
                                         .timeout_ns = NS_PER_S};
    const struct barrier_values mine = {.states = 1};
    int64_t now_ns = 1;

    membership_init(&target.membership, &conf, &outlet);
    blob_store_init(&target.blob_store, &mail_outlet);
    blob_store_publish(&target.blob_store, 0, &(struct blob){.size = 3});
    membership_start(&target.membership);
    membership_enter(&target.membership, &mine, now_ns);
    while (size >= 3) {
        size_t length = (size_t)bytes[1] << 8 | bytes[2];

        now_ns += bytes[0] * NS_PER_MS;
        bytes += 3;
        size -= 3;
        length = length < size ? length : size;
        take(&target, bytes, length, now_ns);
        membership_tick(&target.membership, now_ns);
        blob_store_tick(&target.blob_store, now_ns);
        enter_next(&target.membership, now_ns);
        bytes += length;
        size -= length;
    }
    blob_store_clear(&target.blob_store);
    return 0;
}
