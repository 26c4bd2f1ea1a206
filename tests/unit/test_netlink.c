/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The netlink client against a peer that answers as the kernel must not: cut off, malformed, with
 * an error, interrupted, out of sequence. The peer is the other end of a pair of sockets, whose
 * answers are there before the request; and against the kernel itself.
 */
#include "netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM 40000

static int client, peer;
static uint32_t next_sequence; /* of the next request */
static _Alignas(struct nlmsghdr) uint8_t datagram[ROOM];
static size_t used;

/* What a reader has been given. */
static struct seen {
    int count;
    int fails_at; /* the answer that it refuses; 0: none */
} seen;

static int note(const struct nlmsghdr *answer, void *data)
{
    struct seen *given = data;

    return ++given->count == given->fails_at ? -ENOMEM : 0;
}

/* Requests are counted from 1 on in a process. */
static int probe_sequence(void)
{
    struct netlink_request request;
    struct nlmsghdr sent;

    netlink_begin(&request, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
    (void)netlink_ask(client, &request, NULL, NULL);
    assert_true(recv(peer, &sent, sizeof sent, MSG_DONTWAIT) == (ssize_t)sizeof sent);
    return (int)sent.nlmsg_seq + 1;
}

static int make(void **state)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
        return -1;
    client = pair[0];
    peer = pair[1];
    used = 0;
    seen = (struct seen){0};
    next_sequence = (uint32_t)probe_sequence();
    return 0;
}

static int drop(void **state)
{
    close(client);
    close(peer);
    return 0;
}

static struct nlmsghdr *put(uint16_t type, uint16_t flags, size_t body_bytes)
{
    struct nlmsghdr *message = mnl_nlmsg_put_header(datagram + used);

    message->nlmsg_type = type;
    message->nlmsg_flags = flags;
    message->nlmsg_seq = next_sequence;
    mnl_nlmsg_put_extra_header(message, body_bytes);
    used += NLMSG_ALIGN(message->nlmsg_len);
    return message;
}

static void put_end(uint16_t type, uint16_t flags, int code)
{
    memcpy(mnl_nlmsg_get_payload(put(type, flags, sizeof(struct nlmsgerr))), &code, sizeof code);
}

static struct nlmsghdr *put_link(void)
{
    return put(RTM_NEWLINK, NLM_F_MULTI, sizeof(struct ifinfomsg));
}

static void send_bytes(size_t bytes)
{
    assert_int_equal(send(peer, datagram, bytes, 0), bytes);
    used = 0;
}

static int dump(void)
{
    struct netlink_request request;

    netlink_begin(&request, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
    return netlink_ask(client, &request, note, &seen);
}

/* The kernel's answers to a dump, a letter each:
 * l link   S link that is too short   A link with a cut attribute   B larger than the buffer
 * d done   e error -EPERM   E error without its code   x done with -EMSGSIZE   i done, interrupted
 * - the datagram ends here; , so does it, 4 bytes early; < what follows is of an earlier request, >
 * of this one again */
static void answer(const char *script)
{
    for (const char *at = script; *at; at++) {
        struct nlmsghdr *message = NULL;

        switch (*at) {
        case 'l':
            put_link();
            break;
        case 'S':
            put(RTM_NEWLINK, NLM_F_MULTI, 4);
            break;
        case 'B':
            put(RTM_NEWLINK, NLM_F_MULTI, ROOM - 64);
            break;
        case 'A':
            message = put_link();
            ((struct nlattr *)mnl_nlmsg_get_payload_tail(message))->nla_len = 0;
            mnl_attr_put_u32(message, IFLA_MTU, 1300);
            ((struct nlattr *)mnl_nlmsg_get_payload_offset(message, sizeof(struct ifinfomsg)))
                ->nla_len++; /* reaches beyond its message */
            used = message->nlmsg_len;
            break;
        case 'd':
            put_end(NLMSG_DONE, NLM_F_MULTI, 0);
            break;
        case 'e':
            put_end(NLMSG_ERROR, 0, -EPERM);
            break;
        case 'E':
            put(NLMSG_ERROR, 0, 0);
            break;
        case 'x':
            put_end(NLMSG_DONE, NLM_F_MULTI, -EMSGSIZE);
            break;
        case 'i':
            put_end(NLMSG_DONE, NLM_F_MULTI | NLM_F_DUMP_INTR, 0);
            break;
        case '<':
            next_sequence--;
            break;
        case '>':
            next_sequence++;
            break;
        default:
            send_bytes(*at == ',' ? used - 4 : used);
        }
    }
    send_bytes(used);
}

static void each_answer_is_judged(void **state)
{
    static const struct {
        const char *script;
        int code;
        int count; /* of links that the reader has at the end */
    } cases[] = {
        {"ll-ld", 0, 3},      {"l", -EPROTO, 1}, /* no end */
        {"ll,d", -EPROTO, 1}, {"B", -EPROTO, 0}, {"Sd", -EPROTO, 0},   {"Ad", -EPROTO, 0},
        {"e", -EPERM, 0},     {"E", -EPROTO, 0}, {"lx", -EMSGSIZE, 1}, /* the dump failed on the way
                                                                        */
        {"lild", -EINTR, 1},                                           /* and was interrupted */
        {"<lx>d", 0, 0}, /* the rest of an earlier answer */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int code;

        assert_int_equal(make(state), 0);
        answer(cases[i].script);
        code = dump();
        if (code != cases[i].code || seen.count != cases[i].count)
            fail_msg("%s: %d, %d links", cases[i].script, code, seen.count);
        drop(state);
    }
}

/* The rest of the answer is read, so that the socket can be used again. */
static void test_a_reader_that_fails(void **state)
{
    seen.fails_at = 1;
    answer("lld");
    assert_int_equal(dump(), -ENOMEM);
    assert_int_equal(seen.count, 1);
    assert_int_equal(recv(client, datagram, sizeof datagram, MSG_DONTWAIT), -1);
}

static void test_attributes(void **state)
{
    struct nlmsghdr *message = put(RTM_NEWLINK, 0, sizeof(struct ifinfomsg));
    const size_t fixed = sizeof(struct ifinfomsg);
    uint8_t mac[6] = {0};
    char name[4];

    mnl_attr_put_u32(message, IFLA_MTU, 1300);
    mnl_attr_put(message, IFLA_MASTER, 2, "ab"); /* too short for a number */
    mnl_attr_put(message, IFLA_IFNAME, 7, "abcdefg");
    mnl_attr_put(message, IFLA_ADDRESS, 5, "12345");
    assert_int_equal(netlink_u32(netlink_find(message, fixed, IFLA_MTU), 7), 1300);
    assert_int_equal(netlink_u32(netlink_find(message, fixed, IFLA_MASTER), 7), 7);
    assert_int_equal(netlink_u32(netlink_find(message, fixed, IFLA_LINK), 7), 7);
    netlink_text(netlink_find(message, fixed, IFLA_IFNAME), name, sizeof name);
    assert_string_equal(name, "abc");
    netlink_text(NULL, name, sizeof name);
    assert_string_equal(name, "");
    assert_false(netlink_copy(netlink_find(message, fixed, IFLA_ADDRESS), mac, sizeof mac));
    /* An attribute that reaches beyond its message is none. */
    message->nlmsg_len -= 4;
    assert_null(netlink_find(message, fixed, IFLA_ADDRESS));
}

static void test_the_loopback(void **state)
{
    int fd = netlink_open();
    struct link_state link;
    struct in_addr here = {htonl(INADDR_LOOPBACK)}, there = {htonl(0xc6120001)};

    assert_true(fd >= 0);
    assert_int_equal(link_read(fd, (int)if_nametoindex("lo"), &link), 0);
    assert_int_equal(link.type, ARPHRD_LOOPBACK);
    assert_true(link.flags & IFF_LOOPBACK);
    assert_true(link.mtu > 1000);
    assert_int_equal(link_read(fd, 999999, &link), -ENODEV);
    assert_true(route_is_local(fd, AF_INET, &here, 0));
    assert_false(route_is_local(fd, AF_INET, &there, 0));
    close(fd);
}

static struct link_state link_at(uint64_t tx_dropped, uint32_t downs, bool running)
{
    struct link_state link = {.flags = running ? IFF_UP | IFF_RUNNING : IFF_UP,
                              .carrier_downs = downs};

    link.stats.tx_dropped = tx_dropped;
    return link;
}

static void assert_drops(struct link_drops *drops, struct link_state now, uint64_t host,
                         uint64_t no_carrier)
{
    link_drops_update(drops, &now);
    assert_int_equal(drops->host, host);
    assert_int_equal(drops->no_carrier, no_carrier);
}

/* The kernel counts both in tx_dropped: what the host drops, and what has no carrier. */
static void test_drops_without_a_carrier_are_not_the_hosts(void **state)
{
    struct link_state begin = link_at(5, 1, true);
    struct link_drops drops;

    link_drops_begin(&drops, &begin);
    assert_drops(&drops, link_at(5, 1, true), 0, 0);
    assert_drops(&drops, link_at(8, 1, true), 3, 0);
    assert_drops(&drops, link_at(20, 2, true), 3, 12); /* it went, and is back */
    assert_drops(&drops, link_at(21, 2, true), 4, 12);
    assert_drops(&drops, link_at(30, 3, false), 4, 21);
    assert_drops(&drops, link_at(40, 3, false), 4, 31);
    assert_drops(&drops, link_at(41, 3, true), 4, 32); /* it came back in between */
    assert_drops(&drops, link_at(42, 3, true), 5, 32);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_is_judged),
        TEST(test_a_reader_that_fails),
        TEST(test_attributes),
        cmocka_unit_test(test_the_loopback),
        cmocka_unit_test(test_drops_without_a_carrier_are_not_the_hosts),
    };

    return cmocka_run_group_tests_name("netlink", tests, NULL, NULL);
}
