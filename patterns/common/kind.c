/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all patterns share: which parameters they know, refusals in one sentence, lists of flows.
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

static void join(char *text, size_t size, const char *const *words)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; words[i] != NULL && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", words[i]);
}

int pattern_choose(const char *what, const char *const *words, const char *word,
                   struct pattern_why *why)
{
    char known[512];

    if (word == NULL)
        return 0;
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    join(known, sizeof(known), words);
    return pattern_refuse(why, "%s \"%s\" is not known: it is one of %s", what, word, known);
}

int pattern_either(const char *what, const char *usual, const char *other, const char *word,
                   struct pattern_why *why)
{
    const char *const words[] = {usual, other, NULL};

    return pattern_choose(what, words, word, why);
}

int pattern_check_params(const char *who, const struct pattern_request *request, unsigned known,
                         struct pattern_why *why)
{
#define REFUSE(word, key, type, member, count)                                                     \
    if (request->member && !(known & PATTERN_PARAM_##word))                                        \
        return pattern_refuse(why, "%s takes no %s", who, key);
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
                result = pattern_refuse(why, "%s: there is no rank %u among %u", what, rank, n);
            else if (named[rank])
                result = pattern_refuse(why, "%s: duplicate rank %u", what, rank);
            else
                named[rank] = true;
        }
    }
    free(named);
    return result;
}

int pattern_check_groups(const struct pattern_request *request, struct pattern_why *why)
{
    return pattern_check_ranks("groups", request->groups, request->group_count, request->n, why);
}

void pattern_add_flow(struct pattern_flow_list *list, uint32_t peer, enum pattern_role role,
                      uint32_t share)
{
    bool sends = list->side == PATTERN_SENDS;

    list->take(list, &(struct pattern_flow){.src = sends ? list->rank : peer,
                                            .dst = sends ? peer : list->rank,
                                            .role = role,
                                            .share = share});
}

void pattern_add(struct pattern_flow_list *list, uint32_t peer)
{
    pattern_add_flow(list, peer, PATTERN_GENERATE, 0);
}
