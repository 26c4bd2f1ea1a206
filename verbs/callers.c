/* SPDX-License-Identifier: BSD-3-Clause */
#include "callers.h"

#include <errno.h>
#include <stdlib.h>

int verbs_callers_expect(struct verbs_callers *callers, const void *end, uint64_t token)
{
    struct verbs_caller *caller = malloc(sizeof *caller);

    if (caller == NULL)
        return -ENOMEM;
    *caller = (struct verbs_caller){.next = callers->first, .end = end, .token = token};
    callers->first = caller;
    return 0;
}

bool verbs_callers_came(struct verbs_callers *callers, uint64_t token, uint32_t number, void *id)
{
    for (struct verbs_caller *caller = callers->first; caller != NULL; caller = caller->next) {
        if (caller->token != token || caller->id != NULL)
            continue;
        caller->id = id;
        caller->number = number;
        return true;
    }
    return false;
}

static struct verbs_caller **find(struct verbs_callers *callers, const void *end)
{
    struct verbs_caller **link = &callers->first;

    while (*link != NULL && (*link)->end != end)
        link = &(*link)->next;
    return link;
}

void *verbs_callers_take(struct verbs_callers *callers, const void *end, uint32_t *number)
{
    const struct verbs_caller *caller = *find(callers, end);

    if (caller == NULL || caller->id == NULL)
        return NULL;
    *number = caller->number;
    return verbs_callers_forget(callers, end);
}

void *verbs_callers_forget(struct verbs_callers *callers, const void *end)
{
    struct verbs_caller **link = find(callers, end);
    struct verbs_caller *caller = *link;
    void *id;

    if (caller == NULL)
        return NULL;
    id = caller->id;
    *link = caller->next;
    free(caller);
    return id;
}
