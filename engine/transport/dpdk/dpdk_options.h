/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a trial may say below `dpdk`.
 */
#ifndef ENGINE_DPDK_OPTIONS_H
#define ENGINE_DPDK_OPTIONS_H

#include "frame_lane.h"

enum header_kind { HEADER_L2, HEADER_IPV4_UDP, HEADER_IPV6_UDP };

/** @brief To whom a flow's frames go: the partner's port, or every other port of the network. */
enum frame_destination { DESTINATION_PORT, DESTINATION_BROADCAST, DESTINATION_MULTICAST };

struct dpdk_options {
    struct frame_options frame; /**< first */
    enum header_kind header;
    bool vlan; /**< with an 802.1Q tag of vlan_id and pcp */
    uint16_t vlan_id;
    uint8_t pcp;
    uint8_t dscp;
    uint8_t ttl;
    uint16_t udp_sources; /**< UDP source ports per flow, each a stream with its own sequence */
    enum frame_destination destination;
    uint32_t addresses;     /**< of each port: a flow's frames go to them in turn */
    uint8_t address_block;  /**< which: different blocks have no address in common */
    uint32_t address_first; /**< the first one's number within the block */
    double learning_rate;   /**< learning frames a second, of each port that receives */
    bool undersize;         /**< frames may be below 64 bytes (RFC 2889, 5.9) */
    double falls_to;        /**< a stream's load, in percent of what it was; 0: it stays ... */
    double falls_after_ns;  /**< ... so long behind the phase's start (RFC 2544, 26.5) */
};

extern const struct option_table dpdk_option_table;

/**
 * @brief Return the phase's options of `dpdk`.
 *
 * @param phase Phase.
 * @return Options; the phase's.
 */
static inline const struct dpdk_options *dpdk_options(const struct phase *phase)
{
    return phase->options;
}

#endif
