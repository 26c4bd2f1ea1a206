/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void *zeros(size_t bytes)
{
    size_t whole = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    void *memory = aligned_alloc(CACHE_LINE, whole);

    return memory != NULL ? memset(memory, 0, whole) : NULL;
}

int transport_open(const struct transport *transport, struct transport_port **port,
                   const struct port_conf *conf, const struct transport_run *run, struct err *err)
{
    struct transport_port *made = zeros(transport->port_bytes);
    int rc = made != NULL ? transport->open(made, conf, run, err)
                          : err_set(err, -ENOMEM, "%s: out of memory", conf->name);

    if (rc == 0)
        *port = made;
    else if (made != NULL)
        transport->close(made);
    return rc;
}

int transport_prepare(const struct transport *transport, struct lane **lane,
                      const struct lane_request *request, struct err *err)
{
    struct lane *made = zeros(transport->lane_bytes);
    int rc;

    if (made == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    made->request = *request;
    rc = transport->prepare(made, err);
    if (rc == 0)
        *lane = made;
    else
        transport->destroy(made);
    return rc;
}
