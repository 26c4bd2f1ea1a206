/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets an option of a transport by its key, as a document does.
 */
#ifndef TESTS_TRANSPORT_OPTION_SET_H
#define TESTS_TRANSPORT_OPTION_SET_H

#include "option.h"

#include <stdlib.h>
#include <string.h>

static inline void option_set(const struct option_table *table, void *data, const char *key,
                              uint64_t value)
{
    const struct option *option = table->options;

    while (option->key != NULL && strcmp(option->key, key) != 0)
        option++;
    if (option->key == NULL)
        abort();
    memcpy((uint8_t *)data + option->offset, &value, option->size);
}

#endif
