/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules over verbs (doc/schedules.md, ../engine/stepper.h), by sends of a reliable connection.
 * A message goes in pieces as long as a place of the sink's ring: a header, and payload straight
 * from the rank's memory, which is registered for the phase. The sink copies it to where it
 * belongs, once the step that receives it has come; what a partner sends ahead waits in the ring,
 * and credits bound it.
 *
 * A message is handed over when its pieces are acknowledged, or at once where the device has taken
 * them with the work request (inline).
 */
#include "clock.h"
#include "lane.h"
#include "schedule_executor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (64u * 1024) /* of payload */
#define MEETING 0x80u            /* in a header: a barrier's message, with its bits */
#define TURNS 64u                /* in one poll */

/* A message on its way. */
struct transit {
    uint64_t moved;   /* bytes of payload */
    uint64_t awaited; /* source: it is handed over when so many pieces are acknowledged */
    bool begun;       /* at least one piece has moved */
    bool through;
};

struct verbs_steps {
    struct stepper *stepper;
    struct ibv_mr *memory;
    struct transit *sends; /* of the present step, as the stepper's */
    struct transit *receives;
};

/* --- preparation --- */

int verbs_steps_check(const struct verbs_lane *lane, struct err *err)
{
    const struct verbs_options *options = &lane->options;
    const char *label = lane->port->label;

    if (options->service != VERBS_RC || options->operation != VERBS_SEND)
        return err_set(err, -EINVAL,
                       "%s: the messages of steps go by service rc and operation send", label);
    if (options->queue_pairs > 1)
        return err_set(err, -EINVAL,
                       "%s: a step's message goes by one queue pair, not %u: leave queue_pairs out",
                       label, options->queue_pairs);
    return 0;
}

uint32_t verbs_steps_piece(const struct verbs_lane *lane)
{
    uint64_t most = lane->lane.request.stepper->most_bytes;

    return VERBS_HEADER_BYTES + (most < PIECE_BYTES ? (uint32_t)most : PIECE_BYTES);
}

int verbs_steps_make(struct verbs_lane *lane)
{
    struct stepper *stepper = lane->lane.request.stepper;
    struct verbs_steps *steps = calloc(1, sizeof *steps);

    if (steps == NULL)
        return -ENOMEM;
    lane->steps = steps;
    steps->stepper = stepper;
    steps->sends = calloc((size_t)stepper->most_sends + 1, sizeof *steps->sends);
    steps->receives = calloc((size_t)stepper->most_receives + 1, sizeof *steps->receives);
    return steps->sends == NULL || steps->receives == NULL ? -ENOMEM : 0;
}

int verbs_steps_register(struct verbs_lane *lane, struct err *err)
{
    struct verbs_steps *steps = lane->steps;
    const struct stepper *stepper = lane->lane.request.stepper;

    if (steps == NULL)
        return 0;
    steps->memory = ibv_reg_mr(lane->port->pd, stepper->memory, stepper->memory_bytes, 0);
    if (steps->memory == NULL)
        return verbs_refuse_region(lane->port->label, stepper->memory_bytes, errno, err);
    return 0;
}

void verbs_steps_free(struct verbs_lane *lane)
{
    if (lane->steps == NULL)
        return;
    if (lane->steps->memory != NULL)
        ibv_dereg_mr(lane->steps->memory);
    free(lane->steps->sends);
    free(lane->steps->receives);
    free(lane->steps);
}

/* --- a message --- */

static struct verbs_header make_header(const struct verbs_steps *steps,
                                       const struct stepper_message *message,
                                       const struct verbs_script *script, uint64_t sequence)
{
    bool meeting = steps->stepper->meeting;

    return (struct verbs_header){
        .kind = VERBS_KIND_MESSAGE,
        .tag = htons(script->tag),
        .sequence = htonl((uint32_t)sequence),
        .length = htonl((uint32_t)message->bytes),
        .src = htons(script->src),
        .dst = htons(script->dst),
        .zero = meeting ? htons((uint16_t)(MEETING | steps->stepper->bits)) : 0,
    };
}

/* Bytes of payload in a message's next piece; both ends know how long a place is. */
static uint32_t piece_of(const struct stepper_message *message, const struct transit *transit,
                         uint32_t stride)
{
    uint64_t left = message->bytes - transit->moved;
    uint32_t room = stride - VERBS_HEADER_BYTES;

    room = room < PIECE_BYTES ? room : PIECE_BYTES;
    return left < room ? (uint32_t)left : room;
}

/* A message waits for the one before it on the same connection. */
static bool waits(const struct stepper_message *messages, const struct transit *transits,
                  uint32_t place)
{
    uint32_t after = messages[place].after;

    return after != STEPPER_NONE &&
           !(transits[after].begun && transits[after].moved == messages[after].bytes);
}

static bool has_room(struct verbs_out *out)
{
    if (out->at.sequence < out->allowed && out->at.sequence - out->done < out->span)
        return true;
    out->waits++;
    return false;
}

/* Posts a piece of so many bytes, the message's last or not. True: its memory may be used again. */
static bool post_piece(struct verbs_out *out, const struct stepper_message *message,
                       const struct transit *transit, uint32_t bytes)
{
    const struct verbs_steps *steps = out->end.lane->steps;
    const struct verbs_pair *pair = out->end.pair;
    struct verbs_header *header =
        (struct verbs_header *)(void *)(pair->headers + (size_t)out->next * VERBS_HEADER_STRIDE);
    struct ibv_sge parts[] = {
        {.addr = (uintptr_t)header, .length = VERBS_HEADER_BYTES, .lkey = pair->range.lkey},
        {.addr = (uintptr_t)stepper_at(steps->stepper, message) + transit->moved,
         .length = bytes,
         .lkey = steps->memory->lkey},
    };
    bool whole = VERBS_HEADER_BYTES + bytes <= pair->inline_bytes;
    struct ibv_send_wr work = {
        .wr_id = VERBS_WORK_ID(VERBS_WORK_MESSAGE, out->at.sequence + 1),
        .sg_list = parts,
        .num_sge = bytes > 0 ? 2 : 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED | (whole ? IBV_SEND_INLINE : 0),
    };
    struct ibv_send_wr *bad;
    int code;

    *header = make_header(steps, message, &out->end.script, out->at.sequence);
    code = ibv_post_send(pair->qp, &work, &bad);
    if (code != 0)
        verbs_fault_post(&out->end, code);
    out->next = out->next + 1 == out->span ? 0 : out->next + 1;
    out->at.sequence++;
    out->at.before += VERBS_HEADER_BYTES + bytes;
    return whole;
}

static bool is_handed_over(const struct verbs_out *out, const struct transit *transit,
                           const struct stepper_message *message)
{
    return transit->begun && transit->moved == message->bytes && out->done >= transit->awaited;
}

/* Whether something was posted, or is handed over. */
static bool push(struct verbs_lane *lane, uint32_t place, int64_t now_ns)
{
    struct verbs_steps *steps = lane->steps;
    const struct stepper_message *message = &steps->stepper->sends[place];
    struct verbs_out *out = &lane->outs[message->flow];
    struct transit *transit = &steps->sends[place];
    struct flow_side *side = out->end.flow->side;
    bool moved = false;

    while (!(transit->begun && transit->moved == message->bytes) && has_room(out) &&
           !out->end.failed) {
        uint32_t bytes = piece_of(message, transit, out->end.theirs.stride);

        if (!post_piece(out, message, transit, bytes))
            transit->awaited = out->at.sequence;
        transit->moved += bytes;
        transit->begun = moved = true;
        stepper_account(steps->stepper, side, bytes, transit->moved == message->bytes);
        side->intended = side->live.payload_bytes;
        stepper_note_time(side, now_ns);
    }
    transit->through = is_handed_over(out, transit, message);
    steps->stepper->sends_left -= transit->through;
    return moved || transit->through;
}

/* What came, and how long it must be. */
struct piece {
    const struct verbs_header *header;
    uint32_t came; /* bytes, with the header */
    uint32_t due;
};

/* Is it the piece that is due, and all of it? What lies behind a shorter one is another message's.
 */
static bool judge(struct verbs_in *in, const struct stepper_message *message,
                  const struct piece *piece)
{
    const struct verbs_header *header = piece->header;
    struct verbs_steps *steps = in->end.lane->steps;
    struct verbs_header due = make_header(steps, message, &in->end.script, in->check.at.sequence);
    uint16_t bits = ntohs(header->zero);

    if (piece->came != piece->due) {
        in->end.flow->side->corrupted++;
        err_set(&in->end.lane->lane.error, -EBADMSG,
                "rank %u sent a piece of %u bytes where one of %u was due", in->end.flow->src,
                piece->came, piece->due);
        return false;
    }
    if (steps->stepper->meeting && (bits & MEETING) != 0) {
        stepper_hear(steps->stepper, (uint8_t)(bits & ~MEETING));
        due.zero = header->zero;
    }
    if (memcmp(&due, header, sizeof due) == 0)
        return true;
    in->end.flow->side->corrupted++;
    err_set(&in->end.lane->lane.error, -EBADMSG,
            "rank %u sent piece %u of a message of %u bytes (kind %02x, %04x) where piece %u, of "
            "%u bytes, was due",
            in->end.flow->src, ntohl(header->sequence), ntohl(header->length), header->kind, bits,
            ntohl(due.sequence), ntohl(due.length));
    return false;
}

/* Whether something was taken. */
static bool pull(struct verbs_lane *lane, uint32_t place, int64_t now_ns)
{
    struct verbs_steps *steps = lane->steps;
    const struct stepper_message *message = &steps->stepper->receives[place];
    struct verbs_in *in = &lane->ins[message->flow];
    struct transit *transit = &steps->receives[place];
    const uint8_t *data;
    bool moved = false;
    uint32_t came;

    while (!transit->through && (data = verbs_in_arrived(in, &came)) != NULL) {
        uint32_t bytes = piece_of(message, transit, in->end.pair->need.stride);
        struct piece piece = {(const struct verbs_header *)(const void *)data, came,
                              VERBS_HEADER_BYTES + bytes};

        if (!judge(in, message, &piece))
            return false;
        if (bytes > 0)
            memcpy(stepper_at(steps->stepper, message) + transit->moved, data + VERBS_HEADER_BYTES,
                   bytes);
        verbs_in_took(in, VERBS_HEADER_BYTES + bytes);
        transit->moved += bytes;
        transit->begun = moved = true;
        transit->through = transit->moved == message->bytes;
        stepper_account(steps->stepper, in->end.flow->side, bytes, transit->through);
        stepper_note_time(in->end.flow->side, now_ns);
        lane->lane.arrived_ns = now_ns;
    }
    steps->stepper->receives_left -= moved && transit->through;
    return moved;
}

/* --- a step --- */

static bool push_all(struct verbs_lane *lane, int64_t now_ns)
{
    struct verbs_steps *steps = lane->steps;
    bool moved = false;

    for (uint32_t i = 0; steps->stepper->sends_left > 0 && i < steps->stepper->send_count; i++)
        if (!steps->sends[i].through && !waits(steps->stepper->sends, steps->sends, i))
            moved = push(lane, i, now_ns) || moved;
    return moved;
}

static bool pull_all(struct verbs_lane *lane, int64_t now_ns)
{
    struct verbs_steps *steps = lane->steps;
    bool moved = false;

    for (uint32_t i = 0; steps->stepper->receives_left > 0 && i < steps->stepper->receive_count;
         i++)
        if (!steps->receives[i].through && !waits(steps->stepper->receives, steps->receives, i))
            moved = pull(lane, i, now_ns) || moved;
    return moved;
}

static void open_step(struct verbs_steps *steps)
{
    const struct stepper *stepper = steps->stepper;

    for (uint32_t i = 0; i < stepper->send_count; i++)
        steps->sends[i] = (struct transit){0};
    for (uint32_t i = 0; i < stepper->receive_count; i++)
        steps->receives[i] = (struct transit){0};
}

/* All that was open is through. */
static void go_on(struct verbs_lane *lane)
{
    struct verbs_steps *steps = lane->steps;
    enum stepper_state state = stepper_next(steps->stepper);

    if (state == STEPPER_OPEN)
        open_step(steps);
    if (state == STEPPER_WRONG)
        lane->lane.error = steps->stepper->error;
}

static bool is_broken(const struct verbs_lane *lane)
{
    return lane->lane.error.text[0] != '\0';
}

/* As far as it gets; true: something moved. */
static bool run_steps(struct verbs_lane *lane, int64_t now_ns)
{
    struct verbs_steps *steps = lane->steps;
    bool moved = false;

    for (unsigned turn = 0; turn < TURNS && !is_broken(lane); turn++) {
        bool pushed, pulled;

        if (stepper_is_through(steps->stepper))
            go_on(lane);
        if (steps->stepper->busy || steps->stepper->ended)
            return true;
        pushed = push_all(lane, now_ns);
        pulled = pull_all(lane, now_ns);
        moved = moved || pushed || pulled;
        if (!pushed && !pulled && !stepper_is_through(steps->stepper))
            break;
    }
    return moved;
}

/* Behind the last barrier comes nothing but the end marks. */
static void say_goodbye(struct verbs_lane *lane, int64_t now_ns)
{
    for (unsigned i = 0; i < lane->out_count; i++)
        lane->outs[i].stopping = true;
    for (unsigned i = 0; i < lane->in_count; i++)
        if (!lane->ins[i].marked && lane->ins[i].arrived > 0)
            verbs_in_take_mark(&lane->ins[i]);
    verbs_backs_end(lane, now_ns);
}

int64_t verbs_steps_send(struct verbs_lane *lane, int64_t now_ns)
{
    struct verbs_steps *steps = lane->steps;
    bool moved = false;

    if (!steps->stepper->begun) {
        stepper_begin(steps->stepper);
        open_step(steps);
    }
    if (!steps->stepper->ended)
        moved = run_steps(lane, now_ns);
    if (steps->stepper->ended)
        say_goodbye(lane, now_ns);
    return moved && !is_broken(lane) ? now_ns + 1 : CLOCK_NEVER;
}
