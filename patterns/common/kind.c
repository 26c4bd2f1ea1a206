/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all patterns share: which parameters they know, refusals in one sentence, lists of flows.
 */
#include "kind.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum pattern_param param;
    const char *name;
} params[] = {
    {PATTERN_PARAM_ORDER, "order"},
    {PATTERN_PARAM_PARTNERS, "partners"},
    {PATTERN_PARAM_DIRECTIONS, "directions"},
    {PATTERN_PARAM_FORWARD, "forward"},
    {PATTERN_PARAM_SHIFT, "shift"},
    {PATTERN_PARAM_COUNT, "count"},
    {PATTERN_PARAM_NATURAL, "natural"},
    {PATTERN_PARAM_LIST, "list"},
    {PATTERN_PARAM_GROUPS, "groups"},
    {PATTERN_PARAM_DEGREE, "degree"},
    {PATTERN_PARAM_ALGORITHM, "algorithm"},
    {PATTERN_PARAM_BYTES, "bytes"},
    {PATTERN_PARAM_LOCAL, "local"},
    {PATTERN_PARAM_METHOD, "method"},
    {PATTERN_PARAM_SKEW, "skew"},
    {PATTERN_PARAM_CLASS, "class"},
    {PATTERN_PARAM_MATRIX, "matrix"},
    {PATTERN_PARAM_BLOCK, "block"},
    {PATTERN_PARAM_DIMENSIONS, "dimensions"},
    {PATTERN_PARAM_DRAW, "random_generator"},
    {PATTERN_PARAM_SENDERS, "senders"},
    {PATTERN_PARAM_RECEIVERS, "receivers"},
    {PATTERN_PARAM_ROTATE, "rotate"},
    {PATTERN_PARAM_LOAD_OF, "load_of"},
    {PATTERN_PARAM_SHARES, "shares"},
};

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

static unsigned params_set(const struct pattern_request *request)
{
    return (request->order != NULL ? PATTERN_PARAM_ORDER : 0u) |
           (request->partners != NULL ? PATTERN_PARAM_PARTNERS : 0u) |
           (request->directions != NULL ? PATTERN_PARAM_DIRECTIONS : 0u) |
           (request->forward ? PATTERN_PARAM_FORWARD : 0u) |
           (request->shift != 0 ? PATTERN_PARAM_SHIFT : 0u) |
           (request->count != 0 ? PATTERN_PARAM_COUNT : 0u) |
           (request->natural ? PATTERN_PARAM_NATURAL : 0u) |
           (request->list.count != 0 ? PATTERN_PARAM_LIST : 0u) |
           (request->group_count != 0 ? PATTERN_PARAM_GROUPS : 0u) |
           (request->degree != 0 ? PATTERN_PARAM_DEGREE : 0u) |
           (request->algorithm != NULL ? PATTERN_PARAM_ALGORITHM : 0u) |
           (request->bytes != 0 ? PATTERN_PARAM_BYTES : 0u) |
           (request->local ? PATTERN_PARAM_LOCAL : 0u) |
           (request->method != NULL ? PATTERN_PARAM_METHOD : 0u) |
           (request->skew != 0 ? PATTERN_PARAM_SKEW : 0u) |
           (request->class != NULL ? PATTERN_PARAM_CLASS : 0u) |
           (request->matrix != 0 ? PATTERN_PARAM_MATRIX : 0u) |
           (request->block != 0 ? PATTERN_PARAM_BLOCK : 0u) |
           (request->dimensions != 0 ? PATTERN_PARAM_DIMENSIONS : 0u) |
           (request->draw != NULL ? PATTERN_PARAM_DRAW : 0u) |
           (request->senders != 0 ? PATTERN_PARAM_SENDERS : 0u) |
           (request->receivers != 0 ? PATTERN_PARAM_RECEIVERS : 0u) |
           (request->rotate ? PATTERN_PARAM_ROTATE : 0u) |
           (request->load_of != NULL ? PATTERN_PARAM_LOAD_OF : 0u) |
           (request->share_count != 0 ? PATTERN_PARAM_SHARES : 0u);
}

int pattern_check_params(const char *who, const struct pattern_request *request, unsigned known,
                         struct pattern_why *why)
{
    unsigned unknown = params_set(request) & ~known;

    for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++)
        if (unknown & params[i].param)
            return pattern_refuse(why, "%s takes no %s", who, params[i].name);
    return 0;
}

/* The flow between the list's rank and `peer` goes from the higher rank to the lower, and the phase
 * has the one the other way, too. */
static bool is_way_back(const struct pattern_flow_list *list, uint32_t peer)
{
    bool sends = list->side == PATTERN_SENDS;
    struct pattern_flow_list other = {
        .rank = list->rank,
        .side = sends ? PATTERN_RECEIVES : PATTERN_SENDS,
        .sought = &peer,
    };

    if (sends ? list->rank < peer : list->rank > peer)
        return false;
    list->folded->kind->flows(list->folded, list->phase, &other);
    return other.found;
}

static void add(struct pattern_flow_list *list, uint32_t peer, enum pattern_role role,
                uint32_t share)
{
    bool sends = list->side == PATTERN_SENDS;
    struct pattern_flow flow;

    if (list->sought != NULL) {
        list->found = list->found || peer == *list->sought;
        return;
    }
    if (list->folded != NULL && is_way_back(list, peer))
        return;
    flow = (struct pattern_flow){
        .src = sends ? list->rank : peer,
        .dst = sends ? peer : list->rank,
        .role = role,
        .share = share,
    };
    if (list->visit != NULL)
        list->visit(list, &flow);
    else if (list->count < list->room)
        list->flows[list->count] = flow;
    list->count++;
}

void pattern_add(struct pattern_flow_list *list, uint32_t peer, enum pattern_role role)
{
    add(list, peer, role, 0);
}

void pattern_add_share(struct pattern_flow_list *list, uint32_t peer, uint32_t share)
{
    add(list, peer, PATTERN_GENERATE, share);
}
