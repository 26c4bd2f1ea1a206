/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A node's ports, in a transport made for the test: what is known of a port's line.
 */
#include "clock.h"
#include "node.h"
#include "unit.h"

static struct port_facts now;

static void read_facts(struct transport_port *port, struct port_facts *facts, bool counters)
{
    *facts = now;
}

/* A device may not know its speed, which partners are told, until it has a link. */
TEST(a_line_is_known_when_its_link_comes_up)
{
    static const struct transport transport = {.name = "fake", .facts = read_facts};
    static struct node_port port;
    struct node node = {.ports = &port, .port_count = 1};

    port = (struct node_port){.transport = &transport, .down_ns = clock_now()};
    for (int up = 0; up < 2; up++) {
        now = (struct port_facts){
            .link_up = up, .link_bps = up ? 1000000000 : 0, .address = {.size = up ? 8 : 4}};
        assert_int_equal(ports_watch_links(&node), 0);
        assert_int_equal(port.line_rate_bps, now.link_bps);
        assert_int_equal(port.address.size, up ? 8 : 0);
    }
    now = (struct port_facts){0}; /* nor once it has lost it */
    port.had_link = false;        /* no record of it is written here */
    assert_int_equal(ports_watch_links(&node), 0);
    assert_int_equal(port.line_rate_bps, 1000000000);
}
