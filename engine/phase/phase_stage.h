/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The life of a phase on this node: its stages, and which of them may follow which. The table in
 * phase_stage.c is the whole of it.
 */
#ifndef ENGINE_PHASE_STAGE_H
#define ENGINE_PHASE_STAGE_H

#include <stdbool.h>

enum phase_stage {
    PHASE_EMPTY,     /* nothing is made */
    PHASE_BEGUN,     /* flows and loads are known */
    PHASE_ADMITTED,  /* there is memory for its messages */
    PHASE_PREPARED,  /* all lanes are made */
    PHASE_READY,     /* ... and connected */
    PHASE_SCHEDULED, /* the barrier has told when it starts */
    PHASE_RUNNING,   /* the workers have its lanes */
    PHASE_ENDED,     /* the workers are done, and the nodes have told how it was */
    PHASE_FAILED,    /* it could not be prepared; nothing was sent */
    PHASE_STAGES
};

bool phase_may_enter(enum phase_stage from, enum phase_stage to);
/* Makes `to` the stage. Asserts that the table allows it. */
void phase_enter(enum phase_stage *stage, enum phase_stage to);

#endif
