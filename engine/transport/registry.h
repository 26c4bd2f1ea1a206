/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The one place that knows which transports this build has.
 */
#ifndef ENGINE_REGISTRY_H
#define ENGINE_REGISTRY_H

#include "transport.h"

/** @brief Transports of this build, NULL-terminated. */
extern const struct transport *const transports[];
/**
 * @brief Find a transport by its name.
 *
 * @param name The configuration's word.
 * @return Transport; NULL: there is none.
 */
const struct transport *transport_find(const char *name);

#endif
