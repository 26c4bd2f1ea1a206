/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What every transport of messages (tcp, verbs) checks of a lane's request in the same way.
 * `transport` is its name, `port` the port's, for the sentences.
 */
#ifndef ENGINE_REQUEST_CHECK_H
#define ENGINE_REQUEST_CHECK_H

#include "err.h"
#include "transport.h"

/* Message sizes of at least a byte each, and a load for a stream. */
int request_check_messages(const struct lane_request *request, const char *transport,
                           struct err *err);

/* Whether the lane sends on what it receives. */
bool request_forwards(const struct lane_request *request);
/* If so, one flow into one other. */
int request_check_forward(const struct lane_request *request, const char *transport,
                          const char *port, struct err *err);

#endif
