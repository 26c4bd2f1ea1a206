/* SPDX-License-Identifier: BSD-3-Clause */
#include "datagram.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#define HEADER_BYTES offsetof(struct datagram, values)

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are sent as they are");
static_assert(HEADER_BYTES == 80 && offsetof(struct datagram, from) == 24, "no padding");
static_assert(sizeof(struct control_fault) == 280 && sizeof(struct barrier_values) == 88,
              "nor here");

void datagram_key(uint8_t key[DATAGRAM_KEY_BYTES], const uint8_t run_key[DATAGRAM_KEY_BYTES],
                  const char *run_id, uint32_t count)
{
    static const char purpose[] = "switchbench control";
    crypto_generichash_state state;

    crypto_generichash_init(&state, run_key, DATAGRAM_KEY_BYTES, DATAGRAM_KEY_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)purpose, sizeof(purpose));
    crypto_generichash_update(&state, (const uint8_t *)&count, sizeof(count));
    crypto_generichash_update(&state, (const uint8_t *)run_id, strlen(run_id));
    crypto_generichash_final(&state, key, DATAGRAM_KEY_BYTES);
    sodium_memzero(&state, sizeof(state));
}

/* Return whether a text field has printable characters up to its terminating zero, and only zeros
 * after it. */
static bool is_text(const char *text, size_t size)
{
    size_t length = strnlen(text, size);

    for (size_t i = 0; i < size; i++)
        if (i < length ? text[i] < ' ' || text[i] > '~' : text[i] != '\0')
            return false;
    return length < size;
}

/* Return the number of bytes of a datagram without its seal; 0: a field is out of range. */
static size_t sound_bytes(const struct datagram *datagram)
{
    const struct barrier_values *values = &datagram->values;
    const struct control_fault *fault = &datagram->fault;
    bool is_sound = true;
    size_t size = HEADER_BYTES;

    if (memcmp(datagram->magic, "SB", 2) != 0 || datagram->version != DATAGRAM_VERSION ||
        datagram->type == 0 || datagram->type >= DATAGRAM_TYPES || datagram->from == 0 ||
        datagram->root_bound_ns < -1 || datagram->zero[0] != 0 || datagram->zero[1] != 0 ||
        datagram->zero[2] != 0)
        return 0;
    if (datagram->type == DATAGRAM_ARRIVAL) {
        is_sound = values->said <= BARRIER_MAXIMA &&
                   (values->said == 0 || values->maximum[values->said - 1] != INT64_MIN);
        size = offsetof(struct datagram, values.maximum) + values->said * sizeof(int64_t);
    } else if (datagram->type == DATAGRAM_ABORT) {
        is_sound = fault->missing <= 1 && fault->impossible <= 1 && fault->heard <= 1 &&
                   fault->zero == 0 && fault->silence_ns >= -1 &&
                   is_text(fault->text, sizeof(fault->text));
        size += sizeof(*fault);
    } else if (datagram->type == DATAGRAM_FETCH) {
        size = offsetof(struct datagram, blob);
    } else if (datagram->type == DATAGRAM_BLOB) {
        is_sound = datagram->blob.size <= sizeof(datagram->blob.bytes);
        size = offsetof(struct datagram, blob) + sizeof(datagram->blob);
    }
    return is_sound ? size : 0;
}

void datagram_seal(uint8_t *bytes, size_t size, const uint8_t key[DATAGRAM_KEY_BYTES])
{
    crypto_generichash(bytes + size, DATAGRAM_SEAL_BYTES, bytes, size, key, DATAGRAM_KEY_BYTES);
}

size_t datagram_write(struct datagram *datagram, const uint8_t key[DATAGRAM_KEY_BYTES],
                      uint8_t bytes[DATAGRAM_MAX])
{
    struct barrier_values *values = &datagram->values;
    size_t size;

    memcpy(datagram->magic, "SB", 2);
    datagram->version = DATAGRAM_VERSION;
    if (datagram->type == DATAGRAM_ARRIVAL)
        for (values->said = BARRIER_MAXIMA;
             values->said > 0 && values->maximum[values->said - 1] == INT64_MIN;)
            values->said--;
    size = sound_bytes(datagram);
    assert(size > 0);
    memcpy(bytes, datagram, size);
    datagram_seal(bytes, size, key);
    return size + DATAGRAM_SEAL_BYTES;
}

bool datagram_read(struct datagram *datagram, const uint8_t *bytes, size_t size,
                   const uint8_t key[DATAGRAM_KEY_BYTES])
{
    uint8_t right[DATAGRAM_SEAL_BYTES];

    memset(datagram, 0, sizeof(*datagram));
    if (size < HEADER_BYTES + sizeof(right) || size > DATAGRAM_MAX)
        return false;
    size -= sizeof(right);
    memcpy(datagram, bytes, size);
    if (size != sound_bytes(datagram))
        return false;
    for (uint32_t i = datagram->values.said;
         datagram->type == DATAGRAM_ARRIVAL && i < BARRIER_MAXIMA; i++)
        datagram->values.maximum[i] = INT64_MIN;
    crypto_generichash(right, sizeof(right), bytes, size, key, DATAGRAM_KEY_BYTES);
    return sodium_memcmp(right, bytes + size, sizeof(right)) == 0;
}
