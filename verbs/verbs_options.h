/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a trial may say below `verbs`.
 */
#ifndef VERBS_OPTIONS_H
#define VERBS_OPTIONS_H

#include "transport.h"

enum verbs_service { VERBS_RC, VERBS_UC, VERBS_UD };
enum verbs_operation { VERBS_SEND, VERBS_WRITE /* with immediate data */ };
enum verbs_completion { VERBS_COMPLETION_AUTO, VERBS_COMPLETION_POLL, VERBS_COMPLETION_EVENT };

#define VERBS_AUTOMATIC (-1)

/** @brief What decides on a queue pair: one that was made with these serves only for equal ones. */
struct verbs_qp_options {
    enum verbs_service service;
    enum verbs_operation operation;
    uint32_t depth;       /**< messages posted and not completed, by queue pair; never 0 */
    int32_t inline_bytes; /**< VERBS_AUTOMATIC; 0: none */
    int32_t gid_index;    /**< VERBS_AUTOMATIC */
    uint32_t service_level;
    uint32_t traffic_class;
    uint32_t pkey_index;
    uint32_t retry; /**< 0 to 6: taken as it is */
    uint32_t rnr_retry;
    uint32_t timeout; /**< 4.096 us x 2^timeout; never 0 */
};

/**
 * @brief What each means in the field's words: doc/how-to/verbs.md.
 *
 * 0 is "automatic" unless said otherwise.
 */
struct verbs_options {
    struct verbs_qp_options qp;
    uint16_t queue_pairs;  /**< by flow; never 0 */
    uint16_t signal_every; /**< messages */
    uint16_t mtu;          /**< path MTU in bytes */
    enum verbs_completion completion;
    uint32_t reuse; /**< queue pairs kept connected for later phases, by port; 0: none */
};

extern const struct option_table verbs_option_table;

/**
 * @brief Return the phase's options of `verbs`.
 *
 * @param phase Phase.
 * @return Options; the phase's.
 */
static inline const struct verbs_options *verbs_options(const struct phase *phase)
{
    return phase->options;
}

#endif
