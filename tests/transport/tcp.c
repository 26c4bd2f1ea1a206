/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over tcp in namespaces: tcp [KEY=VALUE...].
 */
#include "battery.h"
#include "netlab.h"

#include <stdint.h>

#include <cmocka.h>

extern const struct transport transport_tcp;

#define PORTS 4

static const char *make(struct port_conf *confs)
{
    return netlab_make_ports(confs, PORTS, 1500);
}

static const struct battery_refusal refusals[] = {
    {.options = "streams=2", .message = true, .says = "uses only one stream"},
    {.options = "streams=2", .schedule = true, .says = "a step's message uses only one"},
    {.options = "streams=1", .message = true, .forwards = true, .says = "can't be forwarded"},
    {.forwards = true, .says = "can forward one received flow as one"},
    {.options = "congestion=warp", .says = "available: "},
    {.options = "send_buffer=4294967295", .says = "net.core.wmem_max"},
    {.options = "receive_buffer=4294967295", .says = "net.core.rmem_max"},
    {.says = NULL},
};

static const struct battery_closed closed[] = {
    {{.iface = NULL}, "needs an interface"},
    {{.iface = "nosuch0"}, "no interface nosuch0"},
    {{.tcp_address = "198.18.77.1"}, "198.18.77.1 is not on any interface"},
    {{.iface = "lo", .tcp_address = "198.18.77.1"}, "not on interface lo"},
    {{.iface = "lo", .tcp_address = "1.2.3"}, "not an IPv4 or IPv6 address"},
    {.says = NULL},
};

int main(int argc, char **argv)
{
    return battery_main(
        &(struct battery_subject){
            .transport = &transport_tcp,
            .what = "tcp between namespaces",
            .ports = PORTS,
            .make = make,
            .waiting = "streams=1",
            .sizes = {1, 16, 100, 1448, 8192},
            .refusals = refusals,
            .closed = closed,
            .unlimited = 10000000,
            .counted_bytes = 65536,
        },
        argc, argv);
}
