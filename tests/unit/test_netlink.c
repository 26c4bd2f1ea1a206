/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The netlink client against a peer whose answers break the kernel's rules: cut off, malformed,
 * with an error, interrupted, out of sequence. The peer is the other end of a pair of sockets, and
 * writes its answers before the request. Then the client against the kernel itself.
 */
#include "netlink.h"
#include "unit.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/socket.h>

#define ROOM 40000
#define LINK sizeof(struct ifinfomsg)

/* A message of the answer; an end has a code, and may belong to an earlier request. */
struct said {
    uint16_t type;
    size_t body;
    int code;
    uint16_t flags;
    bool is_old, ends_datagram;
};

static int client, peer, noted;
static uint32_t sequence; /* of the next request */
static _Alignas(struct nlmsghdr) uint8_t datagram[ROOM];
static size_t used;

static int note(const struct nlmsghdr *answer, void *data)
{
    noted++;
    return 0;
}

static int dump(void)
{
    struct netlink_request request;

    netlink_begin(&request, RTM_GETLINK, NLM_F_DUMP, LINK);
    return netlink_ask(client, &request, note, NULL);
}

static struct nlmsghdr *put(const struct said *said)
{
    struct nlmsghdr *message = mnl_nlmsg_put_header(datagram + used);

    message->nlmsg_type = said->type;
    message->nlmsg_flags = NLM_F_MULTI | said->flags;
    message->nlmsg_seq = sequence - said->is_old;
    if (said->body > 0)
        memcpy(mnl_nlmsg_put_extra_header(message, said->body), &said->code, sizeof said->code);
    used += NLMSG_ALIGN(message->nlmsg_len);
    return message;
}

static void flush(size_t less)
{
    assert_int_equal(send(peer, datagram, used - less, 0), used - less);
    used = 0;
}

/* Requests of a process have the numbers from 1 on. */
static int begin(void **state)
{
    struct nlmsghdr sent;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    client = pair[0];
    peer = pair[1];
    used = 0;
    (void)dump();
    assert_true(recv(peer, &sent, sizeof sent, MSG_DONTWAIT) == (ssize_t)sizeof sent);
    sequence = sent.nlmsg_seq + 1;
    noted = 0;
    return 0;
}

static int end(void **state)
{
    close(client);
    close(peer);
    return 0;
}

#define SAID(kind, bytes, ...) ((struct said){.type = (kind), .body = (bytes), __VA_ARGS__})
#define A_LINK SAID(RTM_NEWLINK, LINK)
#define DONE SAID(NLMSG_DONE, 4)
TEST(each_answer_is_judged)
{
    static const struct {
        const char *what;
        struct said said[4]; /* in one datagram unless a message starts a new one */
        size_t less;         /* bytes that the last message lacks */
        int code, count;     /* the result; links that the reader got */
    } cases[] = {
        {"two datagrams", {A_LINK, SAID(RTM_NEWLINK, LINK, .ends_datagram = true), DONE}, 0, 0, 2},
        {"no end", {A_LINK}, 0, -EPROTO, 1},
        {"cut off", {A_LINK, A_LINK}, 4, -EPROTO, 1},
        {"larger than the buffer", {SAID(RTM_NEWLINK, ROOM - 64)}, 0, -EPROTO, 0},
        {"a link that is too short", {SAID(RTM_NEWLINK, 4), DONE}, 0, -EPROTO, 0},
        {"an error", {SAID(NLMSG_ERROR, 20, .code = -EPERM)}, 0, -EPERM, 0},
        {"an error without its code", {SAID(NLMSG_ERROR, 0)}, 0, -EPROTO, 0},
        {"a dump that failed", {A_LINK, SAID(NLMSG_DONE, 4, .code = -EMSGSIZE)}, 0, -EMSGSIZE, 1},
        {"that was interrupted",
         {A_LINK, SAID(RTM_NEWLINK, LINK, .flags = NLM_F_DUMP_INTR), A_LINK, DONE},
         0,
         -EINTR,
         1},
        {"the rest of an earlier answer",
         {SAID(RTM_NEWLINK, LINK, .is_old = true),
          SAID(NLMSG_DONE, 4, .code = -EMSGSIZE, .is_old = true), DONE},
         0,
         0,
         0},
    };

    for (EACH(c, cases)) {
        int code;

        begin(state);
        for (size_t k = 0; k < 4 && c->said[k].type != 0; k++) {
            put(&c->said[k]);
            if (c->said[k].ends_datagram)
                flush(0);
        }
        flush(c->less);
        code = dump();
        if (code != c->code || noted != c->count)
            fail_msg("%s: %d, %d links", c->what, code, noted);
        end(state);
    }
}

/* An attribute that is missing, too short, or reaches beyond its message counts as missing; in the
 * last case the whole answer is malformed. */
TEST_BETWEEN(attributes_are_read_or_missing, begin, end)
{
    const struct said link = A_LINK;
    struct nlmsghdr *message = put(&link);
    uint8_t mac[6] = {0};
    char name[4];

    mnl_attr_put_u32(message, IFLA_MTU, 1300);
    mnl_attr_put(message, IFLA_MASTER, 2, "ab"); /* too short for a number */
    mnl_attr_put(message, IFLA_IFNAME, 7, "abcdefg");
    mnl_attr_put(message, IFLA_ADDRESS, 5, "12345");
    assert_int_equal(netlink_u32(netlink_find(message, LINK, IFLA_MTU), 7), 1300);
    assert_int_equal(netlink_u32(netlink_find(message, LINK, IFLA_MASTER), 7), 7);
    assert_int_equal(netlink_u32(netlink_find(message, LINK, IFLA_LINK), 7), 7);
    netlink_text(netlink_find(message, LINK, IFLA_IFNAME), name, sizeof name);
    assert_string_equal(name, "abc");
    netlink_text(NULL, name, sizeof name);
    assert_string_equal(name, "");
    assert_false(netlink_copy(netlink_find(message, LINK, IFLA_ADDRESS), mac, sizeof mac));
    message->nlmsg_len -= 4;
    assert_null(netlink_find(message, LINK, IFLA_ADDRESS));
    used = message->nlmsg_len;
    flush(0);
    assert_int_equal(dump(), -EPROTO);
}

/* The kernel counts frames that the host drops, and frames without a carrier, in tx_dropped. */
TEST(drops_without_a_carrier_are_not_the_hosts)
{
    static const struct {
        uint64_t tx_dropped;
        uint32_t downs;
        bool running;
        uint64_t host, no_carrier;
    } readings[] = {
        {5, 1, true, 0, 0},    {8, 1, true, 3, 0},
        {20, 2, true, 3, 12}, /* the carrier was lost, and is back */
        {21, 2, true, 4, 12},  {30, 3, false, 4, 21},
        {40, 3, false, 4, 31}, {41, 3, true, 4, 32}, /* the carrier came back in between */
        {42, 3, true, 5, 32},
    };
    struct link_drops drops;

    for (size_t i = 0; i < COUNT(readings); i++) {
        struct link_state now = {.flags = readings[i].running ? IFF_UP | IFF_RUNNING : IFF_UP,
                                 .carrier_downs = readings[i].downs};

        now.stats.tx_dropped = readings[i].tx_dropped;
        if (i == 0)
            link_drops_begin(&drops, &now);
        link_drops_update(&drops, &now);
        assert_int_equal(drops.host, readings[i].host);
        assert_int_equal(drops.no_carrier, readings[i].no_carrier);
    }
}
