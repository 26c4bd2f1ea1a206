/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The responder's frames: what it announces, asks and answers, with bytes written here by hand from
 * RFC 826 and RFC 4861.
 */
#include "arp_nd_responder.h"

#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t me[6] = {2, 0, 0, 0, 0, 0x11};
static const uint8_t other[6] = {2, 0, 0, 0, 0, 0x22};

static struct arp_nd_responder make(enum header_kind kind)
{
    const struct port_conf conf = {.name = "n0:e0",
                                   .ipv4 = "198.18.1.17/16",
                                   .ipv6 = "2001:2::11/64",
                                   .gateway = kind == HEADER_IPV6_UDP ? "2001:2::1" : "198.18.0.1"};
    struct arp_nd_responder responder = {.kind = kind};
    struct err err = {""};

    memcpy(responder.mac, me, sizeof me);
    assert_int_equal(responder_set_addresses(&responder, &conf, &err), 0);
    return responder;
}

static uint32_t sum(const uint8_t *data, uint32_t size, uint32_t start)
{
    for (uint32_t i = 0; i < size; i++)
        start += i % 2 == 0 ? (uint32_t)data[i] << 8 : data[i];
    while (start >> 16)
        start = (start & 0xffff) + (start >> 16);
    return start;
}

static const uint8_t arp_request[60] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,    0,   0,  0, 0, 0x22, 8, 6, 0, 1, 8, 0,   6,  4, 0,
    1,    2,    0,    0,    0,    0,    0x22, 198, 18, 0, 1, 0,    0, 0, 0, 0, 0, 198, 18, 1, 17};

static void test_answers_arp(void **state)
{
    struct arp_nd_responder responder = make(HEADER_IPV4_UDP);
    uint8_t answer[RESPONDER_FRAME_MAX];
    uint32_t length = 0;

    assert_int_equal(responder_handle(&responder, arp_request, 60, answer, &length),
                     RESPONDER_REPLIES);
    assert_int_equal(length, 60);
    assert_memory_equal(answer, other, 6);
    assert_memory_equal(answer + 6, me, 6);
    assert_int_equal(answer[21], 2);
    assert_memory_equal(answer + 22, me, 6);
    assert_memory_equal(answer + 28, "\xc6\x12\x01\x11", 4);
    assert_memory_equal(answer + 32, other, 6);
    assert_memory_equal(answer + 38, "\xc6\x12\x00\x01", 4);
    /* It was the gateway that asked. */
    assert_true(responder.gateway_known);
    assert_memory_equal(responder.gateway_mac, other, 6);
}

/* The responder learns from this frame that `other` is its gateway; its answer's length. */
static uint32_t learn_gateway(struct arp_nd_responder *responder, const uint8_t *frame,
                              uint32_t length, enum responder_verdict verdict)
{
    uint8_t answer[RESPONDER_FRAME_MAX];
    uint32_t answer_length = 0;

    assert_false(responder->gateway_known);
    assert_int_equal(responder_handle(responder, frame, length, answer, &answer_length), verdict);
    assert_true(responder->gateway_known);
    assert_memory_equal(responder->gateway_mac, other, 6);
    return answer_length;
}

/* A virtual link pads nothing: a Linux router's ARP is 42 bytes there, 46 with a tag. */
static void test_frames_need_no_padding(void **state)
{
    static const uint8_t tag[4] = {0x81, 0, 0, 77};
    uint8_t tagged[46], answer[RESPONDER_FRAME_MAX];
    uint32_t length = 0;

    memcpy(tagged, arp_request, 12);
    memcpy(tagged + 12, tag, sizeof tag);
    memcpy(tagged + 16, arp_request + 12, 30);
    for (unsigned vlan = 0; vlan < 2; vlan++) {
        struct arp_nd_responder responder = make(HEADER_IPV4_UDP);
        const uint8_t *frame = vlan ? tagged : arp_request;
        uint32_t whole = vlan ? 46 : 42;

        for (uint32_t cut = 0; cut < whole; cut++)
            assert_int_equal(responder_handle(&responder, frame, cut, answer, &length),
                             RESPONDER_IGNORES);
        length = learn_gateway(&responder, frame, whole, RESPONDER_REPLIES);
        assert_int_equal(length, 60); /* ours are padded */
    }
}

static void test_ignores_what_is_for_others(void **state)
{
    struct arp_nd_responder responder = make(HEADER_IPV4_UDP);
    uint8_t frame[60], answer[RESPONDER_FRAME_MAX];
    uint32_t length = 0;

    memcpy(frame, arp_request, sizeof frame);
    frame[41] = 18; /* another target */
    frame[31] = 9;  /* not the gateway */
    assert_int_equal(responder_handle(&responder, frame, 60, answer, &length), RESPONDER_IGNORES);
    assert_false(responder.gateway_known);
    memset(frame, 0, sizeof frame);
    assert_int_equal(responder_handle(&responder, frame, 60, answer, &length), RESPONDER_IGNORES);
}

/* What one responder announces another hears, for every kind, tagged or not. */
static void test_announcements_are_heard(void **state)
{
    for (unsigned kind = 0; kind < 6; kind++) {
        struct arp_nd_responder one = make((enum header_kind)(kind / 2)), two = one;
        uint8_t frame[RESPONDER_FRAME_MAX], answer[RESPONDER_FRAME_MAX];
        uint32_t length, ignored = 0;

        memcpy(one.mac, other, sizeof other);
        one.ipv4[3] = one.ipv6[15] = 0x22;
        one.vlan = kind % 2;
        one.vlan_tci = 77;
        length = responder_announcement(&one, frame);
        assert_in_range(length, 60, RESPONDER_FRAME_MAX);
        assert_true(frame[0] & 1); /* to all: every switch learns */
        assert_memory_equal(frame + 6, other, 6);
        if (one.vlan)
            assert_memory_equal(frame + 12, "\x81\x00\x00\x4d", 4);
        assert_int_equal(responder_handle(&two, frame, length, answer, &ignored),
                         RESPONDER_CONSUMES);
    }
}

/* A solicitation from the gateway, with its link-layer address. */
static void solicitation(uint8_t frame[86], const uint8_t target[16])
{
    static const uint8_t from[16] = {0x20, 1, 0, 2, [15] = 1};
    static const uint8_t group[6] = {0x33, 0x33, 0xff, 0, 0, 0x11};
    static const uint8_t to[16] = {0xff, 2, [11] = 1, [12] = 0xff, [15] = 0x11};
    uint8_t *ip = frame + 14, *icmp = ip + 40;
    uint32_t check;

    memset(frame, 0, 86);
    memcpy(frame, group, sizeof group);
    memcpy(frame + 6, other, 6);
    frame[12] = 0x86;
    frame[13] = 0xdd;
    ip[0] = 0x60;
    ip[5] = 32;
    ip[6] = 58;
    ip[7] = 255;
    memcpy(ip + 8, from, 16);
    memcpy(ip + 24, to, 16);
    icmp[0] = 135;
    memcpy(icmp + 8, target, 16);
    icmp[24] = 1;
    icmp[25] = 1;
    memcpy(icmp + 26, other, 6);
    check = ~sum(icmp, 32, sum(ip + 8, 32, 32 + 58)) & 0xffff;
    icmp[2] = (uint8_t)(check >> 8);
    icmp[3] = (uint8_t)check;
}

static void test_answers_solicitations(void **state)
{
    struct arp_nd_responder responder = make(HEADER_IPV6_UDP);
    uint8_t frame[86], answer[RESPONDER_FRAME_MAX];
    uint8_t *icmp = answer + 54;
    uint32_t length = 0;

    solicitation(frame, responder.ipv6);
    assert_int_equal(responder_handle(&responder, frame, 86, answer, &length), RESPONDER_REPLIES);
    assert_int_equal(length, 86);
    assert_memory_equal(answer, other, 6);
    assert_memory_equal(answer + 14 + 24, frame + 14 + 8, 16);
    assert_int_equal(answer[14 + 7], 255);
    assert_int_equal(icmp[0], 136);
    assert_int_equal(icmp[4], 0x60); /* solicited, override */
    assert_memory_equal(icmp + 8, responder.ipv6, 16);
    assert_int_equal(icmp[24], 2);
    assert_memory_equal(icmp + 26, me, 6);
    assert_int_equal(sum(icmp, 32, sum(answer + 22, 32, 32 + 58)), 0xffff);
    frame[60] ^= 1; /* a damaged one is not answered, nor one from behind a router */
    assert_int_equal(responder_handle(&responder, frame, 86, answer, &length), RESPONDER_IGNORES);
    solicitation(frame, responder.ipv6);
    frame[14 + 7] = 254;
    assert_int_equal(responder_handle(&responder, frame, 86, answer, &length), RESPONDER_IGNORES);
}

/* Asked for itself, the gateway answers; both families. */
static void test_finds_gateway(void **state)
{
    for (enum header_kind kind = HEADER_IPV4_UDP; kind <= HEADER_IPV6_UDP; kind++) {
        struct arp_nd_responder responder = make(kind), gateway = make(kind);
        uint8_t question[RESPONDER_FRAME_MAX], answer[RESPONDER_FRAME_MAX];
        uint32_t length, answer_length = 0;

        memcpy(gateway.mac, other, sizeof other);
        memcpy(gateway.ipv4, responder.gateway4, 4);
        memcpy(gateway.ipv6, responder.gateway6, 16);
        gateway.has_gateway4 = gateway.has_gateway6 = false;
        length = responder_request(&responder, question);
        assert_int_equal(responder_handle(&gateway, question, length, answer, &answer_length),
                         RESPONDER_REPLIES);
        learn_gateway(&responder, answer, answer_length, RESPONDER_CONSUMES);
    }
}

static void test_on_link(void **state)
{
    struct arp_nd_responder responder = make(HEADER_IPV4_UDP);
    struct frame_end near = {.ipv4 = {198, 18, 200, 1}}, far = {.ipv4 = {198, 19, 0, 1}};

    assert_true(responder_on_link(&responder, &near));
    assert_false(responder_on_link(&responder, &far));
    responder.ipv4_prefix = 15;
    assert_true(responder_on_link(&responder, &far));
    responder.ipv4_prefix = 16;
    responder.kind = HEADER_L2;
    assert_true(responder_on_link(&responder, &far));
}

static void test_bad_addresses(void **state)
{
    static const struct port_conf bad[] = {
        {.name = "p", .ipv4 = "198.18.0.1/33"}, {.name = "p", .ipv4 = "198.18.0/16"},
        {.name = "p", .ipv6 = "2001:2::1/129"}, {.name = "p", .ipv6 = "198.18.0.1"},
        {.name = "p", .gateway = "router"},     {.name = "p", .ipv4 = "198.18.0.1/16x"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct arp_nd_responder responder = {.vlan = false};
        struct err err = {""};

        assert_true(responder_set_addresses(&responder, &bad[i], &err) < 0);
        assert_non_null(strstr(err.text, "p: "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_arp),
        cmocka_unit_test(test_frames_need_no_padding),
        cmocka_unit_test(test_ignores_what_is_for_others),
        cmocka_unit_test(test_announcements_are_heard),
        cmocka_unit_test(test_answers_solicitations),
        cmocka_unit_test(test_finds_gateway),
        cmocka_unit_test(test_on_link),
        cmocka_unit_test(test_bad_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
