/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is known of this node's clock in a phase. A phase runs with the offset that was known at its
 * start. Once it is over, datagrams from both sides of it say more (offset_filter.h): by how much
 * that was off in the middle of the window, which can be put right afterwards, and how far the
 * clock may have been from that anywhere in the window, which can't.
 */
#include "phase_clock.h"

#include "phase_run.h"

#include <stdlib.h>

#define LOOKS 5 /* through a window, its ends included */

/* Where flows were measured, by our clock. */
struct window {
    int64_t open_ns;
    int64_t close_ns;
};

static struct window window_of(const struct phase_run *run)
{
    const struct phase *phase = &run->template;
    int64_t close_ns = phase_is_timed(phase) ? phase->close_ns : run->end.at_ns;

    return (struct window){phase->open_ns, close_ns > phase->open_ns ? close_ns : phase->open_ns};
}

struct phase_clock clock_of_phase(const struct phase_run *run)
{
    struct control *control = run->trial->node->control;
    struct window window = window_of(run);
    int64_t span_ns = window.close_ns - window.open_ns;
    struct control_clock middle = control_clock_at(control, window.open_ns + span_ns / 2);
    struct phase_clock clock = {.bound_ns = -1};

    if (run->bound_ns < 0 || middle.bound_ns < 0)
        return clock;
    clock.shift_ns = middle.offset_ns - run->offset_ns;
    clock.bound_ns = middle.bound_ns;
    for (int64_t look = 0; look < LOOKS; look++) {
        struct control_clock there =
            control_clock_at(control, window.open_ns + span_ns * look / (LOOKS - 1));
        int64_t off_ns = llabs(there.offset_ns - middle.offset_ns) + there.bound_ns;

        clock.bound_ns = off_ns > clock.bound_ns ? off_ns : clock.bound_ns;
    }
    /* A disciplined clock only jumps: when, nobody knows. Its error was read at both ends. */
    if (control_clocks(control).mode == CLOCK_PTP)
        clock.bound_ns = llabs(clock.shift_ns) +
                         (run->bound_ns > clock.bound_ns ? run->bound_ns : clock.bound_ns);
    return clock;
}
