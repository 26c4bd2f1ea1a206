/* SPDX-License-Identifier: BSD-3-Clause */
#include "udp_options.h"

#define MEMBER(type, key, member) OPTION(type, udp_options, key, member)

static const struct option options[] = {
    {MEMBER(OPTION_BOOL, "offload", offload), .initial = UDP_OFFLOAD_AUTO},
    {MEMBER(OPTION_NUMBER, "receive_buffer", receive_buffer), .max = UINT32_MAX},
    SOCKET_OPTIONS(udp_options),
    {.key = NULL},
};

const struct option_table udp_option_table = {options, sizeof(struct udp_options),
                                              socket_options_fit};
