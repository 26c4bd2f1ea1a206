/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flow isolation without a device that has it: a port is opened and closed over net_null, and what
 * would reach a driver's rte_flow is caught on the way (ld --wrap) and written down: the order of
 * calls, and each rule byte by byte.
 */
#include "port_state.h"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOTES_MAX 64
#define NOTE_MAX 96

/* The driver that is played, and what it was asked. */
static struct {
    int isolate_returns;
    bool isolate_really;             /* net_null is asked */
    enum rte_flow_item_type unknown; /* rules with this item are refused; END: none */
    int mac_add_returns;
    char notes[NOTES_MAX][NOTE_MAX];
    unsigned count;
    unsigned rules; /* that stand */
    bool promiscuous;
} driver;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list list;

    assert_true(driver.count < NOTES_MAX);
    va_start(list, format);
    vsnprintf(driver.notes[driver.count++], NOTE_MAX, format, list);
    va_end(list);
}

static const struct {
    enum rte_flow_item_type type;
    const char *name;
    size_t size;
} kinds[] = {
    {RTE_FLOW_ITEM_TYPE_ETH, "eth", sizeof(struct rte_flow_item_eth)},
    {RTE_FLOW_ITEM_TYPE_VLAN, "vlan", sizeof(struct rte_flow_item_vlan)},
    {RTE_FLOW_ITEM_TYPE_IPV4, "ipv4", sizeof(struct rte_flow_item_ipv4)},
    {RTE_FLOW_ITEM_TYPE_IPV6, "ipv6", sizeof(struct rte_flow_item_ipv6)},
    {RTE_FLOW_ITEM_TYPE_UDP, "udp", sizeof(struct rte_flow_item_udp)},
    {RTE_FLOW_ITEM_TYPE_ARP_ETH_IPV4, "arp", sizeof(struct rte_flow_item_arp_eth_ipv4)},
    {RTE_FLOW_ITEM_TYPE_ICMP6, "icmp6", sizeof(struct rte_flow_item_icmp6)},
    {RTE_FLOW_ITEM_TYPE_ICMP6_ND_NS, "nd_ns", sizeof(struct rte_flow_item_icmp6_nd_ns)},
};

/* "ipv4[16]=c6130001": the item's bytes from that offset are compared, and no other. */
static size_t describe_item(char *text, size_t size, const struct rte_flow_item *item)
{
    const uint8_t *spec = item->spec, *mask = item->mask;
    size_t used = 0;
    size_t kind = 0;

    while (kinds[kind].type != item->type)
        assert_true(++kind < sizeof kinds / sizeof kinds[0]);
    used += (size_t)snprintf(text, size, " %s", kinds[kind].name);
    assert_null(item->last);
    assert_true((spec == NULL) == (mask == NULL));
    for (size_t i = 0; spec != NULL && mask != NULL && i < kinds[kind].size; i++) {
        assert_true(mask[i] == 0xff || (mask[i] == 0 && spec[i] == 0));
        if (mask[i] == 0)
            continue;
        if (i == 0 || mask[i - 1] == 0)
            used += (size_t)snprintf(text + used, size - used, "[%zu]=", i);
        used += (size_t)snprintf(text + used, size - used, "%02x", spec[i]);
    }
    return used;
}

static void describe_action(char *text, size_t size, const struct rte_flow_action *action)
{
    const struct rte_flow_action_queue *queue = action[0].conf;
    const struct rte_flow_action_rss *rss = action[0].conf;
    size_t used;

    assert_int_equal(action[1].type, RTE_FLOW_ACTION_TYPE_END);
    if (action[0].type == RTE_FLOW_ACTION_TYPE_QUEUE) {
        snprintf(text, size, " > %u", queue->index);
        return;
    }
    assert_int_equal(action[0].type, RTE_FLOW_ACTION_TYPE_RSS);
    assert_true((rss->types & RTE_ETH_RSS_NONFRAG_IPV4_UDP) != 0);
    assert_int_equal(rss->key_len, 0);
    used = (size_t)snprintf(text, size, " > rss");
    for (uint32_t i = 0; i < rss->queue_num; i++)
        used += (size_t)snprintf(text + used, size - used, " %u", rss->queue[i]);
}

/* The linker's names (ld --wrap) have no header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int __real_rte_flow_isolate(uint16_t id, int set, struct rte_flow_error *error);
int __real_rte_eth_dev_configure(uint16_t id, uint16_t receives, uint16_t sends,
                                 const struct rte_eth_conf *conf);
int __real_rte_eth_dev_start(uint16_t id);
int __real_rte_eth_dev_stop(uint16_t id);

int __wrap_rte_flow_isolate(uint16_t id, int set, struct rte_flow_error *error)
{
    note("isolate %d", set);
    if (driver.isolate_really)
        return __real_rte_flow_isolate(id, set, error);
    if (driver.isolate_returns != 0) {
        rte_errno = ENOTSUP;
        error->message = "not this one";
    }
    return driver.isolate_returns;
}

struct rte_flow *__wrap_rte_flow_create(uint16_t id, const struct rte_flow_attr *attr,
                                        const struct rte_flow_item items[],
                                        const struct rte_flow_action actions[],
                                        struct rte_flow_error *error)
{
    char text[NOTE_MAX] = "rule";
    size_t used = strlen(text);

    assert_true(attr->ingress == 1 && attr->egress == 0 && attr->group == 0 && attr->priority == 0);
    for (; items->type != RTE_FLOW_ITEM_TYPE_END; items++) {
        if (items->type == driver.unknown) {
            rte_errno = ENOTSUP;
            error->message = "item not supported";
            return NULL;
        }
        used += describe_item(text + used, sizeof text - used, items);
    }
    describe_action(text + used, sizeof text - used, actions);
    note("%s", text);
    driver.rules++;
    return (struct rte_flow *)(uintptr_t)driver.rules;
}

/* The last one made goes first. */
int __wrap_rte_flow_destroy(uint16_t id, struct rte_flow *flow, struct rte_flow_error *error)
{
    assert_int_equal((uintptr_t)flow, driver.rules);
    driver.rules--;
    return 0;
}

int __wrap_rte_eth_dev_configure(uint16_t id, uint16_t receives, uint16_t sends,
                                 const struct rte_eth_conf *conf)
{
    note("configure");
    return __real_rte_eth_dev_configure(id, receives, sends, conf);
}

int __wrap_rte_eth_dev_start(uint16_t id)
{
    note("start");
    return __real_rte_eth_dev_start(id);
}

int __wrap_rte_eth_dev_stop(uint16_t id)
{
    note("stop with %u rules", driver.rules);
    return __real_rte_eth_dev_stop(id);
}

int __wrap_rte_eth_promiscuous_enable(uint16_t id)
{
    driver.promiscuous = true;
    return 0;
}

int __wrap_rte_eth_dev_mac_addr_add(uint16_t id, struct rte_ether_addr *mac, uint32_t pool)
{
    assert_int_equal(pool, 0);
    note("mac %02x:%02x:%02x:%02x:%02x:%02x", mac->addr_bytes[0], mac->addr_bytes[1],
         mac->addr_bytes[2], mac->addr_bytes[3], mac->addr_bytes[4], mac->addr_bytes[5]);
    return driver.mac_add_returns;
}

static const struct transport_run run = {.run_id = "isolate", .node = "isolate"};

/* A shared port with both addresses; each test changes what it is about. */
static struct port_conf a_port(void)
{
    return (struct port_conf){.name = "a:e0",
                              .vdev = "net_null0,no-rx=1",
                              .mac = "keep",
                              .ipv4 = "198.19.0.1/16",
                              .ipv6 = "2001:2:0:2::1/64",
                              .shared = true};
}

static int fresh(void **state)
{
    memset(&driver, 0, sizeof driver);
    driver.unknown = RTE_FLOW_ITEM_TYPE_END;
    return 0;
}

static struct transport_port *opened(const struct port_conf *conf)
{
    struct transport_port *port = NULL;
    struct err err = {""};

    if (port_open(&port, conf, &run, &err) != 0)
        fail_msg("%s", err.text);
    return port;
}

static void refused(const struct port_conf *conf, int code, const char *sentence)
{
    struct transport_port *port = NULL;
    struct err err = {""};

    assert_int_equal(port_open(&port, conf, &run, &err), code);
    assert_null(port);
    assert_string_equal(err.text, sentence);
    assert_int_equal(driver.rules, 0);
    assert_false(driver.promiscuous);
}

static void noted(const char *const *expected)
{
    unsigned count = 0;

    for (; expected[count] != NULL; count++) {
        assert_true(count < driver.count);
        assert_string_equal(driver.notes[count], expected[count]);
    }
    assert_int_equal(driver.count, count);
}

#define ADDRESS6 "20010002000000020000000000000001"

static void rules_stand_between_start_and_stop(void **state)
{
    static const char *const expected[] = {
        "isolate 1",
        "configure",
        "start",
        "rule eth[12]=88b5 > 0",
        "rule eth vlan[2]=88b5 > 0",
        "rule eth[12]=0800 ipv4[16]=c6130001 udp[2]=0009 > 0",
        "rule eth vlan[2]=0800 ipv4[16]=c6130001 udp[2]=0009 > 0",
        "rule eth[12]=86dd ipv6[24]=" ADDRESS6 " udp[2]=0009 > 0",
        "rule eth vlan[2]=86dd ipv6[24]=" ADDRESS6 " udp[2]=0009 > 0",
        "rule eth[12]=0806 arp[28]=c6130001 > 0",
        "rule eth vlan[2]=0806 arp[28]=c6130001 > 0",
        "rule eth[12]=86dd ipv6 nd_ns[8]=" ADDRESS6 " > 0",
        "rule eth vlan[2]=86dd ipv6 nd_ns[8]=" ADDRESS6 " > 0",
        "rule eth[12]=86dd ipv6[24]=" ADDRESS6 " icmp6 > 0",
        "rule eth vlan[2]=86dd ipv6[24]=" ADDRESS6 " icmp6 > 0",
        "stop with 0 rules",
        NULL,
    };
    struct port_conf conf = a_port();
    struct transport_port *port = opened(&conf);
    struct port_facts facts = {0};

    assert_int_equal(driver.rules, 12);
    port_facts(port, &facts, false);
    assert_non_null(strstr(facts.offloads, "ISOLATED"));
    port_close(port);
    noted(expected);
    assert_false(driver.promiscuous);
}

static void ip_is_spread_over_the_queues(void **state)
{
    struct port_conf conf = a_port();
    struct transport_port *port;

    conf.queues = 3;
    conf.ipv6 = NULL;
    port = opened(&conf);
    assert_true(port->spreads);
    assert_int_equal(driver.rules, 6);
    assert_string_equal(driver.notes[3], "rule eth[12]=88b5 > 0");
    assert_string_equal(driver.notes[5],
                        "rule eth[12]=0800 ipv4[16]=c6130001 udp[2]=0009 > rss 0 1 2");
    assert_string_equal(driver.notes[7], "rule eth[12]=0806 arp[28]=c6130001 > 0");
    port_close(port);
}

static void others_have_no_rules(void **state)
{
    static const char *const expected[] = {"configure", "start", "stop with 0 rules", NULL};
    struct port_conf conf = a_port();
    struct port_facts facts = {0};
    struct transport_port *port;

    conf.shared = false;
    conf.mac = "02:00:00:00:00:01";
    port = opened(&conf);
    port_facts(port, &facts, false);
    assert_null(strstr(facts.offloads, "ISOLATED"));
    assert_true(driver.promiscuous);
    port_close(port);
    noted(expected);
}

/* net_tap returns a positive number when it fails. */
#define NOT_ISOLATED(why)                                                                          \
    "a:e0: `shared: true` allows dpdk only where the driver isolates flows (rte_flow isolated "    \
    "mode), which net_null does not (" why "): use tcp or verbs there, or a port that nothing "    \
    "else needs"

/* net_tap returns a positive number when it fails; net_null itself isolates nothing. */
static void a_driver_without_isolation_is_refused_before_it_starts(void **state)
{
    static const char *const expected[] = {"isolate 1", "stop with 0 rules", NULL};
    struct port_conf conf = a_port();

    driver.isolate_returns = ENOTSUP;
    refused(&conf, -ENOTSUP, NOT_ISOLATED("not this one"));
    noted(expected);
    driver.isolate_really = true;
    refused(&conf, -ENOSYS, NOT_ISOLATED("Function not implemented"));
}

/* What the load needs must be told apart; what a gateway asks, where there is one. */
static void what_is_needed_must_be_told_apart(void **state)
{
    static const struct {
        const char *gateway;
        enum rte_flow_item_type unknown;
        const char *what;
    } cases[] = {
        {NULL, RTE_FLOW_ITEM_TYPE_VLAN, "EtherType 0x88b5"},
        {NULL, RTE_FLOW_ITEM_TYPE_IPV4, "UDP to its IPv4 address"},
        {NULL, RTE_FLOW_ITEM_TYPE_IPV6, "UDP to its IPv6 address"},
        {"198.19.0.254", RTE_FLOW_ITEM_TYPE_ARP_ETH_IPV4, "ARP for its address"},
        {"2001:2:0:2::fe", RTE_FLOW_ITEM_TYPE_ICMP6_ND_NS,
         "neighbour solicitations for its address"},
        {"2001:2:0:2::fe", RTE_FLOW_ITEM_TYPE_ICMP6, "ICMPv6 to its address"},
    };
    struct port_conf conf = a_port();
    char sentence[256];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        conf.gateway = cases[i].gateway;
        driver.unknown = cases[i].unknown;
        snprintf(sentence, sizeof sentence,
                 "a:e0: net_null can't tell %s from the frames of those who share the port (item "
                 "not supported): %suse tcp or verbs there, or a port that nothing else needs",
                 cases[i].what, conf.gateway != NULL ? "leave its `gateway` out, " : "");
        refused(&conf, -ENOTSUP, sentence);
    }
}

static void without_a_gateway_nobody_asks(void **state)
{
    struct port_conf conf = a_port();
    struct transport_port *port;

    driver.unknown = RTE_FLOW_ITEM_TYPE_ARP_ETH_IPV4;
    port = opened(&conf);
    assert_int_equal(driver.rules, 10);
    port_close(port);
    driver.unknown = RTE_FLOW_ITEM_TYPE_ICMP6_ND_NS;
    port = opened(&conf);
    assert_int_equal(driver.rules, 10);
    port_close(port);
}

static void an_address_of_the_kernels_is_refused(void **state)
{
    struct port_conf conf = a_port();

    conf.ipv4 = "127.0.0.1/8";
    refused(&conf, -EADDRINUSE,
            "a:e0: its address 127.0.0.1/8 is the kernel's too, on lo: raw frames of a shared port "
            "need one that is theirs alone");
}

static void another_mac_is_added_not_listened_for(void **state)
{
    struct port_conf conf = a_port();
    struct transport_port *port;

    conf.mac = "02:00:00:00:00:01";
    port = opened(&conf);
    assert_string_equal(driver.notes[driver.count - 1], "mac 02:00:00:00:00:01");
    assert_false(driver.promiscuous);
    port_close(port);
    driver.mac_add_returns = -ENOTSUP;
    refused(&conf, -ENOTSUP,
            "a:e0: it is shared, so it can't be promiscuous, and net_null takes no second MAC "
            "(Operation not supported): say `address: keep` for the device's own");
}

static void no_mac_asked_for_is_the_devices_own(void **state)
{
    struct port_conf conf = a_port();
    struct transport_port *port;
    struct rte_ether_addr own;

    conf.mac = NULL;
    port = opened(&conf);
    assert_int_equal(rte_eth_macaddr_get(port->id, &own), 0);
    assert_memory_equal(port->responder.mac, own.addr_bytes, FRAME_MAC);
    port_close(port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rules_stand_between_start_and_stop, fresh),
        cmocka_unit_test_setup(ip_is_spread_over_the_queues, fresh),
        cmocka_unit_test_setup(others_have_no_rules, fresh),
        cmocka_unit_test_setup(a_driver_without_isolation_is_refused_before_it_starts, fresh),
        cmocka_unit_test_setup(what_is_needed_must_be_told_apart, fresh),
        cmocka_unit_test_setup(without_a_gateway_nobody_asks, fresh),
        cmocka_unit_test_setup(an_address_of_the_kernels_is_refused, fresh),
        cmocka_unit_test_setup(another_mac_is_added_not_listened_for, fresh),
        cmocka_unit_test_setup(no_mac_asked_for_is_the_devices_own, fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
