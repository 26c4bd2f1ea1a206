/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Questions and orders to rtnetlink(7), through libmnl, and messages kept as text.
 */
#ifndef ENGINE_BIND_RTNL_H
#define ENGINE_BIND_RTNL_H

#include <libmnl/libmnl.h>
#include <stddef.h>

#define RTNL_MESSAGE_MAX 8192

/* Sends `request` (its type, flags and body are filled in) and hands each answer to `callback`
 * (NULL: only its acknowledgement is awaited). A dump that was broken off is asked for again after
 * `data` has been given to `again`. 0, or what the kernel said. */
struct rtnl_reader {
    mnl_cb_t callback;
    void (*again)(void *data); /* NULL: nothing to forget */
    void *data;
};
int bind_rtnl_ask(struct nlmsghdr *request, const struct rtnl_reader *reader);

/* A message's body (what follows its header) as hexadecimal digits, and back into `message` (room
 * for RTNL_MESSAGE_MAX). The text is the caller's; NULL: no memory. -EINVAL: not such a text. */
char *bind_rtnl_to_text(const struct nlmsghdr *message);
int bind_rtnl_from_text(struct nlmsghdr *message, const char *text);

#endif
