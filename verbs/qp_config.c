/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_config.h"

#include <string.h>

/* How often completions are signalled and how many streams a flow has may differ. */
static bool same_options(const struct verbs_options *a, const struct verbs_options *b)
{
    return a->service == b->service && a->operation == b->operation && a->depth == b->depth &&
           a->inline_bytes == b->inline_bytes && a->service_level == b->service_level &&
           a->traffic_class == b->traffic_class && a->pkey_index == b->pkey_index &&
           a->retry == b->retry && a->rnr_retry == b->rnr_retry && a->timeout == b->timeout;
}

bool qp_config_equal(const struct qp_config *a, const struct qp_config *b)
{
    return memcmp(a->partner.gid, b->partner.gid, sizeof a->partner.gid) == 0 &&
           a->partner.lid == b->partner.lid && a->gid == b->gid && a->role == b->role &&
           a->stream == b->stream && a->mtu == b->mtu && a->slots == b->slots &&
           a->stride == b->stride && a->forwards == b->forwards &&
           same_options(&a->options, &b->options);
}

/* FNV-1a of what differs most. */
uint32_t qp_config_hash(const struct qp_config *config)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < sizeof config->partner.gid; i++)
        hash = (hash ^ config->partner.gid[i]) * 16777619u;
    hash = (hash ^ config->partner.lid) * 16777619u;
    return (hash ^ (config->stream * 2u + config->role)) * 16777619u;
}

uint32_t qp_config_headers(const struct qp_config *config)
{
    return config->role == QP_SENDER && !config->forwards ? config->options.depth : 0;
}

uint32_t qp_config_receives(const struct qp_config *config)
{
    bool receives = config->role == QP_RECEIVER || config->options.service == VERBS_UD;

    return receives ? config->slots : 0;
}

uint32_t qp_config_sends(const struct qp_config *config)
{
    return config->role == QP_SENDER ? config->options.depth : 0;
}
