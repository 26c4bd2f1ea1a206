/* SPDX-License-Identifier: BSD-3-Clause */
#include "signature.h"

#include "prng.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

static struct fill table;
static pthread_once_t made_once = PTHREAD_ONCE_INIT;

/* Make the table of the fill from a fixed seed, so that the table is the same on every machine. */
static void make(void)
{
    uint64_t state = 0x5377697463686265, sum = 0;

    for (size_t i = 0; i < sizeof table.bytes; i += sizeof state) {
        uint64_t bits = htole64(prng_next(&state));

        memcpy(table.bytes + i, &bits, sizeof bits);
    }
    for (size_t n = 0; n < sizeof table.bytes; n++) {
        table.sum[n] = checksum_fold(n % 2 ? checksum_add(sum, table.bytes + n - 1, 1) : sum);
        if (n % 2)
            sum = checksum_add(sum, table.bytes + n - 1, 2);
    }
    table.sum[sizeof table.bytes] = checksum_fold(sum);
}

const struct fill *fill_table(void)
{
    pthread_once(&made_once, make);
    return &table;
}
