/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reply streams: a lane whose messages are answered has a second stream for each flow, from its
 * destination to its source, on a queue pair of its own. The destination sends as many bytes for
 * each message that came (its wrong bytes are counted). No end sends what the other has no place
 * for, so no credits are sent.
 */
#ifndef VERBS_REPLY_STREAMS_H
#define VERBS_REPLY_STREAMS_H

#include "lane.h"

/* Answers what came. */
void verbs_replies_send(struct verbs_lane *lane, int64_t now_ns);
/* The receiver of the replies to one of the flows that the lane sends. */
struct verbs_receiver *verbs_replies_to(const struct verbs_lane *lane, uint32_t flow);
/* Finishes the senders that are to stop: of replies, and of whatever else the lane sends. */
void verbs_senders_finish(struct verbs_lane *lane, int64_t now_ns);

#endif
