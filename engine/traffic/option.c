/* SPDX-License-Identifier: BSD-3-Clause */
#include "option.h"

#include <assert.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "an integer's first bytes are its lowest");

void option_defaults(const struct option *table, void *into)
{
    for (const struct option *option = table; option->key != NULL; option++) {
        double real = (double)option->initial;
        uint8_t *at = (uint8_t *)into + option->offset;

        if (option->type == OPTION_MAPPING)
            option_defaults(option->table, at);
        else if (option->type == OPTION_REAL)
            memcpy(at, &real, sizeof real);
        else if (option->type <= OPTION_WORD)
            memcpy(at, &option->initial, option->size);
        else
            memset(at, 0, option->size);
        if (option->type == OPTION_LIST)
            memset((uint8_t *)into + option->count, 0, option->count_size);
        if (option->given > 0)
            *(bool *)((uint8_t *)into + option->given) = false;
    }
}
