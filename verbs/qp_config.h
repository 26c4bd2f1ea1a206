/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What one end of a queue pair is like: whose partner it is, its role, its options, its ring. Plain
 * data: no device.
 */
#ifndef VERBS_QP_CONFIG_H
#define VERBS_QP_CONFIG_H

#include "gid.h"
#include "verbs_options.h"

enum qp_role { QP_SENDER, QP_RECEIVER };

struct qp_config {
    struct verbs_options options; /* effective */
    struct verbs_address partner;
    const struct verbs_gid *gid; /* of the port's table; NULL: none (one InfiniBand subnet) */
    enum qp_role role;
    uint16_t stream;
    uint16_t mtu;    /* path MTU in bytes, max */
    uint32_t slots;  /* of the ring; 0: none */
    uint32_t stride; /* of a slot, 64 n */
    bool forwards;   /* a sender that sends from the ring of another end */
};

/* Whether a queue pair of one serves as one of the other, connected as it is. */
bool qp_config_equal(const struct qp_config *a, const struct qp_config *b);
uint32_t qp_config_hash(const struct qp_config *config);

/* Headers of messages that the end gathers from: one per work request; 0: it gathers none. */
uint32_t qp_config_headers(const struct qp_config *config);
/* How many receives the end keeps posted: its slots, or 0 where none are needed. */
uint32_t qp_config_receives(const struct qp_config *config);
/* Work requests that its send queue holds for messages. */
uint32_t qp_config_sends(const struct qp_config *config);

#endif
