/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Planted faults. Each has its own random numbers, so that what one does does not depend on the
 * others; what they did to frames that left is counted when the frames leave.
 */
#include "inside.h"
#include "signature.h"

#include <errno.h>
#include <stdlib.h>

#define NAME(kind, word) [MODEL_FAULT_##kind] = word,
const char *const model_fault_names[MODEL_FAULTS + 1] = {MODEL_FAULT_KINDS(NAME)};

#define TYPE_VLAN 0x8100
#define ADDRESSES 12

/* The EtherType behind any 802.1Q tag; *at: what follows it. */
static uint16_t type_of(const struct model_frame *frame, uint32_t *at)
{
    uint16_t type = big_endian(frame->data + ADDRESSES);

    *at = ADDRESSES + 2;
    if (type == TYPE_VLAN && frame->length >= ADDRESSES + 6) {
        type = big_endian(frame->data + ADDRESSES + 4);
        *at += 4;
    }
    return type;
}

bool frame_tag(const struct model_frame *frame, uint16_t *tag)
{
    static const struct {
        uint16_t type;
        uint16_t headers;
    } kinds[] = {
        {0x88b5, 0}, {0x0800, 20 + 8}, {0x86dd, 40 + 8}}; /* engine/transport/dpdk/frame.h */
    struct signature signature;
    uint32_t at;
    uint16_t type = type_of(frame, &at);

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].type != type || frame->length < at + kinds[i].headers + sizeof signature)
            continue;
        memcpy(&signature, frame->data + at + kinds[i].headers, sizeof signature);
        *tag = be16toh(signature.tag);
        return signature_sound(&signature);
    }
    return false;
}

/* --- what each kind does; the frame is theirs --- */

static void duplicate(struct model *model, struct model_frame *frame, unsigned out)
{
    struct model_frame *copy = frame_copy(model, frame);

    frame_forward(model, frame, out);
    if (copy == NULL)
        return;
    copy->marks |= MARK_DUPLICATE;
    frame_admit(model, copy, out);
}

static void plan_holds(struct model *model)
{
    int64_t first = MODEL_NEVER;

    for (unsigned i = 0; i < model->hold_count; i++)
        if (model->holds[i].until_ns < first)
            first = model->holds[i].until_ns;
    wake(model, agent_holds(model), first);
}

static void hold_back(struct model *model, const struct model_fault_conf *conf,
                      struct model_frame *frame, unsigned out)
{
    model->holds[model->hold_count++] = (struct hold){
        .frame = frame,
        .out = out,
        .left = conf->displacement,
        .until_ns = model->now_ns + conf->hold_ns,
    };
    frame->flow->held++;
    plan_holds(model);
}

static void flip_bit(struct fault *fault, struct model_frame *frame)
{
    const struct model_fault_conf *conf = fault->conf;
    uint32_t last = conf->last_byte > 0 && conf->last_byte < frame->length ? conf->last_byte
                                                                           : frame->length - 1;
    uint32_t first = conf->first_byte < last ? conf->first_byte : last;
    uint32_t place;

    first = first < ADDRESSES ? ADDRESSES : first;
    place = prng_below(&fault->random, (last - first + 1) * 8);
    frame->data[first + place / 8] ^= (uint8_t)(1 << place % 8);
    frame->marks |= MARK_CORRUPTED;
}

static unsigned wrong_port(const struct model *model, struct fault *fault,
                           const struct model_frame *frame, unsigned out)
{
    uint64_t others = model->flood_mask & ~bit(frame->in) & ~bit(out);

    if (fault->conf->to != MODEL_NO_PORT)
        return (unsigned)fault->conf->to;
    for (uint32_t skip = prng_below(&fault->random, (uint32_t)__builtin_popcountll(others));
         skip > 0; skip--)
        others &= others - 1;
    return (unsigned)__builtin_ctzll(others);
}

static void strike(struct model *model, struct fault *fault, struct model_frame *frame,
                   unsigned out)
{
    switch (fault->conf->kind) {
    case MODEL_FAULT_DROP:
        frame_drop(model, frame, MODEL_DROP_FAULT);
        break;
    case MODEL_FAULT_DUPLICATE:
        duplicate(model, frame, out);
        break;
    case MODEL_FAULT_REORDER:
        hold_back(model, fault->conf, frame, out);
        break;
    case MODEL_FAULT_CORRUPT:
        flip_bit(fault, frame);
        frame_forward(model, frame, out);
        break;
    case MODEL_FAULT_WRONG_PORT:
        frame->marks |= MARK_WRONG;
        frame_admit(model, frame, wrong_port(model, fault, frame, out));
        break;
    default:
        frame_forward(model, frame, MODEL_FLOOD);
    }
}

/* --- which frames --- */

static bool fits_frame(const struct model_fault_conf *conf, const struct model_frame *frame)
{
    uint32_t at;

    return (!conf->of_source || conf->source == mac_at(frame->data + 6)) &&
           (!conf->of_destination || conf->destination == mac_at(frame->data)) &&
           (conf->ethertype == 0 || conf->ethertype == type_of(frame, &at));
}

/* Whether it can be done at all: only a frame with one destination can be doubled, held back or led
 * astray, and only one whose flow is known is held back until others of its flow have gone on. */
static bool can(const struct model *model, const struct model_fault_conf *conf,
                const struct model_frame *frame, unsigned out)
{
    switch (conf->kind) {
    case MODEL_FAULT_REORDER:
        return out != MODEL_FLOOD && model->hold_count < HOLDS_MAX &&
               frame->flow != flows_rest(&model->flows);
    case MODEL_FAULT_WRONG_PORT:
        return out != MODEL_FLOOD && conf->to != (int)out && conf->to != frame->in &&
               (model->flood_mask & ~bit(frame->in) & ~bit(out)) != 0;
    case MODEL_FAULT_DUPLICATE:
    case MODEL_FAULT_FLOOD:
        return out != MODEL_FLOOD;
    case MODEL_FAULT_CORRUPT:
        return frame->length > ADDRESSES;
    default:
        return true;
    }
}

static bool strikes_now(struct fault *fault)
{
    const struct model_fault_conf *conf = fault->conf;

    fault->truth.fitting++;
    if (conf->at_most > 0 && fault->truth.struck >= conf->at_most)
        return false;
    if (conf->one_in > 1 && prng_next(&fault->random) >= fault->below)
        return false;
    fault->truth.struck++;
    return true;
}

bool apply_faults(struct model *model, struct model_frame *frame, unsigned out, bool measured)
{
    for (unsigned i = 0; i < model->conf->fault_count; i++) {
        struct fault *fault = &model->faults[i];
        const struct model_fault_conf *conf = fault->conf;

        if (conf->kind >= MODEL_FAULT_DEAD || (conf->measured && !measured) ||
            (conf->in != MODEL_NO_PORT && conf->in != frame->in) ||
            (conf->out != MODEL_NO_PORT && conf->out != (int)out) || !fits_frame(conf, frame) ||
            !can(model, conf, frame, out) || !strikes_now(fault))
            continue;
        strike(model, fault, frame, out);
        return true;
    }
    return false;
}

/* --- frames that are held back --- */

static void let_go(struct model *model, unsigned index)
{
    struct hold hold = model->holds[index];

    /* Those behind it move up: of equal right, the first that was held goes first. */
    model->hold_count--;
    memmove(&model->holds[index], &model->holds[index + 1],
            (model->hold_count - index) * sizeof *model->holds);
    hold.frame->flow->held--;
    if (hold.overtaken)
        hold.frame->marks |= MARK_REORDERED;
    frame_admit(model, hold.frame, hold.out);
}

void faults_passed(struct model *model, const struct model_frame *frame)
{
    unsigned i = 0;

    if ((frame->marks & MARK_DUPLICATE) != 0)
        return;
    while (i < model->hold_count) {
        struct hold *hold = &model->holds[i];

        if (hold->frame->flow == frame->flow) {
            hold->overtaken = true;
            if (--hold->left == 0) {
                let_go(model, i);
                continue;
            }
        }
        i++;
    }
    plan_holds(model);
}

void faults_act(struct model *model)
{
    unsigned i = 0;

    while (i < model->hold_count) {
        if (model->holds[i].until_ns <= model->now_ns)
            let_go(model, i);
        else
            i++;
    }
    plan_holds(model);
}

/* --- life --- */

void faults_clear(struct model *model)
{
    for (unsigned i = 0; i < model->conf->fault_count; i++) {
        struct fault *fault = &model->faults[i];

        fault->conf = &model->conf->faults[i];
        fault->random = model->conf->seed + (i + 1) * 0xd1342543de82ef95;
        fault->below = fault->conf->one_in > 1 ? UINT64_MAX / fault->conf->one_in + 1 : UINT64_MAX;
        fault->truth = (struct model_fault_truth){0};
    }
}

int faults_open(struct model *model)
{
    const struct model_conf *conf = model->conf;

    if (conf->fault_count == 0)
        return 0;
    model->faults = calloc(conf->fault_count, sizeof *model->faults);
    model->holds = calloc(HOLDS_MAX, sizeof *model->holds);
    if (model->faults == NULL || model->holds == NULL)
        return -ENOMEM;
    faults_clear(model);
    for (unsigned i = 0; i < conf->fault_count; i++) {
        if (conf->faults[i].kind == MODEL_FAULT_DEAD)
            model->dead |= bit((unsigned)conf->faults[i].in);
        model->reads_tags |= conf->faults[i].measured;
    }
    return 0;
}

void faults_close(struct model *model)
{
    free(model->faults);
    free(model->holds);
}

struct model_fault_truth model_fault_truth(const struct model *model, unsigned fault)
{
    return model->faults[fault].truth;
}
