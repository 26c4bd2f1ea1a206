/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages of several frames: their segmentation and reassembly. Numbers and
 * bytes only: no I/O and nothing of DPDK's.
 *
 * A message is sent in segments, one per frame, all full but the last. The signature's sequence is
 * the message's number in its flow; behind the signature the segment's number follows, and then
 * bytes of the message, which are the fill as in all frames. Both ends know the size of each
 * message by its number, so no frame says it.
 *
 *     headers | signature 18 | segment 6 | bytes of the message
 *
 * A message is whole when all its segments are there, in whatever order they came. Nothing is sent
 * again: where one is missing the message is lost, its source gives it up, and the next message has
 * the next number; what then still comes of an old one is late.
 */
#ifndef ENGINE_DPDK_MESSAGE_H
#define ENGINE_DPDK_MESSAGE_H

#include "frame.h"
#include "sequence.h"

#define MESSAGE_BYTES_MAX (1u << 30)

/* --- on the wire --- */

/* In network byte order. It lies where the fill's first bytes would, and its words sum to what
 * those do: so a UDP checksum that is right for the fill is right for it, too. */
struct segment {
    uint32_t number; /* in its message, from 0 on; or SEGMENT_END */
    uint16_t balance;
} __attribute__((packed));

#define SEGMENT_BYTES 6u
static_assert(sizeof(struct segment) == SEGMENT_BYTES, "the layout of a segment's header");
static_assert(FRAME_ETHERNET + FRAME_VLAN + FRAME_IPV6 + FRAME_UDP + SIGNATURE_BYTES +
                      SEGMENT_BYTES <=
                  FRAME_TEMPLATE,
              "a template's copy restores the fill wherever a segment's header was");

/* With this number a frame is an end mark: its source begins no more messages. It has no bytes of a
 * message, and comes back as an answer does. */
#define SEGMENT_END UINT32_MAX
/* And with this one a mark: the signature's sequence is the number of the flow's next message. */
#define SEGMENT_MARK (UINT32_MAX - 1)
/* A schedule's message of a barrier has one segment, whose number is this and the barrier's bits.
 */
#define SEGMENT_BARRIER 0xc0000000u
#define SEGMENT_BARRIER_BITS 0xffu
static_assert(SEGMENT_BARRIER > MESSAGE_BYTES_MAX, "no segment of a message has such a number");

void segment_write(struct segment *segment, uint32_t number);
bool segment_sound(const struct segment *segment);

/* Tag of the way back, of a phase whose frames have `tag`: no probe has it. */
static inline uint16_t message_answer_tag(uint16_t tag)
{
    return tag ^ 0x3ca5;
}

/* --- segmentation --- */

struct segmentation {
    uint32_t head;  /* bytes in a frame before those of the message */
    uint32_t room;  /* of the message in a full frame */
    uint32_t least; /* bytes of the shortest frame, in memory */
};

/* Frames of `frame_bytes` at most, with FCS. False: they have no room for a message. */
bool segmentation_make(struct segmentation *segmentation, const struct frame_shape *shape,
                       uint32_t frame_bytes);

/* Of a message of up to MESSAGE_BYTES_MAX bytes: its segments, one at least; a segment's bytes of
 * it; and the length of that one's frame in memory. */
static inline uint32_t message_segments(const struct segmentation *segmentation, uint32_t bytes)
{
    return bytes > 0 ? (bytes + segmentation->room - 1) / segmentation->room : 1;
}

static inline uint32_t message_part(const struct segmentation *segmentation, uint32_t bytes,
                                    uint32_t segment)
{
    uint32_t left = bytes - segment * segmentation->room;

    return left < segmentation->room ? left : segmentation->room;
}

static inline uint32_t message_length(const struct segmentation *segmentation, uint32_t bytes,
                                      uint32_t segment)
{
    uint32_t length = segmentation->head + message_part(segmentation, bytes, segment);

    return length > segmentation->least ? length : segmentation->least;
}

/* --- putting them together --- */

/* Which segments of a message came. The bits lie beside it: bit n % 64 of word n / 64, segment n.
 */
struct segment_set {
    uint32_t missing;
    uint32_t expected; /* one more than the greatest that came */
};

static inline uint32_t segment_words(uint32_t segments)
{
    return segments / 64 + 1;
}

/* None of so many segments has come. */
void segment_set_begin(struct segment_set *set, uint64_t *seen, uint32_t segments);
/* SEQUENCE_FRESH, SEQUENCE_REORDERED or SEQUENCE_DUPLICATE. */
enum sequence_verdict segment_set_take(struct segment_set *set, uint64_t *seen, uint32_t segment);

/* Of one flow's messages, one way, the present one alone. All zero: none yet. */
struct reassembly {
    uint64_t next;     /* number from which on messages are new */
    uint32_t segments; /* of the present one, which is next - 1; 0: there is none */
    uint32_t room;     /* segments that `seen` has room for */
    struct segment_set set;
    uint64_t *seen;
    uint64_t broken; /* messages that were given up, or that another followed, before whole */
};

/* For messages of so many segments at most. -ENOMEM. */
int reassembly_make(struct reassembly *reassembly, uint32_t segments);
void reassembly_free(struct reassembly *reassembly);

/* A message's number, all of it, by the 32 bits on the wire; and whether it is new, which those of
 * `next` and later are. */
static inline uint64_t reassembly_number(const struct reassembly *reassembly, uint32_t wire)
{
    return sequence_unwrap(reassembly->next, wire);
}

static inline bool reassembly_is_new(const struct reassembly *reassembly, uint32_t wire)
{
    return (int32_t)(wire - (uint32_t)reassembly->next) >= 0;
}

/* A new message is the present one from now on: of 1 to `room` segments. */
void reassembly_begin(struct reassembly *reassembly, uint64_t number, uint32_t segments);

/* The present message is given up: what still comes of it is late. */
void reassembly_give_up(struct reassembly *reassembly);

/* A segment of a message that is not new. Exclusive, as SEQUENCE_...: late is what belongs to an
 * older message than the present one; fresh and reordered ones are delivered. */
enum sequence_verdict reassembly_take(struct reassembly *reassembly, uint64_t number,
                                      uint32_t segment);

static inline bool reassembly_whole(const struct reassembly *reassembly)
{
    return reassembly->segments > 0 && reassembly->set.missing == 0;
}

#endif
