/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fuzzing of all that datagrams reach: the parser, and behind it the state machine, as if the
 * fuzzer held the key. The input is a sequence of records: one byte of time that passes (ms), two
 * bytes of length, then the datagram's bytes, which are sealed here.
 */
#include "fuzz.h"
#include "membership.h"

#include <string.h>

#define NODES 11
#define SELF 6

/* Every sent datagram must be for another node of the run, and be read back as it was written. */
static void check_sent(void *context, struct datagram *datagram)
{
    const struct membership *membership = context;
    uint8_t bytes[DATAGRAM_MAX];
    struct datagram again;
    size_t size = datagram_write(datagram, membership->conf.key, bytes);

    check(datagram->recipient < NODES && datagram->recipient != SELF);
    check(datagram_read(&again, bytes, size, membership->conf.key));
    check(again.type == datagram->type && again.recipient == datagram->recipient);
}

/* A datagram has only one form: an accepted one is written back as the same bytes. */
static void take(struct membership *membership, const uint8_t *bytes, size_t size, int64_t now_ns)
{
    const uint8_t *key = membership->conf.key;
    uint8_t sealed[DATAGRAM_MAX], again[DATAGRAM_MAX];
    struct datagram datagram;

    if (size > sizeof(sealed) - DATAGRAM_SEAL_BYTES)
        return;
    memcpy(sealed, bytes, size);
    datagram_seal(sealed, size, key);
    size += DATAGRAM_SEAL_BYTES;
    if (!datagram_read(&datagram, sealed, size, key))
        return;
    check(datagram_write(&datagram, key, again) == size && memcmp(sealed, again, size) == 0);
    if (datagram.sender < NODES && datagram.sender != SELF && datagram.recipient == SELF)
        membership_receive(membership, &datagram, now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct membership membership;
    const struct membership_conf conf = {.self = SELF,
                                         .count = NODES,
                                         .key = {1},
                                         .nonce = 1,
                                         .boot = 1,
                                         .timeout_ns = NS_PER_S,
                                         .send = check_sent,
                                         .context = &membership};
    const struct barrier_values mine = {.states = 1};
    int64_t now_ns = 1;

    membership_start(&membership, &conf);
    membership_enter(&membership, &mine, now_ns);
    while (size >= 3) {
        size_t length = (size_t)bytes[1] << 8 | bytes[2];

        now_ns += bytes[0] * NS_PER_MS;
        bytes += 3;
        size -= 3;
        length = length < size ? length : size;
        take(&membership, bytes, length, now_ns);
        membership_tick(&membership, now_ns);
        if (membership_state(&membership) == BARRIER_PASSED)
            membership_enter(&membership, &mine, now_ns);
        bytes += length;
        size -= length;
    }
    return 0;
}
