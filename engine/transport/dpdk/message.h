/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages of several frames: how they are cut, and how a receiver puts them together. Numbers and
 * bytes only: no I/O and nothing of DPDK's.
 *
 * A message is cut into segments, one a frame, all full but the last. The signature's sequence is
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
#define SEGMENT_MEETING 0xc0000000u
#define SEGMENT_MEETING_BITS 0xffu
static_assert(SEGMENT_MEETING > MESSAGE_BYTES_MAX, "no segment of a message has such a number");

void segment_write(struct segment *segment, uint32_t number);
bool segment_sound(const struct segment *segment);

/* Tag of the way back, of a phase whose frames have `tag`: no probe has it. */
static inline uint16_t message_answer_tag(uint16_t tag)
{
    return tag ^ 0x3ca5;
}

/* --- how messages are cut --- */

struct message_cut {
    uint32_t head;  /* bytes in a frame before those of the message */
    uint32_t room;  /* of the message in a full frame */
    uint32_t least; /* bytes of the shortest frame, in memory */
};

/* Frames of `frame_bytes` at most, with FCS. False: they have no room for a message. */
bool message_cut(struct message_cut *cut, const struct frame_shape *shape, uint32_t frame_bytes);

/* Of a message of up to MESSAGE_BYTES_MAX bytes: its segments, one at least; a segment's bytes of
 * it; and the length of that one's frame in memory. */
static inline uint32_t message_segments(const struct message_cut *cut, uint32_t bytes)
{
    return bytes > 0 ? (bytes + cut->room - 1) / cut->room : 1;
}

static inline uint32_t message_part(const struct message_cut *cut, uint32_t bytes, uint32_t segment)
{
    uint32_t left = bytes - segment * cut->room;

    return left < cut->room ? left : cut->room;
}

static inline uint32_t message_length(const struct message_cut *cut, uint32_t bytes,
                                      uint32_t segment)
{
    uint32_t length = cut->head + message_part(cut, bytes, segment);

    return length > cut->least ? length : cut->least;
}

/* --- putting them together --- */

/* What came of one flow's messages, one way. All zero: none yet. */
struct assembly {
    uint64_t next;     /* number from which on messages are new */
    uint32_t segments; /* of the present one, which is next - 1; 0: there is none ... */
    uint32_t missing;  /* ... of them */
    uint32_t expected; /* one more than the greatest that came */
    uint32_t room;     /* segments that `seen` has room for */
    uint64_t *seen;    /* bit n % 64 of word n / 64: segment n came */
    uint64_t broken;   /* messages that were given up, or that another followed, before whole */
};

/* For messages of so many segments at most. -ENOMEM. */
int assembly_make(struct assembly *assembly, uint32_t segments);
void assembly_free(struct assembly *assembly);

/* A message's number, all of it, by the 32 bits on the wire; and whether it is new, which those of
 * `next` and later are. */
static inline uint64_t assembly_number(const struct assembly *assembly, uint32_t wire)
{
    return sequence_unwrap(assembly->next, wire);
}

static inline bool assembly_is_new(const struct assembly *assembly, uint32_t wire)
{
    return (int32_t)(wire - (uint32_t)assembly->next) >= 0;
}

/* A new message is the present one from now on: of 1 to `room` segments. */
void assembly_begin(struct assembly *assembly, uint64_t number, uint32_t segments);

/* The present message is given up: what still comes of it is late. */
void assembly_give_up(struct assembly *assembly);

/* A segment of a message that is not new. Exclusive, as SEQUENCE_...: late is what belongs to an
 * older message than the present one; fresh and reordered ones are delivered. */
enum sequence_verdict assembly_take(struct assembly *assembly, uint64_t number, uint32_t segment);

static inline bool assembly_whole(const struct assembly *assembly)
{
    return assembly->segments > 0 && assembly->missing == 0;
}

#endif
