/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of patterns, and what they share: finding one by its name, checking which parameters
 * it knows, refusing in one sentence.
 */
#include "kind.h"
#include "steps.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define PATTERNS(X)                                                                                \
    X(chain) X(pairs) X(aapc) X(ring) X(random) X(partial_mesh)                                    \
    X(pingpong) X(pingping) X(sendrecv) X(exchange)                                                \
    X(bcast) X(reduce) X(allreduce) X(reduce_scatter) X(allgather) X(allgatherv)                   \
    X(alltoall) X(alltoallv) X(barrier)                                                            \
    X(nas_ep) X(nas_is) X(nas_cg) X(nas_mg) X(nas_ft) X(nas_lu) X(nas_sp) X(nas_bt)                \
    X(hpl) X(halo)
/* clang-format on */

#define NAME(word) #word,
#define KIND(word) &pattern_##word,
static const char *const names[] = {PATTERNS(NAME) NULL};
static const struct pattern_kind *const kinds[] = {PATTERNS(KIND)};

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
    {PATTERN_PARAM_DRAW, "draw"},
};

const char *const *pattern_names(void)
{
    return names;
}

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
           (request->draw != NULL ? PATTERN_PARAM_DRAW : 0u);
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

/* The index of the request's pattern, when what all patterns share is right. */
static int check_request(const struct pattern_request *request, struct pattern_why *why)
{
    bool scheduled = request->local || request->method != NULL;
    int index, result;

    if (request->name == NULL)
        return pattern_refuse(why, "the pattern has no name");
    index = pattern_choose("pattern", names, request->name, why);
    if (index < 0)
        return index;
    if (request->n < 2 || request->n > PATTERN_RANKS_MAX)
        return pattern_refuse(why, "%s: %u rank%s: a pattern needs 2 to %u", request->name,
                              request->n, request->n == 1 ? "" : "s", PATTERN_RANKS_MAX);
    if (request->bytes > PATTERN_BYTES_MAX)
        return pattern_refuse(why, "%s: bytes %" PRIu64 " is more than %" PRIu64, request->name,
                              request->bytes, PATTERN_BYTES_MAX);
    result = pattern_check_params(
        request->name, request,
        kinds[index]->knows | PATTERN_PARAM_LOCAL | (scheduled ? PATTERN_PARAM_BYTES : 0u), why);
    return result < 0 ? result : index;
}

/* What became of a plan whose phases depend on each other. */
static int schedule(struct pattern_plan *plan, const struct pattern_request *request,
                    struct pattern_why *why)
{
    if (request->local && plan->tell == NULL) {
        plan->tell = pattern_tell_local;
        plan->local_phases = plan->phases;
        plan->phases = 1;
    }
    if (plan->tell != NULL && plan->there_and_back)
        return pattern_refuse(why,
                              "%s: there_and_back is for messages that come back by "
                              "themselves, not for the steps of a schedule",
                              request->name);
    return 0;
}

int pattern_plan_make(struct pattern_plan **plan, const struct pattern_request *request, char *why,
                      size_t why_size)
{
    struct pattern_why reason = {why, why_size};
    struct pattern_plan *made = NULL;
    int index = check_request(request, &reason), result;

    if (index < 0)
        return index;
    made = calloc(1, sizeof(*made));
    if (made == NULL)
        return -ENOMEM;
    made->kind = kinds[index];
    made->n = request->n;
    made->seed = request->seed;
    made->there_and_back = request->there_and_back;
    made->bytes = request->bytes;
    result = made->kind->make(made, request, &reason);
    if (result == 0)
        result = schedule(made, request, &reason);
    if (result < 0)
        goto cleanup;
    *plan = made;
    made = NULL;
cleanup:
    pattern_plan_free(made);
    return result;
}

void pattern_plan_free(struct pattern_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->state);
    free(plan);
}

uint32_t pattern_phases(const struct pattern_plan *plan)
{
    return plan->phases;
}

int pattern_phase_name(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size)
{
    assert(phase < plan->phases);
    if (plan->local_phases > 1)
        return snprintf(name, size, "%u phases", plan->local_phases);
    return plan->kind->phase_name(plan, phase, name, size);
}

size_t pattern_flows(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                     enum pattern_side side, struct pattern_flow *flows, size_t room)
{
    struct pattern_flow_list list = {
        .rank = rank,
        .side = side,
        .flows = flows,
        .room = room,
        .folded = plan->there_and_back ? plan : NULL,
        .phase = phase,
    };

    assert(phase < plan->phases && rank < plan->n);
    if (plan->tell != NULL)
        steps_flows(plan, phase, &list);
    else
        plan->kind->flows(plan, phase, &list);
    return list.count;
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

void pattern_add(struct pattern_flow_list *list, uint32_t peer, enum pattern_role role)
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
    };
    if (list->visit != NULL)
        list->visit(list, &flow);
    else if (list->count < list->room)
        list->flows[list->count] = flow;
    list->count++;
}
