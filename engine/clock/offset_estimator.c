/* SPDX-License-Identifier: BSD-3-Clause */
#include "offset_estimator.h"

#include <math.h>
#include <stdlib.h>

/* Stamps beyond 36 years are not of a clock that began with its machine. */
#define STAMP_MOST_NS (INT64_MAX / 8)
#define RATE_MOST (OFFSET_RATE_PPM * 1e-6)
#define ROUNDING_NS 1.0 /* a limit is the difference of two stamps in whole nanoseconds */
#define EXACT_NS 1e-3   /* doubles are no better than that */
#define KNOWN_MOST_NS 1e18

static bool sane(int64_t stamp_ns)
{
    return stamp_ns >= 0 && stamp_ns < STAMP_MOST_NS;
}

int64_t offset_drift_ns(int64_t age_ns)
{
    return age_ns ? llabs(age_ns) / (1000000 / OFFSET_RATE_PPM) + 1 : 0;
}

/* Wraps where no clocks could be. */
static double difference(int64_t a, int64_t b)
{
    return (double)(int64_t)((uint64_t)a - (uint64_t)b);
}

/* How far the offset may lie from its straight line so long before or after. */
static double turn_ns(double away_ns)
{
    double away_s = fabs(away_ns) * 1e-9;
    double turned_ns = 1e3 * away_s * (OFFSET_WANDER_PPM + OFFSET_TURN_PPM_PER_S / 2 * away_s);
    double most_ns = 2 * RATE_MOST * fabs(away_ns);

    return ROUNDING_NS + (turned_ns < most_ns ? turned_ns : most_ns);
}

/* --- half planes: o + rate * at <= limit; those from below are negated: -o + rate * at <= limit */

struct plane {
    double at;
    double limit;
    double turn; /* of which is in the limit for what the rate turns */
};

struct planes {
    struct plane all[OFFSET_POINTS];
    uint32_t count;
};

/* All limits as seen from a time, about `base_ns`, which keeps the doubles small. */
struct view {
    struct planes above;
    struct planes below;
};

static const struct offset_point *point_of(const struct offset_side *side, uint32_t i)
{
    return &side->points[(side->oldest + i) % OFFSET_POINTS];
}

static const struct offset_point *newest(const struct offset_side *side)
{
    return point_of(side, side->count - 1);
}

static void see(struct planes *planes, const struct offset_side *side, double sign,
                const struct offset_point *from)
{
    planes->count = side->count;
    for (uint32_t i = 0; i < side->count; i++) {
        const struct offset_point *point = point_of(side, i);
        double away_ns = difference(point->at_ns, from->at_ns);
        double turn = turn_ns(away_ns);

        planes->all[i] = (struct plane){
            .at = sign * away_ns,
            .limit = sign * difference(point->limit_ns, from->limit_ns) + turn,
            .turn = turn,
        };
    }
}

static double value(const struct plane *plane, double rate)
{
    return plane->limit - rate * plane->at;
}

/* The plane that limits the most at this rate. */
static const struct plane *tightest(const struct planes *planes, double rate)
{
    const struct plane *found = &planes->all[0];
    double least = value(found, rate);

    for (uint32_t i = 1; i < planes->count; i++) {
        double other = value(&planes->all[i], rate);

        if (other < least) {
            least = other;
            found = &planes->all[i];
        }
    }
    return found;
}

/* Moves a rate that may be impossible inwards (+1: up, -1: down) to the first that is not. The room
 * between the limits is a concave function of the rate and below the line of any two of them, so
 * Newton's steps never go too far. False: no rate is possible. */
static bool clip(const struct view *view, double *rate, double inwards)
{
    for (uint32_t step = 0; step < 4 * OFFSET_POINTS && fabs(*rate) <= RATE_MOST * 1.001; step++) {
        const struct plane *above = tightest(&view->above, *rate);
        const struct plane *below = tightest(&view->below, *rate);
        double room = value(above, *rate) + value(below, *rate);
        double slope = -(above->at + below->at);

        if (room >= -EXACT_NS)
            return true;
        if (slope * inwards <= 0)
            return false;
        *rate -= room / slope;
    }
    return false;
}

/* The rates that contradict no limit. */
static bool rates(const struct view *view, double *low, double *high)
{
    *low = -RATE_MOST;
    *high = RATE_MOST;
    if (!clip(view, low, 1) || !clip(view, high, -1))
        return false;
    if (*low > *high) /* by rounding, where one rate is all that is left */
        *high = *low;
    return true;
}

/* The greatest o that the planes allow at some rate from `low` to `high`: the peak of a concave
 * function, from the lines on its two sides. */
static double peak(const struct planes *planes, double low, double high)
{
    const struct plane *rising = tightest(planes, low);
    const struct plane *falling = tightest(planes, high);

    if (rising->at >= 0)
        return value(rising, low);
    if (falling->at <= 0)
        return value(falling, high);
    for (uint32_t step = 0; step < 4 * OFFSET_POINTS; step++) {
        double rate = (rising->limit - falling->limit) / (rising->at - falling->at);
        const struct plane *between = tightest(planes, rate);

        if (between->at == 0 || value(between, rate) >= value(rising, rate) - EXACT_NS)
            return value(between, rate);
        if (between->at < 0)
            rising = between;
        else
            falling = between;
    }
    return value(rising, low); /* it does not get here; above the peak or on it */
}

struct solution {
    double low_ns;
    double high_ns;
    double low_rate;
    double high_rate;
};

/* What the limits say of a time; `from->limit_ns` is the base. */
static bool solve(const struct offset *offset, const struct offset_point *from, struct view *view,
                  struct solution *found)
{
    if (offset->above.count == 0 || offset->below.count == 0)
        return false;
    see(&view->above, &offset->above, 1, from);
    see(&view->below, &offset->below, -1, from);
    if (!rates(view, &found->low_rate, &found->high_rate))
        return false;
    found->high_ns = peak(&view->above, found->low_rate, found->high_rate);
    found->low_ns = -peak(&view->below, found->low_rate, found->high_rate);
    return found->high_ns < KNOWN_MOST_NS && found->low_ns > -KNOWN_MOST_NS;
}

/* --- asymmetry --- */

#define NEAREST 8u

/* k by m, for 1 %: 0.01^(-1/(m-1)) - 1. */
static const double reach[NEAREST + 1] = {
    [4] = 3.642, [5] = 2.162, [6] = 1.512, [7] = 1.154, [8] = 0.931};

/* What the tightest limits of one way came to. */
struct tight {
    double first_ns;
    double unseen_ns; /* how much tighter the least delay's may be; below 0: too few to say */
};

static struct tight tighten(const struct planes *planes, double rate)
{
    double least[NEAREST] = {0};
    uint32_t count = 0;

    for (uint32_t i = 0; i < planes->count; i++) {
        double one = value(&planes->all[i], rate) - planes->all[i].turn;
        uint32_t place = count < NEAREST ? count++ : NEAREST;

        for (; place > 0 && least[place - 1] > one; place--)
            if (place < NEAREST)
                least[place] = least[place - 1];
        if (place < NEAREST)
            least[place] = one;
    }
    return (struct tight){
        .first_ns = least[0],
        .unseen_ns = count < 4 ? -1 : reach[count] * (least[count - 1] - least[0]),
    };
}

/* What of the bound is the two ways' least delays, and not as much as was stated. */
static double known_ns(const struct offset *offset, const struct view *view,
                       const struct solution *found)
{
    double rate = (found->low_rate + found->high_rate) / 2;
    struct tight there, back;
    double unseen_ns, known;

    if (offset->asymmetry_ns == OFFSET_ANY_ASYMMETRY)
        return 0;
    there = tighten(&view->above, rate);
    back = tighten(&view->below, rate);
    if (there.unseen_ns < 0 || back.unseen_ns < 0)
        return 0;
    unseen_ns = (there.unseen_ns > back.unseen_ns ? there.unseen_ns : back.unseen_ns) / 2;
    known = (there.first_ns + back.first_ns) / 2 - (double)offset->asymmetry_ns - unseen_ns;
    return known > 0 ? known : 0;
}

/* --- learning --- */

void offset_init(struct offset *offset, int64_t asymmetry_ns)
{
    *offset =
        (struct offset){.above.newest_ns = -1, .below.newest_ns = -1, .asymmetry_ns = asymmetry_ns};
}

static void forget_oldest(struct offset_side *side)
{
    side->oldest = (side->oldest + 1) % OFFSET_POINTS;
    side->count--;
}

/* A newer limit that is looser by no more than the clocks may have turned since is as good. */
static bool is_tighter(const struct offset *offset, const struct offset_point *point,
                       const struct offset_point *kept, double sign)
{
    double age_ns = difference(point->at_ns, kept->at_ns);
    double looser_ns = sign * (difference(point->limit_ns, kept->limit_ns) - offset->rate * age_ns);

    return looser_ns <= turn_ns(age_ns);
}

static void add(struct offset *offset, struct offset_side *side, double sign,
                const struct offset_point *point)
{
    if (point->at_ns <= side->newest_ns)
        return; /* an echo that was said before */
    side->newest_ns = point->at_ns;
    if (side->count > 0 && point->at_ns - side->slot_ns < OFFSET_SLOT_NS) {
        struct offset_point *kept = &side->points[(side->oldest + side->count - 1) % OFFSET_POINTS];

        if (is_tighter(offset, point, kept, sign))
            *kept = *point;
        return;
    }
    if (side->count == OFFSET_POINTS)
        forget_oldest(side);
    side->points[(side->oldest + side->count++) % OFFSET_POINTS] = *point;
    side->slot_ns = point->at_ns;
}

/* Limits that contradict each other: a clock was stepped, or turned faster than it may. Only what
 * is newer can be right. */
static void settle(struct offset *offset, const struct offset_point *latest)
{
    struct offset_side *above = &offset->above, *below = &offset->below;
    struct solution found;
    struct view view;

    while (above->count > 0 && below->count > 0) {
        see(&view.above, above, 1, latest);
        see(&view.below, below, -1, latest);
        if (rates(&view, &found.low_rate, &found.high_rate)) {
            offset->rate = (found.low_rate + found.high_rate) / 2;
            return;
        }
        forget_oldest(point_of(above, 0)->at_ns < point_of(below, 0)->at_ns ? above : below);
        offset->rate = 0;
    }
}

void offset_at_most(struct offset *offset, int64_t at_ns, int64_t limit_ns)
{
    const struct offset_point point = {at_ns, limit_ns};

    add(offset, &offset->above, 1, &point);
    settle(offset, &point);
}

void offset_at_least(struct offset *offset, int64_t at_ns, int64_t limit_ns)
{
    const struct offset_point point = {at_ns, limit_ns};

    add(offset, &offset->below, -1, &point);
    settle(offset, &point);
}

void offset_departed(struct offset *offset, int64_t ours_ns, int64_t theirs_ns)
{
    if (sane(ours_ns) && sane(theirs_ns))
        offset_at_most(offset, ours_ns, theirs_ns - ours_ns);
}

void offset_arrived(struct offset *offset, int64_t theirs_ns, int64_t ours_ns)
{
    if (sane(ours_ns) && sane(theirs_ns))
        offset_at_least(offset, ours_ns, theirs_ns - ours_ns);
}

/* --- asking --- */

struct offset_estimate offset_estimate(const struct offset *offset, int64_t at_ns)
{
    struct offset_point from = {.at_ns = at_ns};
    struct solution found;
    struct view view;
    double bound_ns;

    if (offset->above.count > 0)
        from.limit_ns = newest(&offset->above)->limit_ns;
    if (!solve(offset, &from, &view, &found))
        return (struct offset_estimate){0, -1};
    bound_ns = (found.high_ns - found.low_ns) / 2 - known_ns(offset, &view, &found);
    return (struct offset_estimate){
        .offset_ns = from.limit_ns + (int64_t)((found.low_ns + found.high_ns) / 2),
        .bound_ns = bound_ns > 0 ? (int64_t)bound_ns + 1 : 1,
    };
}

struct offset_rate offset_rate(const struct offset *offset, int64_t at_ns)
{
    struct offset_point from = {.at_ns = at_ns};
    struct solution found;
    struct view view;

    if (offset->above.count > 0)
        from.limit_ns = newest(&offset->above)->limit_ns;
    if (!solve(offset, &from, &view, &found))
        return (struct offset_rate){0, -1};
    return (struct offset_rate){
        .ppm = (found.low_rate + found.high_rate) / 2 * 1e6,
        .bound_ppm = (found.high_rate - found.low_rate) / 2 * 1e6,
    };
}
