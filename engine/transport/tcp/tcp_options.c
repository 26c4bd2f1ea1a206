/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp_options.h"

#define MEMBER(type, key, member) OPTION(type, tcp_options, key, member)

/* What depends on the kernel is checked when a phase is prepared. */
static const struct option options[] = {
    {MEMBER(OPTION_NUMBER, "streams", streams), .min = 1, .max = UINT16_MAX, .initial = 1},
    {MEMBER(OPTION_NUMBER, "send_buffer", send_buffer), .max = UINT32_MAX},
    {MEMBER(OPTION_NUMBER, "receive_buffer", receive_buffer), .max = UINT32_MAX},
    {MEMBER(OPTION_TEXT, "congestion", congestion)},
    {MEMBER(OPTION_BOOL, "nodelay", nodelay), .initial = true},
    {MEMBER(OPTION_BOOL, "zero_copy", zero_copy)},
    {.key = NULL},
};

const struct option_table tcp_option_table = {options, sizeof(struct tcp_options), NULL};
