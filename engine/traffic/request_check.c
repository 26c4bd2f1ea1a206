/* SPDX-License-Identifier: BSD-3-Clause */
#include "request_check.h"

#include <errno.h>

int request_check_messages(const struct lane_request *request, const char *transport,
                           struct err *err)
{
    const struct phase *phase = request->phase;
    const struct load *load = &phase->load;

    if (phase->size_count == 0 || phase->size_count > TRANSPORT_SIZES_MAX)
        return err_set(err, -EINVAL, "%s: %u message sizes; valid are 1 to %d", transport,
                       phase->size_count, TRANSPORT_SIZES_MAX);
    for (uint32_t i = 0; i < phase->size_count; i++)
        if (phase->sizes[i] == 0)
            return err_set(err, -EINVAL, "%s: a message of 0 bytes; the minimum is 1", transport);
    if (phase->traffic == TRAFFIC_STREAM && !load->unlimited && load->rate_bps <= 0 &&
        load->rate_fps <= 0)
        return err_set(err, -EINVAL, "%s: a stream needs a load", transport);
    return 0;
}

bool request_forwards(const struct lane_request *request)
{
    for (uint32_t i = 0; i < request->send_count; i++)
        if (request->sends[i].role == PATTERN_FORWARD)
            return true;
    return false;
}

int request_check_forward(const struct lane_request *request, const char *transport,
                          const char *port, struct err *err)
{
    if (!request_forwards(request) || (request->send_count == 1 && request->receive_count == 1))
        return 0;
    return err_set(err, -EINVAL,
                   "%s: %s forwards one flow into one other, not %u into %u in a phase", port,
                   transport, request->receive_count, request->send_count);
}
