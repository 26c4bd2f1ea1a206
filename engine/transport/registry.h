/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The one place that knows which transports this build has.
 */
#ifndef ENGINE_REGISTRY_H
#define ENGINE_REGISTRY_H

#include "transport.h"

/* The transports of this build, NULL-terminated, and one by its name (NULL: not built). */
extern const struct transport *const transports[];
const struct transport *transport_find(const char *name);

#endif
