/* SPDX-License-Identifier: BSD-3-Clause */
#include "udp_options.h"

#include "frame_state.h"

#define MEMBER(type, key, member) OPTION(type, udp_options, key, member)

static const struct option options[] = {
    {MEMBER(OPTION_BOOL, "offload", offload), .initial = UDP_OFFLOAD_AUTO},
    {MEMBER(OPTION_NUMBER, "receive_buffer", receive_buffer), .max = UINT32_MAX},
    {MEMBER(OPTION_NUMBER, "burst", burst), .min = 1, .max = FRAME_BURST_MAX, .initial = 32},
    {MEMBER(OPTION_NUMBER, "catch_up", catch_up), .min = 1, .max = UINT16_MAX,
     .initial = PACE_CATCH_UP},
    {MEMBER(OPTION_NUMBER, "window_frames", window_frames), .max = UINT32_MAX},
    {MEMBER(OPTION_REAL, "dither", dither)},
    {.key = NULL},
};

static void fit(void *data, const struct phase *phase)
{
    struct udp_options *fitted = data;

    fitted->catch_up = pace_catch_up(fitted->catch_up, phase_mean_size(phase));
}

const struct option_table udp_option_table = {options, sizeof(struct udp_options), fit};
