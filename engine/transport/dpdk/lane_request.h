/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a lane may be asked for.
 */
#ifndef ENGINE_DPDK_LANE_REQUEST_H
#define ENGINE_DPDK_LANE_REQUEST_H

#include "lane_state.h"

/* -EINVAL, -ENOTSUP with the sentence. */
int lane_check_request(const struct lane_request *request, struct err *err);
/* -EINVAL: `what`, of the request's port. */
int lane_refuse(struct err *err, const struct lane_request *request, const char *what);

#endif
