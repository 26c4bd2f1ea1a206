/* SPDX-License-Identifier: BSD-3-Clause */
#include "callers.h"

#include <stddef.h>

void verbs_callers_expect(struct verbs_callers *callers, struct verbs_caller *caller,
                          uint64_t token)
{
    *caller = (struct verbs_caller){.next = callers->first, .token = token};
    callers->first = caller;
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

void verbs_callers_forget(struct verbs_callers *callers, const struct verbs_caller *caller)
{
    struct verbs_caller **link = &callers->first;

    while (*link != NULL && *link != caller)
        link = &(*link)->next;
    if (*link != NULL)
        *link = caller->next;
}
