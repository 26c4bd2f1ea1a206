/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of transports in this build: the only place that names them all.
 */
#include "registry.h"

#include <string.h>

#ifdef HAVE_DPDK
extern const struct transport transport_dpdk;
#endif
#ifdef HAVE_VERBS
extern const struct transport transport_verbs;
#endif
extern const struct transport transport_packet;
extern const struct transport transport_tcp;
extern const struct transport transport_udp;

const struct transport *const transports[] = {
#ifdef HAVE_DPDK
    &transport_dpdk,
#endif
#ifdef HAVE_VERBS
    &transport_verbs,
#endif
    &transport_tcp,   &transport_udp, &transport_packet, NULL,
};

const struct transport *transport_find(const char *name)
{
    for (const struct transport *const *t = transports; *t != NULL; t++)
        if (strcmp((*t)->name, name) == 0)
            return *t;
    return NULL;
}
