/* SPDX-License-Identifier: BSD-3-Clause */
#include "blob_store.h"

#include <search.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct blob_entry *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

struct blob_entry *blob_store_find(const struct blob_store *store, uint32_t node, uint64_t id)
{
    const struct blob_entry wanted = {.node = node, .id = id};
    struct blob_entry *const *found = tfind(&wanted, &store->tree, compare);

    return found != NULL ? *found : NULL;
}

struct blob_entry *blob_store_make(struct blob_store *store, uint32_t node, uint64_t id)
{
    struct blob_entry *entry = blob_store_find(store, node, id);

    if (entry != NULL || (entry = calloc(1, sizeof(*entry))) == NULL)
        return entry;
    *entry = (struct blob_entry){.node = node, .id = id, .asked_ns = INT64_MAX};
    if (tsearch(entry, &store->tree, compare) != NULL)
        return entry;
    free(entry);
    return NULL;
}

void blob_store_clear(struct blob_store *store)
{
    while (store->tree != NULL) {
        struct blob_entry *entry = *(struct blob_entry **)store->tree;

        tdelete(entry, &store->tree, compare);
        free(entry);
    }
}
