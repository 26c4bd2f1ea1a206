/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Planted faults. Each has its own random numbers, so that its effects do not depend on other
 * faults; effects on frames are counted when the frames leave.
 */
#include "inside.h"
#include "signature.h"

#include <errno.h>

#define NAME(kind, word) [MODEL_FAULT_##kind] = (word),
const char *const model_fault_names[MODEL_FAULTS + 1] = {MODEL_FAULT_KINDS(NAME)};

#define ADDRESSES 12

bool frame_tag(const struct model_frame *frame, uint16_t *tag)
{
    static const struct {
        uint16_t type;
        uint16_t headers;
    } kinds[] = {
        {0x88b5, 0}, {0x0800, 20 + 8}, {0x86dd, 40 + 8}}; /* engine/transport/dpdk/frame.h */
    struct signature signature;
    uint32_t at = ADDRESSES;
    uint16_t type;

    if (big_endian(frame->data + at) == TYPE_VLAN && frame->length >= at + VLAN_TAG + 2)
        at += VLAN_TAG;
    type = big_endian(frame->data + at);
    at += 2;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].type != type || frame->length < at + kinds[i].headers + sizeof signature)
            continue;
        memcpy(&signature, frame->data + at + kinds[i].headers, sizeof signature);
        *tag = be16toh(signature.tag);
        return signature_sound(&signature);
    }
    return false;
}

/* --- frames that are held back --- */

static void plan_holds(struct model *model)
{
    int64_t first = MODEL_NEVER;

    for (unsigned i = 0; i < model->hold_count; i++)
        if (model->holds[i].until_ns < first)
            first = model->holds[i].until_ns;
    wake(model, agent_of(model, AGENT_HOLDS), first);
}

static void let_go(struct model *model, unsigned index)
{
    struct hold hold = model->holds[index];

    /* The frames behind it move up: the frame held longest goes first. */
    model->hold_count--;
    memmove(&model->holds[index], &model->holds[index + 1],
            (model->hold_count - index) * sizeof *model->holds);
    hold.frame->flow->held--;
    if (hold.overtaken)
        hold.frame->marks |= MARK_REORDERED;
    frame_admit(model, hold.frame, hold.out);
}

static void faults_passed(struct model *model, const struct model_frame *frame)
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

void frame_forward(struct model *model, struct model_frame *frame, unsigned out)
{
    struct model_flow *flow = frame->flow;
    struct model_frame passed = {.flow = flow, .marks = frame->marks};

    if (out == MODEL_FLOOD)
        frame_flood(model, frame);
    else if (frame_admit(model, frame, out) && flow->held > 0)
        faults_passed(model, &passed);
}

/* --- effect of each kind of fault, which owns the frame --- */

static void duplicate(struct model *model, struct model_frame *frame, unsigned out)
{
    struct model_frame *copy = frame_copy(model, frame);

    frame_forward(model, frame, out);
    if (copy == NULL)
        return;
    copy->marks |= MARK_DUPLICATE;
    frame_admit(model, copy, out);
}

static void hold_back(struct model *model, const struct model_fault_conf *conf,
                      struct model_frame *frame, unsigned out)
{
    model->holds[model->hold_count++] = (struct hold){
        .frame = frame,
        .out = out,
        .left = conf->displacement,
        .until_ns = model->now_ns + conf->hold_ms * NS_PER_MS,
    };
    frame->flow->held++;
    plan_holds(model);
}

static void flip_bit(uint64_t *random, struct model_frame *frame)
{
    uint32_t place = prng_below(random, (frame->length - ADDRESSES) * 8);

    frame->data[ADDRESSES + place / 8] ^= (uint8_t)(1 << place % 8);
    frame->marks |= MARK_CORRUPTED;
}

static unsigned wrong_port(const struct model *model, struct fault *fault,
                           const struct model_frame *frame, unsigned out)
{
    uint64_t others = model->flood_mask & ~bit(frame->in) & ~bit(out);

    if (fault->to != MODEL_NO_PORT)
        return (unsigned)fault->to;
    for (uint32_t skip = prng_below(&fault->random, (uint32_t)__builtin_popcountll(others));
         skip > 0; skip--)
        others &= others - 1;
    return (unsigned)__builtin_ctzll(others);
}

static void strike(struct model *model, unsigned number, struct model_frame *frame, unsigned out)
{
    const struct model_fault_conf *conf = &model->conf->faults[number];
    struct fault *fault = &model->faults[number];

    switch (conf->kind) {
    case MODEL_FAULT_DROP:
        frame_drop(model, frame, MODEL_DROP_FAULT);
        break;
    case MODEL_FAULT_DUPLICATE:
        duplicate(model, frame, out);
        break;
    case MODEL_FAULT_REORDER:
        hold_back(model, conf, frame, out);
        break;
    case MODEL_FAULT_CORRUPT:
        flip_bit(&fault->random, frame);
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

/* Return whether the fault `number` can affect a frame: only a frame with one destination can be
 * duplicated, held back or misdelivered, and only a frame whose flow has its own entry can be held
 * back. */
static bool can(const struct model *model, unsigned number, const struct model_frame *frame,
                unsigned out)
{
    int to = model->faults[number].to;

    switch (model->conf->faults[number].kind) {
    case MODEL_FAULT_REORDER:
        return out != MODEL_FLOOD && model->hold_count < HOLDS_MAX &&
               frame->flow != &model->flows.all[MODEL_FLOWS_MAX];
    case MODEL_FAULT_WRONG_PORT:
        return out != MODEL_FLOOD && to != (int)out && to != frame->in &&
               (model->flood_mask & ~bit(frame->in) & ~bit(out)) != 0;
    case MODEL_FAULT_FLOOD:
        return out != MODEL_FLOOD && model->vlan_peer[frame->in] == MODEL_NO_PORT;
    case MODEL_FAULT_DUPLICATE:
        return out != MODEL_FLOOD;
    case MODEL_FAULT_CORRUPT:
        return frame->length > ADDRESSES;
    default:
        return true;
    }
}

static bool strikes_now(struct model *model, unsigned number)
{
    const struct model_fault_conf *conf = &model->conf->faults[number];
    struct model_fault_truth *truth = &model->fault_truth[number];

    truth->fitting++;
    if (conf->at_most > 0 && truth->struck >= conf->at_most)
        return false;
    if (conf->one_in > 1 &&
        prng_next(&model->faults[number].random) >= UINT64_MAX / conf->one_in + 1)
        return false;
    truth->struck++;
    return true;
}

bool apply_faults(struct model *model, struct model_frame *frame, unsigned out, bool measured)
{
    for (unsigned i = 0; i < model->conf->fault_count; i++) {
        const struct model_fault_conf *conf = &model->conf->faults[i];
        const struct fault *fault = &model->faults[i];

        if (conf->kind >= MODEL_FAULT_DEAD || (conf->measured && !measured) ||
            (fault->in != MODEL_NO_PORT && fault->in != frame->in) ||
            (fault->out != MODEL_NO_PORT && fault->out != (int)out) || !can(model, i, frame, out) ||
            !strikes_now(model, i))
            continue;
        strike(model, i, frame, out);
        return true;
    }
    return false;
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

int faults_check(const struct model_conf *conf, struct err *err)
{
    for (unsigned i = 0; i < conf->fault_count; i++) {
        const struct model_fault_conf *fault = &conf->faults[i];
        const char *const ports[] = {fault->in, fault->out, fault->to, fault->port};
        const char *kind = model_fault_names[fault->kind];

        for (size_t k = 0; k < sizeof ports / sizeof *ports; k++)
            if (ports[k] != NULL && model_port(conf, ports[k]) == MODEL_NO_PORT)
                return err_set(err, -EINVAL, "faults: there is no port '%s'", ports[k]);
        if (fault->kind >= MODEL_FAULT_DEAD && fault->port == NULL)
            return err_set(err, -EINVAL, "faults: %s needs a `port`", kind);
        if (fault->kind < MODEL_FAULT_DEAD && fault->port != NULL)
            return err_set(err, -EINVAL, "faults: %s does not take `port`: use `in` or `out`",
                           kind);
        if (fault->kind == MODEL_FAULT_SLOW && fault->rate_bps == 0)
            return err_set(err, -EINVAL, "faults: slow needs a `rate_bps`");
        if (fault->kind == MODEL_FAULT_REORDER && fault->displacement == 0)
            return err_set(err, -EINVAL,
                           "faults: reorder needs a `displacement`: the number of later frames "
                           "that pass first");
    }
    return 0;
}

void faults_clear(struct model *model)
{
    memset(model->fault_truth, 0, sizeof model->fault_truth);
    for (unsigned i = 0; i < model->conf->fault_count; i++)
        model->faults[i].random = model->conf->seed + (i + 1) * 0xd1342543de82ef95;
}

void faults_open(struct model *model)
{
    const struct model_conf *conf = model->conf;

    for (unsigned i = 0; i < conf->fault_count; i++) {
        const struct model_fault_conf *fault = &conf->faults[i];

        model->faults[i].in = model_port(conf, fault->in);
        model->faults[i].out = model_port(conf, fault->out);
        model->faults[i].to = model_port(conf, fault->to);
        if (fault->kind == MODEL_FAULT_DEAD)
            model->dead |= bit((unsigned)model_port(conf, fault->port));
        model->reads_tags |= fault->measured;
    }
    faults_clear(model);
}
