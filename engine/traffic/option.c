/* SPDX-License-Identifier: BSD-3-Clause */
#include "option.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* In as many bytes as the member has, on either order of bytes. */
static void store(const struct option *option, void *options, int64_t value)
{
    uint8_t *at = (uint8_t *)options + option->offset;

    switch (option->size) {
    case sizeof(uint8_t):
        *at = (uint8_t)value;
        break;
    case sizeof(uint16_t):
        memcpy(at, &(uint16_t){(uint16_t)value}, sizeof(uint16_t));
        break;
    default:
        assert(option->size == sizeof(uint32_t));
        memcpy(at, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    }
}

static int store_number(const struct option *option, int64_t value, void *options, struct err *err)
{
    if (value < option->min || value > option->max)
        return err_set(err, -EINVAL, "%s is %lld to %lld, not %lld%s%s", option->key,
                       (long long)option->min, (long long)option->max, (long long)value,
                       option->why != NULL ? ": " : "", option->why != NULL ? option->why : "");
    store(option, options, value);
    return 0;
}

static int store_real(const struct option *option, double value, void *options, struct err *err)
{
    if (!isfinite(value) || value < (double)option->min)
        return err_set(err, -EINVAL, "%s is at least %lld, not %g", option->key,
                       (long long)option->min, value);
    memcpy((uint8_t *)options + option->offset, &value, sizeof value);
    return 0;
}

static int store_word(const struct option *option, const char *value, void *options,
                      struct err *err)
{
    char text[128] = "";
    size_t used = 0;

    for (int64_t i = 0; option->words[i] != NULL; i++) {
        if (strcmp(option->words[i], value) == 0) {
            store(option, options, i);
            return 0;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? ", " : "",
                                 option->words[i]);
    }
    return err_set(err, -EINVAL, "%s has no value '%s'; valid values: %s", option->key, value,
                   text);
}

static int store_text(const struct option *option, const char *value, void *options,
                      struct err *err)
{
    if (strlen(value) >= option->size)
        return err_set(err, -EINVAL, "%s has at most %u characters, unlike '%s'", option->key,
                       option->size - 1, value);
    memcpy((uint8_t *)options + option->offset, value, strlen(value) + 1);
    return 0;
}

static int store_given(const struct option *option, const void *value, void *options,
                       struct err *err)
{
    switch (option->type) {
    case OPTION_NUMBER:
        return store_number(option, *(const int64_t *)value, options, err);
    case OPTION_REAL:
        return store_real(option, *(const double *)value, options, err);
    case OPTION_BOOL:
        store(option, options, *(const bool *)value);
        return 0;
    case OPTION_WORD:
        return store_word(option, value, options, err);
    default:
        return store_text(option, value, options, err);
    }
}

static void store_default(const struct option *option, void *options)
{
    if (option->type != OPTION_REAL && option->type != OPTION_TEXT)
        store(option, options, option->initial);
}

int option_table_fill(const struct option_table *table, const void *const *given, void *options,
                      struct err *err)
{
    int rc = 0;

    memset(options, 0, table->size);
    for (size_t i = 0; table->options[i].key != NULL && rc == 0; i++) {
        const struct option *option = &table->options[i];

        if (given == NULL || given[i] == NULL)
            store_default(option, options);
        else
            rc = store_given(option, given[i], options, err);
        if (option->given > 0)
            *(bool *)((uint8_t *)options + option->given) = given != NULL && given[i] != NULL;
    }
    return rc;
}
