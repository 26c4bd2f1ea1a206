/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports over net_null: opening one leaves its process unchanged, and has limits; queues and
 * offloads on simulated devices; flow isolation on a simulated driver: calls of rte_flow are
 * intercepted (ld --wrap) and recorded, with their order and each rule byte by byte
 * (dpdk_port.txt).
 */
#include "eal.h"
#include "log.h"
#include "port_state.h"
#include "unit.h"

#include <pthread.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_lcore.h>
#include <sched.h>
#include <signal.h>

static const struct transport_run run = {.run_id = "port", .node = "port"};

/* --- opening -----------------------------------------------------------------------------------*/

static struct transport_port *open_port(const struct port_conf *conf)
{
    struct transport_port *port = NULL;
    struct err err = {""};

    if (port_open(&port, conf, &run, &err) != 0)
        fail_msg("open: %s", err.text);
    return port;
}

static const struct port_conf null_conf = {.name = "n:e0", .vdev = "net_null0,no-rx=1"};

/* The caller keeps its core, its signals and a clean file system; closing frees everything. */
TEST(opening_disturbs_nothing)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGBUS};
    uint16_t devices = rte_eth_dev_count_total();
    struct sigaction actions[2][COUNT(signals)];
    cpu_set_t cores[2];
    sigset_t masks[2];

    for (unsigned i = 0; i < 6; i++) {
        struct transport_port *port = i > 0 ? open_port(&null_conf) : NULL;

        assert_int_equal(rte_eth_dev_count_total(), devices + (port != NULL));
        pthread_getaffinity_np(pthread_self(), sizeof cores[0], &cores[i > 0]);
        pthread_sigmask(SIG_SETMASK, NULL, &masks[i > 0]);
        for (size_t k = 0; k < COUNT(signals); k++)
            sigaction(signals[k], NULL, &actions[i > 0][k]);
        if (port == NULL)
            continue;
        assert_true(CPU_EQUAL(&cores[0], &cores[1]));
        for (size_t k = 0; k < COUNT(signals); k++) {
            assert_ptr_equal(actions[0][k].sa_handler, actions[1][k].sa_handler);
            assert_int_equal(sigismember(&masks[0], signals[k]),
                             sigismember(&masks[1], signals[k]));
        }
        assert_int_not_equal(access(rte_eal_get_runtime_dir(), F_OK), 0);
        port_close(port);
        assert_int_equal(rte_eth_dev_count_total(), devices);
    }
}

/* Debian's DPDK holds 32 ports; the next one is refused, and nothing is lost. */
TEST(too_many_ports_are_refused)
{
    char names[RTE_MAX_ETHPORTS][32];
    struct transport_port *port = NULL;
    struct err err = {""};
    unsigned count = 0;

    for (; rte_eth_dev_count_total() < RTE_MAX_ETHPORTS; count++) {
        snprintf(names[count], sizeof names[count], "net_null%u", 100 + count);
        assert_int_equal(rte_eal_hotplug_add("vdev", names[count], ""), 0);
    }
    assert_int_equal(port_open(&port, &null_conf, &run, &err), -ENOSPC);
    assert_says(err.text, "pack fewer ports");
    while (count-- > 0)
        assert_int_equal(rte_eal_hotplug_remove("vdev", names[count]), 0);
    port_close(open_port(&null_conf));
}

/* The linker's names (ld --wrap) have no header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int __real_rte_thread_register(void);
static unsigned said;
static bool refuses;

int __wrap_rte_thread_register(void)
{
    return refuses ? -1 : __real_rte_thread_register();
}

void __wrap_log_print(enum log_level level, const char *format, ...)
{
    assert_int_equal(level, LOG_LEVEL_WARNING);
    assert_non_null(strstr(format, "threads at most"));
    said++;
}

static void *numbered(void *context)
{
    assert_int_equal(rte_lcore_id(), LCORE_ID_ANY);
    eal_thread();
    eal_thread();
    *(unsigned *)context = rte_lcore_id();
    return NULL;
}

/* A worker's thread gets a number of DPDK's while it lives. Where DPDK has none left the thread
 * goes on, and the log says so once. */
TEST(threads_are_numbered)
{
    for (unsigned i = 0; i < 2 * RTE_MAX_LCORE; i++) {
        unsigned number = 0;
        pthread_t thread;

        refuses = i >= 2 * RTE_MAX_LCORE - 3;
        assert_int_equal(pthread_create(&thread, NULL, numbered, &number), 0);
        pthread_join(thread, NULL);
        assert_true(refuses ? number == LCORE_ID_ANY : number < RTE_MAX_LCORE);
    }
    assert_int_equal(said, 1);
}

/* --- queues ------------------------------------------------------------------------------------*/

#define FAST_FREE RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE
#define HASHES (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP)

/* One queue has no RSS; several queues have the hash fields that the device supports. Fast free
 * gives each send queue a pool of its own, where there are as many. */
TEST(a_port_gets_the_queues_that_it_asks_for)
{
    static const struct {
        uint32_t asked;
        bool at_most;
        uint16_t receives, sends;     /* queues and */
        uint64_t offloads;            /* its */
        struct queue_layout expected; /* no queues: a refusal */
    } cases[] = {
        {0, false, 8, 8, 0, {1, 1, 0, 0}},
        {4, false, 8, 8, 0, {4, 4, 0, HASHES}},
        {4, false, 8, 8, FAST_FREE, {4, 8, FAST_FREE, HASHES}},
        {5, false, 8, 8, FAST_FREE, {5, 5, 0, HASHES}}, /* 10 send queues exceed 8 */
        {5, true, 8, 4, 0, {4, 4, 0, HASHES}},
        {5, false, 8, 4, 0, {0}},
    };

    for (EACH(c, cases)) {
        const struct rte_eth_dev_info device = {
            .driver_name = "net_made_up",
            .max_rx_queues = c->receives,
            .max_tx_queues = c->sends,
            .tx_offload_capa = c->offloads,
            .flow_type_rss_offloads = HASHES | RTE_ETH_RSS_VXLAN,
        };
        const struct port_conf conf = {
            .name = "a:e0", .queues = c->asked, .queues_at_most = c->at_most};
        struct queue_layout layout = {0};
        struct err err = {""};

        assert_int_equal(choose_queues(&layout, &conf, &device, &err),
                         c->expected.queues > 0 ? 0 : -EINVAL);
        assert_memory_equal(&layout, &c->expected, sizeof layout);
        assert_string_equal(err.text,
                            c->expected.queues > 0
                                ? ""
                                : "a:e0: queues: 5 are more than its device has (net_made_up: 4)");
    }
}

/* Rings, the forwarder's queue, a burst, and each core's cache (384 of 256, the worker's and the
 * main thread's) are full: the device still finds a buffer. */
TEST(a_forwarder_has_buffers_for_all_that_it_holds)
{
    static const uint16_t rings[][2] = {
        {1024, 1024}, {512, 512}, {4096, 4096}, {256, 1024}, {64, 64}};

    for (EACH(ring, rings)) {
        uint32_t frames = receive_pool_frames((*ring)[0], (*ring)[1]);
        uint32_t held = (*ring)[0] + (*ring)[1] + 512 + 128 + 2 * 384;

        assert_true(frames > held);
        assert_true(frames < 2 * held + 2);
        assert_int_equal(frames & (frames + 1), 0); /* rte_mempool: 2^n - 1 wastes nothing */
    }
    assert_int_equal(receive_pool_frames(1024, 1024), 4095);
}

/* --- isolation ---------------------------------------------------------------------------------*/

/* The simulated driver. */
struct driver {
    int isolate_returns; /* net_tap returns a positive number on failure; 0: it isolates */
    bool isolate_really; /* the call goes to net_null */
    enum rte_flow_item_type unknown; /* rules with this item are refused; 0 (END): none */
    int mac_add_returns;
};

static struct driver driver;
static FILE *notes;    /* its calls, a line each; NULL: none are recorded */
static unsigned rules; /* rules in force */

#define note(...) ((void)(notes != NULL && fprintf(notes, __VA_ARGS__)))

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
static void note_item(const struct rte_flow_item *item)
{
    const uint8_t *spec = item->spec, *mask = item->mask;
    size_t kind = 0;

    while (kinds[kind].type != item->type)
        assert_true(++kind < COUNT(kinds));
    note(" %s", kinds[kind].name);
    assert_null(item->last);
    assert_true((spec == NULL) == (mask == NULL));
    for (size_t i = 0; spec != NULL && mask != NULL && i < kinds[kind].size; i++) {
        assert_true(mask[i] == 0xff || (mask[i] == 0 && spec[i] == 0));
        if (mask[i] != 0 && (i == 0 || mask[i - 1] == 0))
            note("[%zu]=", i);
        if (mask[i] != 0)
            note("%02x", spec[i]);
    }
}

static void note_action(const struct rte_flow_action *action)
{
    const struct rte_flow_action_queue *queue = action[0].conf;
    const struct rte_flow_action_rss *rss = action[0].conf;

    assert_int_equal(action[1].type, RTE_FLOW_ACTION_TYPE_END);
    if (action[0].type == RTE_FLOW_ACTION_TYPE_QUEUE) {
        note(" > %u\n", queue->index);
        return;
    }
    assert_int_equal(action[0].type, RTE_FLOW_ACTION_TYPE_RSS);
    assert_true((rss->types & RTE_ETH_RSS_NONFRAG_IPV4_UDP) != 0);
    assert_int_equal(rss->key_len, 0);
    note(" > rss");
    for (uint32_t i = 0; i < rss->queue_num; i++)
        note(" %u", rss->queue[i]);
    note("\n");
}

int __real_rte_flow_isolate(uint16_t id, int set, struct rte_flow_error *error);
int __real_rte_eth_dev_configure(uint16_t id, uint16_t receives, uint16_t sends,
                                 const struct rte_eth_conf *conf);
int __real_rte_eth_dev_start(uint16_t id);
int __real_rte_eth_dev_stop(uint16_t id);

int __wrap_rte_flow_isolate(uint16_t id, int set, struct rte_flow_error *error)
{
    note("isolate %d\n", set);
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
    assert_true(attr->ingress == 1 && attr->egress == 0 && attr->group == 0 && attr->priority == 0);
    for (const struct rte_flow_item *at = items; at->type != RTE_FLOW_ITEM_TYPE_END; at++)
        if (at->type == driver.unknown) {
            rte_errno = ENOTSUP;
            error->message = "item not supported";
            return NULL;
        }
    note("rule");
    for (; items->type != RTE_FLOW_ITEM_TYPE_END; items++)
        note_item(items);
    note_action(actions);
    rules++;
    return (struct rte_flow *)(uintptr_t)rules;
}

/* The last rule is removed first. */
int __wrap_rte_flow_destroy(uint16_t id, struct rte_flow *flow, struct rte_flow_error *error)
{
    assert_int_equal((uintptr_t)flow, rules);
    rules--;
    return 0;
}

int __wrap_rte_eth_dev_configure(uint16_t id, uint16_t receives, uint16_t sends,
                                 const struct rte_eth_conf *conf)
{
    note("configure\n");
    return __real_rte_eth_dev_configure(id, receives, sends, conf);
}

int __wrap_rte_eth_dev_start(uint16_t id)
{
    note("start\n");
    return __real_rte_eth_dev_start(id);
}

int __wrap_rte_eth_dev_stop(uint16_t id)
{
    note("stop with %u rules\n", rules);
    return __real_rte_eth_dev_stop(id);
}

int __wrap_rte_eth_promiscuous_enable(uint16_t id)
{
    note("promiscuous\n");
    return 0;
}

int __wrap_rte_eth_dev_mac_addr_add(uint16_t id, struct rte_ether_addr *mac, uint32_t pool)
{
    assert_int_equal(pool, 0);
    note("mac %02x:%02x:%02x:%02x:%02x:%02x\n", mac->addr_bytes[0], mac->addr_bytes[1],
         mac->addr_bytes[2], mac->addr_bytes[3], mac->addr_bytes[4], mac->addr_bytes[5]);
    return driver.mac_add_returns;
}

#define NULL_DEVICE "net_null0,no-rx=1"
#define MAC "02:00:00:00:00:01"
#define V4 "198.19.0.1/16"
#define V6 "2001:2:0:2::1/64"
#define BOTH .vdev = NULL_DEVICE, .mac = "keep", .ipv4 = V4, .ipv6 = V6, .shared = true
#define UNKNOWN(item) .driver = {.unknown = RTE_FLOW_ITEM_TYPE_##item}

/* A driver's behaviour while a port is opened and closed. */
static const struct {
    const char *what;
    struct port_conf conf;
    struct driver driver;
} cases[] = {
    {"rules stand between start and stop", .conf = {BOTH}},
    {"IP is spread over the queues",
     .conf = {.vdev = NULL_DEVICE, .ipv4 = V4, .shared = true, .queues = 3}},
    {"another MAC is added", .conf = {.vdev = NULL_DEVICE, .mac = MAC, .shared = true}},
    {"a port that is not shared has no rules",
     .conf = {.vdev = NULL_DEVICE, .mac = MAC, .ipv4 = V4}},
    {"no isolation: refused before it starts", .conf = {BOTH},
     .driver = {.isolate_returns = ENOTSUP}},
    {"the device's own answer", .conf = {BOTH}, .driver = {.isolate_really = true}},
    /* The device must match the fields of the load's frames, and of a gateway's requests where
     * there is one. */
    {"no VLAN", .conf = {BOTH}, UNKNOWN(VLAN)},
    {"no IPv4", .conf = {BOTH}, UNKNOWN(IPV4)},
    {"no IPv6", .conf = {BOTH}, UNKNOWN(IPV6)},
    {"no ARP for a gateway", .conf = {BOTH, .gateway = "198.19.0.254"}, UNKNOWN(ARP_ETH_IPV4)},
    {"no ND for a gateway", .conf = {BOTH, .gateway = "2001:2:0:2::fe"}, UNKNOWN(ICMP6_ND_NS)},
    {"no ICMPv6 for a gateway", .conf = {BOTH, .gateway = "2001:2:0:2::fe"}, UNKNOWN(ICMP6)},
    {"no ARP", .conf = {BOTH}, UNKNOWN(ARP_ETH_IPV4)},
    {"no ND", .conf = {BOTH}, UNKNOWN(ICMP6_ND_NS)},
    {"an address of the kernel",
     .conf = {.vdev = NULL_DEVICE, .ipv4 = "127.0.0.1/8", .shared = true}},
    {"no second MAC", .conf = {.vdev = NULL_DEVICE, .mac = MAC, .shared = true},
     .driver = {.mac_add_returns = -ENOTSUP}},
};

TEST(each_port_takes_its_frames_alone)
{
    char *text;
    size_t size;

    notes = open_memstream(&text, &size);
    for (EACH(c, cases)) {
        struct transport_port *port = NULL;
        struct port_conf conf = c->conf;
        struct port_facts facts = {0};
        struct rte_ether_addr own;
        struct err err = {""};
        int rc;

        driver = c->driver;
        rules = 0;
        conf.name = "a:e0";
        note("\n[%s]\n", c->what);
        rc = port_open(&port, &conf, &run, &err);
        if (rc == 0) {
            port_facts(port, &facts, false);
            note("open with %u rules%s\n", rules, port->spreads ? ", spread" : "");
            assert_int_equal(strstr(facts.offloads, "ISOLATED") != NULL, rules > 0);
            assert_int_equal(rte_eth_macaddr_get(port->id, &own), 0);
            if (conf.mac == NULL) /* the device's own */
                assert_memory_equal(port->responder.mac, own.addr_bytes, FRAME_MAC);
            port_close(port);
        }
        if (rc < 0)
            note("%s: %s\n", strerrorname_np(-rc), err.text);
        assert_int_equal(rules, 0);
    }
    fclose(notes);
    notes = NULL;
    unit_same(text);
    free(text);
}
