/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Socket addresses as text: "192.0.2.1:7600", "[2001:db8::1]:7600".
 *
 * Numeric only: no name is looked up on a network under test.
 */
#ifndef ENGINE_ADDRESS_H
#define ENGINE_ADDRESS_H

#include "err.h"

#include <netinet/in.h>
#include <stddef.h>

#define ADDRESS_TEXT_MAX (INET6_ADDRSTRLEN + 9) /**< brackets, colon, port, end */

/**
 * @brief Parse a numeric socket address.
 *
 * @param text Zero-terminated text; not kept.
 * @param address Socket address or address bytes.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EINVAL: no numeric address and port, with a sentence.
 */
int address_parse(const char *text, struct sockaddr_storage *address, struct err *err);
/**
 * @brief Write a socket address in the form that address_parse() reads.
 *
 * @param address Socket address or address bytes.
 * @param text Zero-terminated text; not kept.
 * @param size Bytes that there are or that may be written.
 */
void address_format(const struct sockaddr_storage *address, char *text, size_t size);

#endif
