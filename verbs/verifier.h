/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end that verifies a stream's messages, and counts what is wrong, missing, late or twice
 * there. No device.
 */
#ifndef VERBS_VERIFIER_H
#define VERBS_VERIFIER_H

#include "message.h"

struct verbs_verifier {
    struct verbs_script script;
    struct verbs_cursor at; /* the next message that is due */
    struct flow_side *side;
    struct port_count *count;
    bool reliable;   /* nothing may be missing; false: gaps are the network's loss, and a message
                        of less than 8 bytes, which has no sequence, is taken for the next */
    bool whole;      /* every byte of every message is compared */
    uint64_t missed; /* messages that were jumped over; less when one comes late */
    uint64_t seen;   /* bit i: the message i + 1 before the one that is due has come */
};

void verbs_verify_start(struct verbs_verifier *verifier);

/* Verifies one message of `bytes` and counts it: payload_bytes are those that were what and where
 * they had to be, messages are those without a wrong byte. False: it is not of this stream in this
 * phase, and was counted as foreign.
 *
 * Compared are the whole header, the length, the order; of the payload all bytes when `whole` is
 * set, when the message is at most VERBS_SMALL long, and for every VERBS_WHOLE_EVERY-th message; of
 * the others the last 8 bytes and 8 further words, each in another eighth, at places that move from
 * message to message. Where one of these is wrong, all bytes are compared and counted. */
#define VERBS_SMALL 256u
#define VERBS_WHOLE_EVERY 64u
bool verbs_verify_message(struct verbs_verifier *verifier, const uint8_t *data, uint32_t bytes);
/* So many messages are missing, as something else than the next one's header tells. */
void verbs_verify_skip(struct verbs_verifier *verifier, uint32_t count);

/* For an unreliable service, where a message's number is known from elsewhere than its header,
 * which a short message does not have whole: notes what is missing before it. True: it came late,
 * or twice, and was counted; it is not to be verified. */
bool verbs_verify_gap(struct verbs_verifier *verifier, uint32_t sequence, uint32_t bytes);

#endif
