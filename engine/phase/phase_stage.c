/* SPDX-License-Identifier: BSD-3-Clause */
#include "phase_stage.h"

#include <assert.h>
#include <stddef.h>

/* From, to, and what leads there. */
static const struct {
    enum phase_stage from;
    enum phase_stage to;
} transitions[] = {
    {PHASE_EMPTY, PHASE_BEGUN},       /* lanes_begin: the pattern told this node's flows */
    {PHASE_BEGUN, PHASE_ADMITTED},    /* lanes_advance: memory is to spare */
    {PHASE_ADMITTED, PHASE_PREPARED}, /* lanes_advance: partners' addresses came, lanes are made */
    {PHASE_PREPARED, PHASE_READY},    /* lanes_advance: all connections stand */
    {PHASE_READY, PHASE_SCHEDULED},   /* phase_barrier: all nodes are ready */
    {PHASE_SCHEDULED, PHASE_RUNNING}, /* start_workers */
    {PHASE_RUNNING, PHASE_ENDED},     /* wait_phase_end */
    {PHASE_EMPTY, PHASE_FAILED},      /* what is asked for is impossible, or there is no memory: */
    {PHASE_BEGUN, PHASE_FAILED},      /* the failure waits for the phase's turn */
    {PHASE_ADMITTED, PHASE_FAILED},   {PHASE_PREPARED, PHASE_FAILED},
};

bool phase_may_enter(enum phase_stage from, enum phase_stage to)
{
    for (size_t i = 0; i < sizeof transitions / sizeof transitions[0]; i++)
        if (transitions[i].from == from && transitions[i].to == to)
            return true;
    return to == PHASE_EMPTY; /* released: at any time, for the run may end at any time */
}

void phase_enter(enum phase_stage *stage, enum phase_stage to)
{
    assert(phase_may_enter(*stage, to));
    *stage = to;
}
