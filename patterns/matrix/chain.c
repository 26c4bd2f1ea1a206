/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Chain: rank i sends to rank i + 1, all at once (Rauch 2005, 4.1). With `forward` only the head
 * generates traffic, and every middle rank forwards it, as Dolly does.
 */
#include "kind.h"

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    bool sends = list->side == PATTERN_SENDS;
    uint32_t peer = sends ? list->rank + 1 : list->rank - 1, src = sends ? list->rank : peer;

    if (list->rank == (sends ? plan->n - 1 : 0))
        return;
    pattern_add_flow(list, peer,
                     plan->asked.forward && src > 0 ? PATTERN_FORWARD : PATTERN_GENERATE, 0);
}

const struct pattern_kind kind_chain = {
    .knows = PATTERN_PARAM_FORWARD,
    .flows = flows,
};
