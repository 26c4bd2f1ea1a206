/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk_options.h"

static const char *const header_words[] = {
    [HEADER_L2] = "l2", [HEADER_IPV4_UDP] = "ipv4-udp", [HEADER_IPV6_UDP] = "ipv6-udp", NULL};

static const char *const destination_words[] = {[DESTINATION_PORT] = "port",
                                                [DESTINATION_BROADCAST] = "broadcast",
                                                [DESTINATION_MULTICAST] = "multicast",
                                                NULL};

#define MEMBER(type, key, member) OPTION(type, dpdk_options, key, member)

/* What depends on the port is checked when a phase is prepared. */
static const struct option options[] = {
    {MEMBER(OPTION_WORD, "header", header), .words = header_words},
    {MEMBER(OPTION_NUMBER, "vlan", vlan_id), .max = UINT16_MAX,
     .given = offsetof(struct dpdk_options, vlan)},
    {MEMBER(OPTION_NUMBER, "pcp", pcp), .max = UINT8_MAX},
    {MEMBER(OPTION_NUMBER, "dscp", dscp), .max = UINT8_MAX},
    {MEMBER(OPTION_NUMBER, "ttl", ttl), .max = UINT8_MAX, .initial = 64},
    {MEMBER(OPTION_NUMBER, "udp_sources", udp_sources), .min = 1, .max = UINT16_MAX, .initial = 1},
    FRAME_OPTIONS(dpdk_options, frame.),
    {MEMBER(OPTION_WORD, "destination", destination), .words = destination_words},
    {MEMBER(OPTION_NUMBER, "addresses", addresses), .min = 1, .max = 1 << 20, .initial = 1},
    {MEMBER(OPTION_NUMBER, "address_block", address_block), .max = UINT8_MAX},
    {MEMBER(OPTION_NUMBER, "address_first", address_first), .max = (1 << 20) - 1},
    {MEMBER(OPTION_REAL, "learning_rate", learning_rate), .min = 1, .initial = 1000},
    {MEMBER(OPTION_BOOL, "undersize", undersize)},
    {MEMBER(OPTION_REAL, "falls_to", falls_to)},
    {MEMBER(OPTION_REAL, "falls_after_ns", falls_after_ns)},
    {.key = NULL},
};

const struct option_table dpdk_option_table = {options, sizeof(struct dpdk_options),
                                               frame_options_fit};
