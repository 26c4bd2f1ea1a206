/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane.h"

#include <errno.h>
#include <string.h>

static void fault(struct tcp_lane *lane, const struct sockaddr_storage *partner, uint32_t rank,
                  int why)
{
    char here[IP_ADDRESS_TEXT], there[IP_ADDRESS_TEXT];

    err_set(&lane->lane.error, -EPIPE, "the connection between %s and %s (rank %u) broke: %s",
            ip_address_text(&lane->port->ip.address, here), ip_address_text(partner, there), rank,
            why ? strerror(why) : "the partner closed it too early");
}

void tcp_fault_out(struct tcp_lane *lane, const struct tcp_out *out, int why)
{
    fault(lane, &out->flow->partner, out->flow->flow->dst, why);
}

void tcp_fault_in(struct tcp_lane *lane, const struct tcp_in *in, int why)
{
    struct sockaddr_storage partner;

    ip_port_partner(&lane->port->ip, &in->flow->partner, &partner);
    fault(lane, &partner, in->flow->src, why);
}

int tcp_refuse_out(const struct tcp_lane *lane, const struct tcp_out *out, int code,
                   const char *why, struct err *err)
{
    char from[IP_ADDRESS_TEXT], to[IP_ADDRESS_TEXT];

    return err_set(err, code, "%s: no connection from %s to %s (rank %u): %s",
                   lane->port->ip.conf->name, ip_address_text(&lane->port->ip.address, from),
                   ip_address_text(&out->flow->partner, to), out->flow->flow->dst, why);
}

int tcp_refuse_in(const struct tcp_lane *lane, const struct tcp_in *in, int code, struct err *err)
{
    struct sockaddr_storage partner;
    char from[IP_ADDRESS_TEXT] = "?", to[IP_ADDRESS_TEXT];

    if (ip_port_partner(&lane->port->ip, &in->flow->partner, &partner))
        ip_address_text(&partner, from);
    return err_set(err, code, "%s: no connection came from rank %u (%s) to %s",
                   lane->port->ip.conf->name, in->flow->src, from,
                   ip_address_text(&lane->port->ip.address, to));
}
