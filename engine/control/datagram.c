/* SPDX-License-Identifier: BSD-3-Clause */
#include "datagram.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

#define HEADER_BYTES 80
#define VALUES_BYTES (2 + 8 * BARRIER_MAXIMA + 4)
#define ABORT_BYTES (1 + 4 + 4 + 4 + 8 + 2)
#define BLOB_BYTES (8 + 2)
#define TEXT_MAX (sizeof((struct control_fault *)0)->text - 1)

static_assert(HEADER_BYTES + ABORT_BYTES + TEXT_MAX + DATAGRAM_SEAL_BYTES <= DATAGRAM_MAX,
              "the longest abort fits");
static_assert(HEADER_BYTES + BLOB_BYTES + BLOB_BYTES_MAX + DATAGRAM_SEAL_BYTES <= DATAGRAM_MAX,
              "the longest blob fits");
static_assert(HEADER_BYTES + VALUES_BYTES + DATAGRAM_SEAL_BYTES <= DATAGRAM_MAX, "values fit");
static_assert(BARRIER_MAXIMA <= 16, "there is a bit for each");

/* Writing can't fail: the asserts above bound every body. Reading past the end yields zeros and
 * marks the reader bad. */
struct writer {
    uint8_t *at;
};

struct reader {
    const uint8_t *at;
    size_t left;
    bool bad;
};

static void put_bytes(struct writer *out, const void *bytes, size_t size)
{
    memcpy(out->at, bytes, size);
    out->at += size;
}

static void put(struct writer *out, uint64_t value, unsigned size)
{
    for (unsigned i = size; i > 0; i--)
        *out->at++ = (uint8_t)(value >> (8 * (i - 1)));
}

static void get_bytes(struct reader *in, void *bytes, size_t size)
{
    if (in->left < size) {
        in->bad = true;
        memset(bytes, 0, size);
        return;
    }
    memcpy(bytes, in->at, size);
    in->at += size;
    in->left -= size;
}

static uint64_t get(struct reader *in, unsigned size)
{
    uint8_t bytes[8];
    uint64_t value = 0;

    get_bytes(in, bytes, size);
    for (unsigned i = 0; i < size; i++)
        value = value << 8 | bytes[i];
    return value;
}

static void write_values(struct writer *out, const struct datagram *datagram)
{
    const int64_t *maximum = datagram->values.maximum;
    uint32_t said = 0;

    for (unsigned i = 0; i < BARRIER_MAXIMA; i++)
        said |= (uint32_t)(maximum[i] != INT64_MIN) << i;
    put(out, said, 2);
    for (unsigned i = 0; i < BARRIER_MAXIMA; i++)
        if (said >> i & 1)
            put(out, (uint64_t)maximum[i], 8);
    put(out, datagram->values.states, 4);
}

static void read_values(struct reader *in, struct datagram *datagram)
{
    int64_t *maximum = datagram->values.maximum;
    uint32_t said = (uint32_t)get(in, 2);

    in->bad |= said >> BARRIER_MAXIMA != 0;
    for (unsigned i = 0; i < BARRIER_MAXIMA; i++) {
        maximum[i] = said >> i & 1 ? (int64_t)get(in, 8) : INT64_MIN;
        in->bad |= (said >> i & 1) && maximum[i] == INT64_MIN;
    }
    datagram->values.states = (uint32_t)get(in, 4);
}

static void write_abort(struct writer *out, const struct datagram *datagram)
{
    const struct control_fault *fault = &datagram->abort.fault;
    size_t length = strnlen(fault->text, TEXT_MAX);

    put(out,
        (uint64_t)datagram->abort.heard | (uint64_t)fault->missing << 1 |
            (uint64_t)fault->impossible << 2,
        1);
    put(out, fault->node, 4);
    put(out, fault->epoch, 4);
    put(out, fault->last_epoch, 4);
    put(out, (uint64_t)fault->silence_ns, 8);
    put(out, length, 2);
    put_bytes(out, fault->text, length);
}

static void read_abort(struct reader *in, struct datagram *datagram)
{
    struct control_fault *fault = &datagram->abort.fault;
    uint64_t flags = get(in, 1), length;

    datagram->abort.heard = flags & 1;
    fault->missing = flags & 2;
    fault->impossible = flags & 4;
    fault->node = (uint32_t)get(in, 4);
    fault->epoch = (uint32_t)get(in, 4);
    fault->last_epoch = (uint32_t)get(in, 4);
    fault->silence_ns = (int64_t)get(in, 8);
    length = get(in, 2);
    if (flags > 7 || fault->silence_ns < -1 || length > TEXT_MAX) {
        in->bad = true;
        return;
    }
    get_bytes(in, fault->text, length);
    for (uint64_t i = 0; i < length; i++)
        if (fault->text[i] < ' ' || fault->text[i] > '~')
            in->bad = true;
}

static void write_fetch(struct writer *out, const struct datagram *datagram)
{
    put(out, datagram->blob.id, 8);
}

static void read_fetch(struct reader *in, struct datagram *datagram)
{
    datagram->blob.id = get(in, 8);
}

static void write_blob(struct writer *out, const struct datagram *datagram)
{
    const struct blob *blob = &datagram->blob.blob;

    put(out, datagram->blob.id, 8);
    put(out, blob->size, 2);
    put_bytes(out, blob->bytes, blob->size);
}

static void read_blob(struct reader *in, struct datagram *datagram)
{
    struct blob *blob = &datagram->blob.blob;

    datagram->blob.id = get(in, 8);
    blob->size = (uint16_t)get(in, 2);
    if (blob->size > sizeof(blob->bytes)) {
        in->bad = true;
        return;
    }
    get_bytes(in, blob->bytes, blob->size);
}

static void write_nothing(struct writer *out, const struct datagram *datagram)
{
    (void)out;
    (void)datagram;
}

static void read_nothing(struct reader *in, struct datagram *datagram)
{
    (void)in;
    (void)datagram;
}

static const struct body {
    void (*write)(struct writer *, const struct datagram *);
    void (*read)(struct reader *, struct datagram *);
} bodies[DATAGRAM_TYPES] = {
    [DATAGRAM_HELLO] = {write_nothing, read_nothing},
    [DATAGRAM_ARRIVAL] = {write_values, read_values},
    [DATAGRAM_QUESTION] = {write_nothing, read_nothing},
    [DATAGRAM_PATIENCE] = {write_nothing, read_nothing},
    [DATAGRAM_ABORT] = {write_abort, read_abort},
    [DATAGRAM_FETCH] = {write_fetch, read_fetch},
    [DATAGRAM_BLOB] = {write_blob, read_blob},
    [DATAGRAM_BEAT] = {write_nothing, read_nothing},
    [DATAGRAM_PING] = {write_nothing, read_nothing},
    [DATAGRAM_PONG] = {write_nothing, read_nothing},
};

static void seal(uint8_t *out, const uint8_t *bytes, size_t size, const uint8_t *key)
{
    crypto_generichash(out, DATAGRAM_SEAL_BYTES, bytes, size, key, DATAGRAM_KEY_BYTES);
}

size_t datagram_write(const struct datagram *datagram, const uint8_t key[DATAGRAM_KEY_BYTES],
                      uint8_t bytes[DATAGRAM_MAX])
{
    struct writer out = {bytes};
    size_t size;

    put_bytes(&out, "SB", 2);
    put(&out, DATAGRAM_VERSION, 1);
    put(&out, datagram->type, 1);
    put(&out, datagram->sender, 4);
    put(&out, datagram->recipient, 4);
    put(&out, datagram->entered, 4);
    put(&out, datagram->epoch, 4);
    put(&out, datagram->round, 1);
    put(&out, 0, 3);
    put(&out, datagram->from, 8);
    put(&out, datagram->to, 8);
    put(&out, (uint64_t)datagram->origin_ns, 8);
    put(&out, (uint64_t)datagram->receive_ns, 8);
    put(&out, (uint64_t)datagram->transmit_ns, 8);
    put(&out, (uint64_t)datagram->root_offset_ns, 8);
    put(&out, (uint64_t)datagram->root_bound_ns, 8);
    assert(out.at == bytes + HEADER_BYTES);
    bodies[datagram->type].write(&out, datagram);
    size = (size_t)(out.at - bytes);
    seal(out.at, bytes, size, key);
    return size + DATAGRAM_SEAL_BYTES;
}

static void read_header(struct reader *in, struct datagram *datagram)
{
    in->bad |= get(in, 2) != ('S' << 8 | 'B');
    in->bad |= get(in, 1) != DATAGRAM_VERSION;
    datagram->type = (enum datagram_type)get(in, 1);
    datagram->sender = (uint32_t)get(in, 4);
    datagram->recipient = (uint32_t)get(in, 4);
    datagram->entered = (uint32_t)get(in, 4);
    datagram->epoch = (uint32_t)get(in, 4);
    datagram->round = (uint8_t)get(in, 1);
    in->bad |= get(in, 3) != 0;
    datagram->from = get(in, 8);
    datagram->to = get(in, 8);
    in->bad |= datagram->from == 0;
    datagram->origin_ns = (int64_t)get(in, 8);
    datagram->receive_ns = (int64_t)get(in, 8);
    datagram->transmit_ns = (int64_t)get(in, 8);
    datagram->root_offset_ns = (int64_t)get(in, 8);
    datagram->root_bound_ns = (int64_t)get(in, 8);
    in->bad |= datagram->root_bound_ns < -1;
}

int datagram_read(struct datagram *datagram, const uint8_t *bytes, size_t size)
{
    struct reader in = {bytes, size, false};

    memset(datagram, 0, sizeof(*datagram));
    if (size < HEADER_BYTES + DATAGRAM_SEAL_BYTES || size > DATAGRAM_MAX)
        return -EBADMSG;
    in.left -= DATAGRAM_SEAL_BYTES;
    read_header(&in, datagram);
    if (in.bad || datagram->type >= DATAGRAM_TYPES || !bodies[datagram->type].read)
        return -EBADMSG;
    bodies[datagram->type].read(&in, datagram);
    return in.bad || in.left ? -EBADMSG : 0;
}

bool datagram_sealed(const uint8_t *bytes, size_t size, const uint8_t key[DATAGRAM_KEY_BYTES])
{
    uint8_t right[DATAGRAM_SEAL_BYTES];

    if (size < DATAGRAM_SEAL_BYTES)
        return false;
    size -= DATAGRAM_SEAL_BYTES;
    seal(right, bytes, size, key);
    return sodium_memcmp(right, bytes + size, sizeof(right)) == 0;
}
