/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that all patterns share: parameter checks, error sentences, lists of flows.
 */
#include "kind.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pattern_refuse(struct pattern_why *why, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why->text, why->size, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

int pattern_choose(const char *what, const char *const *words, const char *word,
                   struct pattern_why *why)
{
    char known[1024] = "";
    size_t used = 0;

    if (word == NULL)
        return 0;
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0)
            return i;
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i > 0 ? ", " : "",
                                 words[i]);
    }
    return pattern_refuse(why, "%s has the invalid value \"%s\"; valid values: %s", what, word,
                          known);
}

int pattern_check_params(const char *name, const struct pattern_request *request, unsigned known,
                         struct pattern_why *why)
{
#define REFUSE(word, key, type, member, count)                                                     \
    if (request->member && !(known & PATTERN_PARAM_##word))                                        \
        return pattern_refuse(why, "%s has no parameter %s", name, key);
    PATTERN_PARAMS(REFUSE)
    return 0;
}

int pattern_check_ranks(const char *what, const struct pattern_ranks *lists, size_t count,
                        uint32_t n, struct pattern_why *why)
{
    bool *named = calloc(n, sizeof(*named));
    int result = named != NULL ? 0 : -ENOMEM;

    for (size_t i = 0; i < count && result == 0; i++) {
        if (lists[i].count == 0)
            result = pattern_refuse(why, "%s: group %zu (from 0) is empty", what, i);
        for (size_t j = 0; j < lists[i].count && result == 0; j++) {
            uint32_t rank = lists[i].rank[j];

            if (rank >= n)
                result =
                    pattern_refuse(why, "%s: there is no rank %u: the network has %u ranks, from 0",
                                   what, rank, n);
            else if (named[rank])
                result = pattern_refuse(why, "%s: duplicate rank %u", what, rank);
            else
                named[rank] = true;
        }
    }
    free(named);
    return result;
}

/* Return whether a phase also has the opposite flow of the flow between the list's rank and
 * `peer`. */
static bool comes_back(const struct pattern_flow_list *list, uint32_t peer)
{
    struct pattern_flow_list back = {
        .rank = list->rank,
        .phase = list->phase,
        .side = list->side == PATTERN_SENDS ? PATTERN_RECEIVES : PATTERN_SENDS,
        .only = &peer,
    };

    list->one_way->kind->flows(list->one_way, &back);
    return back.count > 0;
}

void pattern_add_flow(struct pattern_flow_list *list, uint32_t peer, enum pattern_role role,
                      uint32_t share)
{
    bool sends = list->side == PATTERN_SENDS;
    struct pattern_flow flow = {.src = sends ? list->rank : peer,
                                .dst = sends ? peer : list->rank,
                                .role = role,
                                .share = share};

    if ((list->only != NULL && *list->only != peer) ||
        (list->one_way != NULL && flow.src > flow.dst && comes_back(list, peer)))
        return;
    if (list->seen != NULL) {
        uint64_t bit = UINT64_C(1) << peer % 64, *word = &list->seen[peer / 64];

        if (*word & bit)
            return;
        *word |= bit;
        flow.role = PATTERN_GENERATE;
        flow.share = 0;
    }
    if (list->count < list->room)
        list->flows[list->count] = flow;
    list->count++;
}

void pattern_add(struct pattern_flow_list *list, uint32_t peer)
{
    pattern_add_flow(list, peer, PATTERN_GENERATE, 0);
}

size_t pattern_list(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                    enum pattern_side side, struct pattern_flow *flows)
{
    struct pattern_flow_list list = {
        .rank = rank, .phase = phase, .side = side, .flows = flows, .room = plan->n};

    plan->kind->flows(plan, &list);
    return list.count;
}
