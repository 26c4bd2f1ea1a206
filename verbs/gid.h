/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which of a port's GIDs to use, from the table as plain data, and what partners must know of a
 * port.
 *
 * On RoCE the GID decides how packets look: version 2 has routable IP and UDP headers, version 1
 * only an EtherType; and a GID that is an IPv4 address, mapped, makes IPv4 packets.
 */
#ifndef VERBS_GID_H
#define VERBS_GID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERBS_GID_BYTES 16

enum verbs_gid_type { VERBS_GID_IB, VERBS_GID_ROCE_V1, VERBS_GID_ROCE_V2 };

struct verbs_gid {
    uint32_t index;
    enum verbs_gid_type type;
    uint8_t bytes[VERBS_GID_BYTES];
};

/* What partners must know of a port before a phase; travels as it lies in memory. */
struct verbs_address {
    uint8_t ethernet;
    uint8_t zero;
    uint16_t lid;                 /* network byte order */
    uint8_t gid[VERBS_GID_BYTES]; /* of the automatic choice */
};

bool verbs_gid_is_ipv4(const uint8_t gid[VERBS_GID_BYTES]);
bool verbs_gid_is_link_local(const uint8_t gid[VERBS_GID_BYTES]);

/* The best for an Ethernet port: RoCE v2 before v1; of the wanted family (4, 6, or 0: any, IPv4
 * first) before the other; link-local last of its kind; the lowest index of equals. NULL: the
 * table is empty. */
const struct verbs_gid *verbs_gid_choose(const struct verbs_gid *table, size_t count, int family);

/* "::ffff:10.0.0.1" or "fe80::1" */
#define VERBS_GID_TEXT 46
const char *verbs_gid_text(const uint8_t gid[VERBS_GID_BYTES], char text[VERBS_GID_TEXT]);

#endif
