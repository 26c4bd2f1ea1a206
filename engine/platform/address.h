/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Socket addresses as text: "192.0.2.1:7600", "[2001:db8::1]:7600". Numeric only: no name is looked
 * up on a network under test.
 */
#ifndef ENGINE_ADDRESS_H
#define ENGINE_ADDRESS_H

#include "err.h"

#include <netinet/in.h>
#include <stddef.h>

#define ADDRESS_TEXT_MAX (INET6_ADDRSTRLEN + 9) /* brackets, colon, port, end */

/* 0, or -EINVAL with a sentence. */
int address_parse(const char *text, struct sockaddr_storage *address, struct err *err);
void address_format(const struct sockaddr_storage *address, char *text, size_t size);

#endif
