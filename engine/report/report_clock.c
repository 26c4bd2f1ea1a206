/* SPDX-License-Identifier: BSD-3-Clause */
#include "report_clock.h"

#include "report_common.h"

void report_clock(const struct phase_run *run)
{
    struct control_clocks clocks = control_clocks(run->trial->node->control);
    struct phase_clock clock = run->clock;
    json_t *record = report_new(run, "clock");
    bool rate = clocks.rate_bound_ppm >= 0;

    json_object_set_new(record, "clock", json_string(clock_mode_name(clocks.mode)));
    json_object_set_new(record, "offset_ns",
                        clock.bound_ns < 0 ? json_null()
                                           : json_integer(run->offset_ns + clock.shift_ns));
    record_set_count(record, "bound_ns", clock.bound_ns);
    json_object_set_new(record, "shift_ns",
                        clock.bound_ns < 0 ? json_null() : json_integer(clock.shift_ns));
    json_object_set_new(record, "rate_ppm", rate ? json_real(clocks.rate_ppm) : json_null());
    record_set_count(record, "maxerror_ns", clocks.maxerror_ns);
    record_set_count(record, "esterror_ns", clocks.esterror_ns);
    json_object_set_new(record, "rate_bound_ppm",
                        rate ? json_real(clocks.rate_bound_ppm) : json_null());
    record_send(run->trial->node->records, record);
}
