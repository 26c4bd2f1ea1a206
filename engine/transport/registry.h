/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief List of the transports that this build contains.
 */
#ifndef ENGINE_REGISTRY_H
#define ENGINE_REGISTRY_H

#include "transport.h"

/** @brief Transports of this build, NULL-terminated. */
extern const struct transport *const transports[];
/**
 * @brief Find a transport by its name.
 *
 * @param name Name of the transport in the configuration.
 * @return Transport; NULL: there is none.
 */
const struct transport *transport_find(const char *name);

#endif
