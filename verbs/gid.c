/* SPDX-License-Identifier: BSD-3-Clause */
#include "gid.h"

#include <arpa/inet.h>
#include <string.h>

bool verbs_gid_is_ipv4(const uint8_t gid[VERBS_GID_BYTES])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, prefix, sizeof prefix) == 0;
}

bool verbs_gid_is_link_local(const uint8_t gid[VERBS_GID_BYTES])
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

/* Larger is better. */
static int rank_of(const struct verbs_gid *gid, int family)
{
    bool ipv4 = verbs_gid_is_ipv4(gid->bytes);
    bool wanted = family == 6 ? !ipv4 : ipv4;

    return 4 * (gid->type == VERBS_GID_ROCE_V2) + 2 * !verbs_gid_is_link_local(gid->bytes) + wanted;
}

const struct verbs_gid *verbs_gid_choose(const struct verbs_gid *table, size_t count, int family)
{
    const struct verbs_gid *best = NULL;

    for (size_t i = 0; i < count; i++)
        if (best == NULL || rank_of(&table[i], family) > rank_of(best, family))
            best = &table[i];
    return best;
}

const char *verbs_gid_text(const uint8_t gid[VERBS_GID_BYTES], char text[VERBS_GID_TEXT])
{
    return inet_ntop(AF_INET6, gid, text, VERBS_GID_TEXT);
}
