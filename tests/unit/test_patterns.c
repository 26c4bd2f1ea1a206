/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One battery over all patterns, by the rows of patterns.txt: laws of any plan for any number of
 * ranks; a digest of a whole plan (phases, flows, steps, memory), so that a request means the same
 * traffic everywhere; plans and messages worked out by hand; refusals. Executors run schedules with
 * real data (ranks.h), and find wrong results.
 */
#include "documents.h"
#include "ranks.h"
#include "registry.h"
#include "unit.h"

#include <inttypes.h>
#include <math.h>

static struct schedule schedule_of(const struct pattern_plan *plan, uint32_t phase, uint32_t rank)
{
    struct schedule schedule;

    assert_int_equal(pattern_schedule(plan, phase, rank, &schedule), 0);
    return schedule;
}

/* The linker's name (ld --wrap): no executor is refused for lack of memory, and thousands do not
 * each read it from the kernel. */
uint64_t __wrap_memory_spare(void);
uint64_t __wrap_memory_spare(void)
{
    return UINT64_MAX;
}

/* --- rows of patterns.txt ------------------------------------------------------------------- */

/* Return the request of a row: its ranks and pattern are the first two fields. It is valid until
 * the next call. */
static const struct pattern_request *request_of(const struct unit_row *row)
{
    static struct document *document;
    struct err err = {0};
    char plan[1024], json[2048];
    struct mapping_text text = {json, 0, 1};

    document_free(document);
    snprintf(plan, sizeof(plan), "{plan: {ranks: %s, pattern: %s}}", row->fields[0],
             row->fields[1]);
    text.size = strlen(unit_json(json, plan));
    if (document_parse(&document, &text, transports, &err) < 0)
        row_fails(row, "%s", err.text);
    return &document->plan->pattern;
}

/* --- schedules ----------------------------------------------------------------------------- */

static bool is_message(const struct schedule_op *op)
{
    return op->action == SCHEDULE_SEND || op->action == SCHEDULE_RECEIVE;
}

static bool is_apart(uint64_t a, uint64_t b, uint64_t a_bytes, uint64_t b_bytes)
{
    return a >= b + b_bytes || b >= a + a_bytes;
}

/* Check the rules of schedule.h for one rank's operations: steps without gaps, messages first,
 * places in its memory, and no place that two receives of a step write. Add up their sums. */
static void check_schedule(const struct schedule *schedule, uint32_t n, uint32_t rank)
{
    uint64_t messages = 0, bytes = 0;
    uint32_t steps = 0;

    for (size_t i = 0; i < schedule->count; i++) {
        const struct schedule_op *op = &schedule->ops[i], *before = op;

        assert_true(op->step == steps || (i > 0 && op->step == steps - 1));
        steps = op->step + 1;
        assert_true(op->at + op->bytes <= schedule->memory);
        if (op->action == SCHEDULE_REDUCE || op->action == SCHEDULE_COPY)
            assert_true(op->from + op->bytes <= schedule->memory &&
                        is_apart(op->from, op->at, op->bytes, op->bytes));
        assert_true(op->action != SCHEDULE_REDUCE || (op->bytes | op->at | op->from) % 4 == 0);
        messages += op->action == SCHEDULE_SEND;
        bytes += op->action == SCHEDULE_SEND ? op->bytes : 0;
        if (!is_message(op))
            continue;
        assert_true(op->peer < n && op->peer != rank);
        while (before-- > schedule->ops && before->step == op->step)
            assert_true(is_message(before) &&
                        ((before->action == SCHEDULE_SEND && op->action == SCHEDULE_SEND) ||
                         is_apart(before->at, op->at, before->bytes, op->bytes)));
    }
    assert_true(schedule->steps == steps && schedule->messages == messages &&
                schedule->bytes == bytes);
}

/* Make the ranks of a phase, each with its input. */
static void make_ranks(const struct pattern_plan *plan, uint32_t phase, uint32_t n,
                       uint32_t repetitions)
{
    struct phase of = counted(1, repetitions, 0, pattern_iterations(plan) == 0);

    of.number = phase;
    sim_make(plan, n, &of);
    sim.rests = pattern_iterations(plan) > 0;
    for (uint32_t rank = 0; rank < n; rank++) {
        const struct schedule_executor *executor = sim.ranks[rank].executor;

        check_schedule(&executor->schedule, n, rank);
        schedule_fill(&executor->schedule, executor->memory);
    }
}

/* --- laws ----------------------------------------------------------------------------------- */

enum law {
    MATCHING = 1 << 0,  /* a rank has at most one partner each way in a phase */
    MUTUAL = 1 << 1,    /* a rank also receives from each rank to which it sends */
    ALL_PAIRS = 1 << 2, /* the phases together have each ordered pair once */
    CYCLE = 1 << 3,     /* in a phase, first flows lead through all ranks and back */
    FAIR = 1 << 4,      /* over all phases all ranks send as much, and receive as much */
    IN_TURN = 1 << 5,
    KERNEL = 1 << 6, /* results can't be verified; it counts iterations */
    FLOATS = 1 << 7, /* sizes are multiples of 4 */
    SIZES = 1 << 8,  /* the pattern has sizes */
    SHARES = 1 << 9, /* senders to one rank divide its line */
};

#define UP_TO_SHIFT 16 /* of the maximum of checked ranks, 33 unless a row has another */

static unsigned laws_of(const struct unit_row *row)
{
    static const char *const names[] = {"MATCHING", "MUTUAL", "ALL_PAIRS", "CYCLE", "FAIR",
                                        "IN_TURN",  "KERNEL", "FLOATS",    "SIZES", "SHARES"};
    char words[64], *rest = words, *word;
    unsigned laws = 33u << UP_TO_SHIFT;

    snprintf(words, sizeof(words), "%s", row->fields[2]);
    while ((word = strsep(&rest, " ")) != NULL) {
        unsigned i = 0;

        if (strcmp(word, "UP_TO") == 0) {
            laws = (laws & 0xffff) | (unsigned)atoi(rest) << UP_TO_SHIFT;
            break;
        }
        while (i < 10 && strcmp(word, names[i]) != 0)
            i++;
        if (i == 10 && strcmp(word, "-") != 0)
            row_fails(row, "there is no law %s", word);
        laws |= i < 10 ? 1u << i : 0;
    }
    return laws;
}

/* Sums over all phases; steps and memory are the maxima over ranks. */
struct totals {
    uint32_t flows, steps;
    uint64_t bytes, memory, digest;
};

static void mix(struct totals *totals, uint64_t word)
{
    for (unsigned i = 0; i < 8; i++)
        totals->digest = (totals->digest ^ (word >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
}

static void mix_schedule(struct totals *totals, const struct schedule_executor *executor)
{
    const struct schedule *schedule = &executor->schedule;

    for (size_t i = 0; i < schedule->count; i++) {
        const struct schedule_op *op = &schedule->ops[i];
        /* Operations are computed in floating point, so their last digits depend on the machine. */
        uint64_t from = op->action == SCHEDULE_WORK ? op->from / 1000 : op->from;
        const uint64_t words[] = {op->step, op->action, op->peer, op->at, from, op->bytes};

        for (EACH(word, words))
            mix(totals, *word);
    }
    totals->bytes += schedule->bytes;
    totals->steps = schedule->steps > totals->steps ? schedule->steps : totals->steps;
    totals->memory = schedule->memory > totals->memory ? schedule->memory : totals->memory;
    mix(totals, schedule->memory);
    for (uint64_t i = 0; schedule->memory <= 4096 && i < schedule->memory; i++)
        mix(totals, executor->memory[i]);
}

static void run_schedule(const struct pattern_plan *plan, unsigned laws, uint32_t n, uint32_t phase,
                         struct totals *totals)
{
    const char *wrong;

    make_ranks(plan, phase, n, 2);
    assert_int_equal(pattern_iterations(plan) > 0, (laws & KERNEL) != 0);
    mix(totals, pattern_iterations(plan));
    for (uint32_t rank = 0; rank < n; rank++)
        mix_schedule(totals, sim.ranks[rank].executor);
    wrong = sim_run();
    if (wrong[0] != '\0')
        fail_msg("of %u: %s", n, wrong);
    sim_free();
}

/* Read all ranks' flows on one side, by source and destination: 0, or how the flow goes on. Each is
 * in range, of this rank, to another one, and listed once. */
static uint64_t *side_of(const struct pattern_plan *plan, uint32_t n, uint32_t phase,
                         enum pattern_side side, struct totals *totals)
{
    uint64_t *matrix = calloc((size_t)n * n, sizeof(*matrix)), *cell;
    struct pattern_flow *flows = calloc(n, sizeof(*flows));

    assert_true(matrix != NULL && flows != NULL);
    for (uint32_t rank = 0; rank < n; rank++) {
        size_t count = pattern_flows(plan, phase, rank, side, flows, n);

        assert_in_range(count, 0, n - 1);
        for (size_t i = 0; i < count; i++) {
            assert_true(flows[i].src < n && flows[i].dst < n && flows[i].src != flows[i].dst);
            assert_int_equal(side == PATTERN_SENDS ? flows[i].src : flows[i].dst, rank);
            cell = &matrix[flows[i].src * n + flows[i].dst];
            assert_true(*cell == 0);
            *cell = 1 + flows[i].role + ((uint64_t)flows[i].share << 8);
            mix(totals, (uint64_t)flows[i].src << 32 | flows[i].dst);
            mix(totals, *cell);
        }
        totals->flows += side == PATTERN_SENDS ? (uint32_t)count : 0;
    }
    free(flows);
    return matrix;
}

static void check_phase(unsigned laws, const uint64_t *sent, uint32_t n)
{
    for (uint32_t a = 0; a < n; a++) {
        uint32_t out = 0, in = 0;

        for (uint32_t b = 0; b < n; b++) {
            out += sent[a * n + b] != 0;
            in += sent[b * n + a] != 0;
            assert_true(!(laws & MUTUAL) || (sent[a * n + b] != 0) == (sent[b * n + a] != 0));
        }
        assert_true(!(laws & MATCHING) || (out <= 1 && in <= 1));
        for (uint32_t b = 0; b < n && laws & SHARES; b++)
            assert_true(sent[b * n + a] == 0 || sent[b * n + a] >> 8 == PATTERN_WHOLE / in);
    }
}

static void check_all_phases(unsigned laws, const uint64_t *all, uint32_t n)
{
    uint64_t sent[2] = {0}, received[2] = {0}; /* of rank 0, and of another */

    for (uint32_t a = 0; a < n; a++) {
        sent[a > 0] = received[a > 0] = 0;
        for (uint32_t b = 0; b < n; b++) {
            assert_true(!(laws & ALL_PAIRS) || all[a * n + b] == (a != b));
            sent[a > 0] += all[a * n + b];
            received[a > 0] += all[b * n + a];
        }
        assert_true(!(laws & FAIR) || a == 0 || (sent[1] == sent[0] && received[1] == received[0]));
    }
}

static void check_cycle(const struct pattern_plan *plan, uint32_t n, uint32_t phase)
{
    bool *met = calloc(n, sizeof(*met));
    struct pattern_flow flow;
    uint32_t rank = 0;

    for (uint32_t step = 0; step < n; step++) {
        assert_true(rank < n && !met[rank]);
        met[rank] = true;
        assert_true(pattern_flows(plan, phase, rank, PATTERN_SENDS, &flow, 1) >= 1);
        rank = flow.dst;
        assert_true(pattern_flows(plan, phase, rank, PATTERN_RECEIVES, &flow, 1) >= 1);
        assert_int_equal(flow.dst, rank);
    }
    assert_int_equal(rank, 0);
    free(met);
}

/* Check the plan for `n` ranks. Return its number of phases; 0: there is no plan, as some patterns
 * need a power of two or a square of ranks. */
static uint32_t check_plan(const struct pattern_request *asked, unsigned laws, uint32_t n,
                           uint64_t bytes, struct totals *totals)
{
    struct pattern_request request = *asked;
    struct pattern_plan *plan = NULL;
    uint64_t *all;
    uint32_t phases;
    char text[512];

    request.n = n;
    request.bytes = bytes;
    if (pattern_plan_make(&plan, &request, text, sizeof(text)) < 0)
        return 0;
    all = calloc((size_t)n * n, sizeof(*all));
    phases = pattern_phases(plan);
    mix(totals, n);
    assert_int_equal(pattern_in_turn(plan), (laws & IN_TURN) != 0);
    for (uint32_t phase = 0; phase < phases; phase++) {
        uint64_t *sent = side_of(plan, n, phase, PATTERN_SENDS, totals);
        uint64_t *received = side_of(plan, n, phase, PATTERN_RECEIVES, totals);

        assert_memory_equal(sent, received, sizeof(*sent) * n * n);
        check_phase(laws, sent, n);
        if (laws & CYCLE)
            check_cycle(plan, n, phase);
        for (size_t i = 0; i < (size_t)n * n; i++)
            all[i] += sent[i] != 0;
        pattern_phase_name(plan, phase, text, sizeof(text));
        for (const char *at = text; *at != '\0'; at++)
            mix(totals, (unsigned char)*at);
        if (pattern_is_scheduled(plan))
            run_schedule(plan, laws, n, phase, totals);
        free(received);
        free(sent);
    }
    check_all_phases(laws, all, n);
    free(all);
    pattern_plan_free(plan);
    return phases;
}

static unsigned wrong_rows;

/* Sizes: none, one byte, fewer than ranks, odd ones, and many without a common divisor; for few
 * ranks also one that is cut into pieces. */
TEST_ROWS(laws_and_digests_hold, "law")
{
    static const uint64_t sizes[] = {0, 1, 13, 250, 4099, 1000004};
    static const uint64_t floats[] = {0, 4, 12, 148, 4012, 1000004};
    const struct pattern_request *request = request_of(row);
    unsigned laws = laws_of(row);
    const uint64_t *bytes = laws & FLOATS ? floats : sizes;
    struct totals all = {.digest = UINT64_C(0xcbf29ce484222325)}, of_16 = {0};
    uint32_t phases;
    char got[128];

    for (uint32_t n = 2; n <= laws >> UP_TO_SHIFT; n++) {
        struct totals ignored = {0};

        for (size_t i = 0; i < (laws & SIZES ? n == 3 || n == 4 ? 6 : 5 : 1); i++)
            check_plan(request, laws, n, bytes[i], n <= 33 ? &all : &ignored);
    }
    phases = check_plan(request, laws, 16, laws & SIZES ? 64 : 0, &of_16);
    snprintf(got, sizeof(got), "%u %u %" PRIu64 " %u %" PRIu64 " 0x%" PRIx64, phases, of_16.flows,
             of_16.bytes, of_16.steps, of_16.memory, all.digest);
    if (strcmp(got, row->fields[3]) != 0) {
        print_error("%s:%d: %s\n", unit_argument, row->line, got);
        wrong_rows++;
    }
}

TEST(no_digest_has_changed)
{
    assert_int_equal(wrong_rows, 0);
}

/* --- many ranks ----------------------------------------------------------------------------- */

/* Some ranks' partners receive from them, and no schedule needs more memory than the limit. */
TEST_ROWS(many_ranks_keep_the_laws, "law")
{
    static const uint32_t ranks[] = {1000, 16384, 65535, 65536};
    unsigned laws = laws_of(row);
    struct pattern_request request = *request_of(row);

    request.bytes = laws & SIZES ? 1 << 20 : 0;
    request.class = request.class != NULL ? "D" : NULL;
    for (EACH(n, ranks)) {
        struct pattern_plan *plan = NULL;
        char why[256];

        request.n = *n;
        if (pattern_plan_make(&plan, &request, why, sizeof(why)) < 0)
            continue;
        for (uint32_t rank = 0; rank < *n && laws & MATCHING; rank += 1 + *n / 999) {
            uint32_t phase = pattern_phases(plan) - 1;
            struct pattern_flow sent, received;

            if (pattern_flows(plan, phase, rank, PATTERN_SENDS, &sent, 1) == 0)
                continue;
            assert_true(sent.dst < *n && sent.dst != rank);
            assert_int_equal(pattern_flows(plan, phase, sent.dst, PATTERN_RECEIVES, &received, 1),
                             1);
            assert_int_equal(received.src, rank);
        }
        if (laws & CYCLE)
            check_cycle(plan, *n, pattern_phases(plan) - 1);
        if (pattern_is_scheduled(plan)) {
            struct schedule schedule = schedule_of(plan, 0, *n - 2);

            for (size_t k = 0; k < schedule.count; k++)
                assert_true(schedule.ops[k].at + schedule.ops[k].bytes <= schedule.memory);
            assert_true(schedule.memory <= UINT64_C(3) * *n << 20);
            assert_true(pattern_flows(plan, 0, *n - 2, PATTERN_SENDS, NULL, 0) >= 9);
            schedule_free(&schedule);
        }
        pattern_plan_free(plan);
    }
}

/* --- plans by hand -------------------------------------------------------------------------- */

/* Return the destinations of a rank in the order in which it sends to them, with their shares if
 * they have one, as text: "2 3 1", "2:600000000 3:400000000"; "-": none. */
static const char *sends_to(const struct pattern_plan *plan, uint32_t phase, uint32_t rank)
{
    static char text[256];
    struct pattern_flow flows[16];
    size_t count = pattern_flows(plan, phase, rank, PATTERN_SENDS, flows, 16), used = 0;

    assert_in_range(count, 0, 16);
    strcpy(text, "-");
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIu32, i > 0 ? " " : "",
                                 flows[i].dst);
        if (flows[i].share > 0)
            used += (size_t)snprintf(text + used, sizeof(text) - used, ":%u", flows[i].share);
    }
    return text;
}

/* Fields: a phase, its name, and each rank's destinations. */
TEST_ROWS(plans_are_as_by_hand, "hand")
{
    struct pattern_plan *plan = plan_of(request_of(row));
    uint32_t phase = (uint32_t)atoi(row->fields[2]), rank = 0;
    char name[64];

    pattern_phase_name(plan, phase, name, sizeof(name));
    assert_string_equal(name, row->fields[3]);
    for (char *to = strtok(row->fields[4], ","); to != NULL; to = strtok(NULL, ","), rank++)
        if (strcmp(sends_to(plan, phase, rank), to + strspn(to, " ")) != 0)
            row_fails(row, "rank %u sends to %s", rank, sends_to(plan, phase, rank));
    pattern_plan_free(plan);
}

/* The work of a rank in one iteration: fields are the rank and another one (or all, most, work,
 * iterations), bytes or operations, and how many. Each piece of work is rounded down. */
TEST_ROWS(an_iteration_sends_this, "sent")
{
    struct pattern_plan *plan = plan_of(request_of(row));
    uint64_t count = 0, bytes = 0, most = 0, same = 0, size, expected;
    double work = 0, pieces = 0;
    struct schedule schedule;
    unsigned rank, peer = 0;
    char to[16];

    assert_int_equal(sscanf(row->fields[2], "%u %15s", &rank, to), 2);
    assert_int_equal(sscanf(row->fields[3], "%" SCNu64 " %" SCNu64, &size, &expected), 2);
    sscanf(to, "%u", &peer);
    schedule = schedule_of(plan, 0, rank);
    for (size_t i = 0; i < schedule.count; i++) {
        const struct schedule_op *op = &schedule.ops[i];

        pieces += op->action == SCHEDULE_WORK;
        work += op->action == SCHEDULE_WORK ? (double)op->from : 0;
        if (op->action != SCHEDULE_SEND)
            continue;
        count++;
        bytes += op->bytes;
        most = op->bytes > most ? op->bytes : most;
        same += op->peer == peer && op->bytes == size;
    }
    if (strcmp(to, "most") == 0)
        assert_int_equal(most, size);
    else if (strcmp(to, "all") == 0)
        assert_true(count == expected && (size == 0 || bytes == size));
    else if (strcmp(to, "work") == 0)
        assert_true(pieces == (double)expected && fabs(work - (double)size) < pieces + 1);
    else if (strcmp(to, "iterations") == 0)
        assert_int_equal(pattern_iterations(plan), expected);
    else
        assert_int_equal(same, expected);
    schedule_free(&schedule);
    pattern_plan_free(plan);
}

/* --- refusals ------------------------------------------------------------------------------- */

TEST_ROWS(wrong_requests_are_refused, "refused")
{
    struct pattern_plan *plan = NULL;
    char why[512] = "";

    assert_int_equal(pattern_plan_make(&plan, request_of(row), why, sizeof(why)), -EINVAL);
    assert_string_equal(why, row->fields[2]);
    assert_null(plan);
}

/* --- wrong results -------------------------------------------------------------------------- */

/* A wrong number in one element, of a sum or of bytes: fields are the place of its last byte in the
 * memory of rank 4, the element and its source, or "sum". */
static const struct unit_row *wrong_row;

static void spoil_result(struct rank *rank)
{
    struct schedule_executor *executor = rank->executor;
    unsigned at, element, source = SCHEDULE_SUM;
    struct schedule_wrong wrong;

    if (executor->rank != 4)
        return;
    assert_true(sscanf(wrong_row->fields[2], "%u %u %u", &at, &element, &source) >= 2);
    executor->place[at] ^= 1;
    assert_false(schedule_verify(&executor->schedule, executor->place, &wrong));
    assert_true(wrong.element == element && wrong.at == at && wrong.source == source &&
                wrong.got != wrong.expected);
    executor->place[at] ^= 1;
}

TEST_ROWS(wrong_elements_are_named, "wrong")
{
    const struct pattern_request *request = request_of(row);
    struct pattern_plan *plan = plan_of(request);
    const struct schedule_executor *executor;

    make_ranks(plan, 0, request->n, 1);
    executor = sim.ranks[4].executor;
    assert_false(schedule_verify(&executor->schedule, executor->memory,
                                 &(struct schedule_wrong){0})); /* nothing received */
    wrong_row = row;
    sim.look = spoil_result;
    assert_string_equal(sim_run(), "");
    assert_int_equal(executor->execution.verified, 1);
    sim_free();
    pattern_plan_free(plan);
}

/* One changed bit of one message shows in the result of every function that moves or reduces data.
 */
TEST_ROWS(a_spoilt_message_is_found, "law")
{
    unsigned laws = laws_of(row);
    struct pattern_request request = *request_of(row);
    struct pattern_plan *plan;

    if (!(laws & SIZES) || request.local)
        return;
    request.n = 6;
    request.bytes = 240;
    plan = plan_of(&request);
    make_ranks(plan, 0, 6, 1);
    sim.spoil = 1;
    if (sim_run()[0] == '\0')
        row_fails(row, "a wrong message is not found");
    sim_free();
    pattern_plan_free(plan);
}
