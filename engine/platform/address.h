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
#include <stdbool.h>

#define ADDRESS_TEXT_MAX (INET6_ADDRSTRLEN + 9) /**< brackets, colon, port, end */

/**
 * @brief Parse a numeric socket address.
 *
 * @param text Zero-terminated text; not kept.
 * @param[out] address Socket address.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0; -EINVAL: no numeric address and port, with an error message.
 */
int address_parse(const char *text, struct sockaddr_storage *address, struct err *err);
/**
 * @brief Return the bytes of an IPv4 or IPv6 address, without its port.
 *
 * @param address Socket address of either family.
 * @return 4 or 16 bytes, inside of `address`.
 */
const void *address_bytes(const void *address);

/**
 * @brief Return whether two socket addresses have the same family and the same address bytes; their
 * ports may differ.
 *
 * @param a Socket address.
 * @param b Socket address; of families other than IP, too.
 * @return True: family and address are equal.
 */
bool address_same(const void *a, const void *b);

/**
 * @brief Write a socket address in the form that address_parse() reads.
 *
 * @param address Socket address.
 * @param[out] text Address and port.
 * @return `text`.
 */
const char *address_text(const struct sockaddr_storage *address, char text[ADDRESS_TEXT_MAX]);

#endif
