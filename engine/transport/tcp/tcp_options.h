/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a trial may say below `tcp`.
 */
#ifndef ENGINE_TCP_OPTIONS_H
#define ENGINE_TCP_OPTIONS_H

#include "transport.h"

struct tcp_options {
    uint16_t streams;     /**< connections per flow */
    uint32_t send_buffer; /**< SO_SNDBUF and SO_RCVBUF in bytes; 0: the kernel's autotuning */
    uint32_t receive_buffer;
    char congestion[16]; /**< TCP_CONGESTION; "": the system's */
    bool nodelay;
    bool zero_copy; /**< MSG_ZEROCOPY */
};

extern const struct option_table tcp_option_table;

/**
 * @brief Return the phase's options of `tcp`.
 *
 * @param phase Phase.
 * @return Options; the phase's.
 */
static inline const struct tcp_options *tcp_options(const struct phase *phase)
{
    return phase->options;
}

#endif
