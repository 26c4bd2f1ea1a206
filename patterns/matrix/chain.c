/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Chain: rank i sends to rank i + 1, all at once (Rauch 2005, 4.1). With `forward` only the head
 * makes traffic and every middle rank sends on what it receives, as Dolly does.
 */
#include "kind.h"

#include <errno.h>
#include <stdlib.h>

struct chain {
    bool forward;
};

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    struct chain *chain = malloc(sizeof(*chain));

    (void)why;
    if (chain == NULL)
        return -ENOMEM;
    chain->forward = request->forward;
    plan->state = chain;
    return 0;
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    const struct chain *chain = plan->state;
    bool sends = list->side == PATTERN_SENDS;
    uint32_t end = sends ? plan->n - 1 : 0;
    uint32_t src, peer;

    if (list->rank == end)
        return;
    peer = sends ? list->rank + 1 : list->rank - 1;
    src = sends ? list->rank : peer;
    pattern_add(list, peer, chain->forward && src > 0 ? PATTERN_FORWARD : PATTERN_GENERATE);
}

const struct pattern_kind kind_chain = {
    .knows = PATTERN_PARAM_FORWARD,
    .make = make,
    .flows = flows,
};
