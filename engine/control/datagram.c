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

/* One walk over a datagram's bytes, which writes or reads each member in its turn: so that the two
 * can't differ. Writing can't fail: the asserts above bound every body. Reading past the end yields
 * zeros and marks the walk bad. */
struct walk {
    uint8_t *at;
    size_t left;
    bool writes;
    bool bad;
};

static void pass_bytes(struct walk *walk, void *bytes, size_t size)
{
    walk->bad |= walk->left < size;
    if (walk->bad) {
        memset(bytes, 0, size);
        return;
    }
    memcpy(walk->writes ? walk->at : bytes, walk->writes ? bytes : walk->at, size);
    walk->at += size;
    walk->left -= size;
}

/* A number of this machine, as big-endian bytes. */
static void pass_number(struct walk *walk, void *number, size_t size)
{
    uint8_t bytes[8];

    for (size_t i = 0; i < size; i++)
        bytes[i] = ((const uint8_t *)number)[size - 1 - i];
    pass_bytes(walk, bytes, size);
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)number)[size - 1 - i] = bytes[i];
}
#define NUMBER(walk, member) pass_number(walk, &(member), sizeof(member))
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are reversed");

static void pass_header(struct walk *walk, struct datagram *datagram)
{
    uint8_t begin[4] = {'S', 'B', DATAGRAM_VERSION, (uint8_t)datagram->type};
    uint8_t zero[3] = {0};

    pass_bytes(walk, begin, sizeof(begin));
    walk->bad |= begin[0] != 'S' || begin[1] != 'B' || begin[2] != DATAGRAM_VERSION;
    datagram->type = begin[3];
    NUMBER(walk, datagram->sender);
    NUMBER(walk, datagram->recipient);
    NUMBER(walk, datagram->entered);
    NUMBER(walk, datagram->epoch);
    NUMBER(walk, datagram->round);
    pass_bytes(walk, zero, sizeof(zero));
    NUMBER(walk, datagram->from);
    NUMBER(walk, datagram->to);
    NUMBER(walk, datagram->origin_ns);
    NUMBER(walk, datagram->receive_ns);
    NUMBER(walk, datagram->transmit_ns);
    NUMBER(walk, datagram->root_offset_ns);
    NUMBER(walk, datagram->root_bound_ns);
    walk->bad |= zero[0] || zero[1] || zero[2] || datagram->root_bound_ns < -1;
}

static void pass_values(struct walk *walk, struct barrier_values *values)
{
    uint16_t said = 0;

    for (unsigned i = 0; i < BARRIER_MAXIMA; i++)
        said |= (uint16_t)((values->maximum[i] != INT64_MIN) << i);
    NUMBER(walk, said);
    walk->bad |= said >> BARRIER_MAXIMA != 0;
    for (unsigned i = 0; i < BARRIER_MAXIMA; i++) {
        if (said >> i & 1) {
            NUMBER(walk, values->maximum[i]);
            walk->bad |= values->maximum[i] == INT64_MIN;
        } else {
            values->maximum[i] = INT64_MIN;
        }
    }
    NUMBER(walk, values->states);
}

static void pass_abort(struct walk *walk, struct datagram_abort *abort)
{
    struct control_fault *fault = &abort->fault;
    uint8_t flags = (uint8_t)(abort->heard | fault->missing << 1 | fault->impossible << 2);
    uint16_t length = (uint16_t)strnlen(fault->text, TEXT_MAX);

    NUMBER(walk, flags);
    abort->heard = flags & 1;
    fault->missing = flags & 2;
    fault->impossible = flags & 4;
    NUMBER(walk, fault->node);
    NUMBER(walk, fault->epoch);
    NUMBER(walk, fault->last_epoch);
    NUMBER(walk, fault->silence_ns);
    NUMBER(walk, length);
    walk->bad |= flags > 7 || fault->silence_ns < -1 || length > TEXT_MAX;
    if (!walk->bad)
        pass_bytes(walk, fault->text, length);
    for (uint16_t i = 0; i < length && !walk->bad; i++)
        walk->bad = fault->text[i] < ' ' || fault->text[i] > '~';
}

static void pass_blob(struct walk *walk, struct blob *blob)
{
    NUMBER(walk, blob->size);
    walk->bad |= blob->size > sizeof(blob->bytes);
    if (!walk->bad)
        pass_bytes(walk, blob->bytes, blob->size);
}

static void pass_body(struct walk *walk, struct datagram *datagram)
{
    if (datagram->type == DATAGRAM_ARRIVAL)
        pass_values(walk, &datagram->values);
    if (datagram->type == DATAGRAM_ABORT)
        pass_abort(walk, &datagram->abort);
    if (datagram->type == DATAGRAM_FETCH || datagram->type == DATAGRAM_BLOB)
        NUMBER(walk, datagram->blob.id);
    if (datagram->type == DATAGRAM_BLOB)
        pass_blob(walk, &datagram->blob.blob);
}

static void seal(uint8_t *out, const uint8_t *bytes, size_t size, const uint8_t *key)
{
    crypto_generichash(out, DATAGRAM_SEAL_BYTES, bytes, size, key, DATAGRAM_KEY_BYTES);
}

size_t datagram_write(const struct datagram *datagram, const uint8_t key[DATAGRAM_KEY_BYTES],
                      uint8_t bytes[DATAGRAM_MAX])
{
    struct walk walk = {.at = bytes, .left = DATAGRAM_MAX - DATAGRAM_SEAL_BYTES, .writes = true};
    struct datagram copy = *datagram;

    pass_header(&walk, &copy);
    assert(walk.at == bytes + HEADER_BYTES);
    pass_body(&walk, &copy);
    seal(walk.at, bytes, (size_t)(walk.at - bytes), key);
    return (size_t)(walk.at - bytes) + DATAGRAM_SEAL_BYTES;
}

int datagram_read(struct datagram *datagram, const uint8_t *bytes, size_t size)
{
    uint8_t copy[DATAGRAM_MAX];
    struct walk walk = {.at = copy};

    memset(datagram, 0, sizeof(*datagram));
    if (size < HEADER_BYTES + DATAGRAM_SEAL_BYTES || size > DATAGRAM_MAX)
        return -EBADMSG;
    memcpy(copy, bytes, size);
    walk.left = size - DATAGRAM_SEAL_BYTES;
    pass_header(&walk, datagram);
    walk.bad |= datagram->from == 0 || datagram->type == 0 || datagram->type >= DATAGRAM_TYPES;
    if (!walk.bad)
        pass_body(&walk, datagram);
    return walk.bad || walk.left > 0 ? -EBADMSG : 0;
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
