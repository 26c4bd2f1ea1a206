/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The responder's frames: what it announces, asks and answers, with bytes written here by hand from
 * RFC 826 and RFC 4861.
 */
#include "arp_nd_responder.h"
#include "unit.h"

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

/* Reads a frame; returns its length. */
static uint32_t read_hex(uint8_t *frame, const char *hex)
{
    uint32_t length = (uint32_t)strlen(hex) / 2;

    for (uint32_t i = 0; i < length; i++) {
        const char byte[] = {hex[2 * i], hex[2 * i + 1], '\0'};

        frame[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return length;
}

#define ME "020000000011"
#define OTHER "020000000022"
#define ALL "ffffffffffff"
#define ARP "080600010800060400"
#define VLAN "8100004d"
#define NONE "000000000000"
#define GATEWAY4 "c6120001" /* it is `other` */
#define MY4 "c6120111"
#define GATEWAY6 "20010002000000000000000000000001"
#define MY6 "20010002000000000000000000000011"
#define GROUP6 "ff0200000000000000000001ff000011" /* solicited-node */
#define ND "86dd600000000020"                     /* length 32, then ICMPv6 and hop limit */

/* What becomes of a frame, cut where it ends here: a virtual link pads nothing. */
TEST(test_each_frame_is_taken_for_what_it_is)
{
    static const struct {
        enum header_kind kind;
        const char *frame;
        enum responder_verdict verdict;
        const char *answer; /* but for padding */
        bool gateway;       /* is known then */
    } cases[] = {
        {HEADER_IPV4_UDP, ALL OTHER ARP "01" OTHER GATEWAY4 NONE MY4, RESPONDER_REPLIES,
         OTHER ME ARP "02" ME MY4 OTHER GATEWAY4, true},
        {HEADER_IPV4_UDP, ALL OTHER VLAN ARP "01" OTHER GATEWAY4 NONE MY4, RESPONDER_REPLIES,
         OTHER ME ARP "02" ME MY4 OTHER GATEWAY4, true},
        /* To another, not from the gateway; nonsense. */
        {HEADER_IPV4_UDP, ALL OTHER ARP "01" OTHER "c6120009" NONE "c6120112", RESPONDER_IGNORES,
         "", false},
        {HEADER_IPV4_UDP, NONE NONE "0000" NONE NONE NONE NONE NONE NONE, RESPONDER_IGNORES, "",
         false},
        {HEADER_IPV6_UDP,
         "3333ff000011" OTHER ND "3aff" GATEWAY6 GROUP6 "8700375400000000" MY6 "0101" OTHER,
         RESPONDER_REPLIES, OTHER ME ND "3aff" MY6 GATEWAY6 "8800b36660000000" MY6 "0201" ME,
         false},
        /* Damaged; from behind a router. */
        {HEADER_IPV6_UDP,
         "3333ff000011" OTHER ND "3aff" GATEWAY6 GROUP6 "8700375401000000" MY6 "0101" OTHER,
         RESPONDER_IGNORES, "", false},
        {HEADER_IPV6_UDP,
         "3333ff000011" OTHER ND "3afe" GATEWAY6 GROUP6 "8700375400000000" MY6 "0101" OTHER,
         RESPONDER_IGNORES, "", false},
    };

    for (EACH(c, cases)) {
        struct arp_nd_responder responder = make(c->kind);
        uint8_t frame[128], answer[RESPONDER_FRAME_MAX], expected[RESPONDER_FRAME_MAX] = {0};
        uint32_t length = read_hex(frame, c->frame), answered = 0, due;

        for (uint32_t less = 0; less < length && c->verdict == RESPONDER_REPLIES; less++)
            assert_int_equal(responder_handle(&responder, frame, less, answer, &answered),
                             RESPONDER_IGNORES);
        assert_int_equal(responder_handle(&responder, frame, length, answer, &answered),
                         c->verdict);
        due = read_hex(expected, c->answer);
        assert_int_equal(answered, due > 0 && due < 60 ? 60 : due); /* ours are padded */
        assert_memory_equal(answer, expected, answered);
        assert_int_equal(responder.gateway_known, c->gateway);
        if (c->gateway)
            assert_memory_equal(responder.gateway_mac, other, 6);
    }
}

TEST(test_on_link)
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
