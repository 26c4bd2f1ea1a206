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

static void group_sent(void *context, struct datagram *datagram, const uint8_t *sealing_key)
{
    (void)context;
    (void)sealing_key;
    check_sent(datagram);
}

static void mailbox_sent(void *context, struct datagram *datagram)
{
    (void)context;
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
    struct group group;
    struct mailbox mailbox;
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
    group_receive(&target->group, &datagram, now_ns);
    if (datagram.type == DATAGRAM_FETCH || datagram.type == DATAGRAM_BLOB)
        mailbox_receive(&target->mailbox, &datagram, now_ns);
    if (datagram.type == DATAGRAM_BLOB &&
        mailbox_fetch(&target->mailbox, datagram.sender, datagram.blob.id, &blob, now_ns) == 0)
        check(blob.size <= sizeof(blob.bytes));
}

static void enter_next(struct group *group, int64_t now_ns)
{
    const struct barrier_values mine = {.states = 1};

    if (group_state(group) == BARRIER_PASSED)
        group_enter(group, &mine, now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct target target;
    const struct group_outlet outlet = {group_sent, NULL};
    const struct datagram_outlet mail_outlet = {mailbox_sent, NULL};
    const struct group_conf conf = {.self = SELF,
                                    .count = NODES,
                                    .run_id = "fuzz",
                                    .key = {1},
                                    .nonce = {1},
                                    .timeout_ns = NS_PER_S};
    const struct barrier_values mine = {.states = 1};
    int64_t now_ns = 1;

    group_init(&target.group, &conf, &outlet);
    if (mailbox_init(&target.mailbox, &mail_outlet) < 0)
        return 0;
    mailbox_publish(&target.mailbox, 0, &(struct blob){.size = 3});
    group_start(&target.group, now_ns);
    group_enter(&target.group, &mine, now_ns);
    while (size >= 3) {
        size_t length = (size_t)bytes[1] << 8 | bytes[2];

        now_ns += bytes[0] * NS_PER_MS;
        bytes += 3;
        size -= 3;
        length = length < size ? length : size;
        take(&target, bytes, length, now_ns);
        group_tick(&target.group, now_ns);
        mailbox_tick(&target.mailbox, now_ns);
        enter_next(&target.group, now_ns);
        bytes += length;
        size -= length;
    }
    mailbox_free(&target.mailbox);
    return 0;
}
