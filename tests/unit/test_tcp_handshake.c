/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp/handshake.h"

#include <signal.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct tcp_place place = {
    .trial = 3, .phase = 70000, .src = 65535, .dst = 1, .tag = 0xabcd, .stream = 9};

static void derive(uint8_t *key, char secret, const char *run_id)
{
    struct transport_secret run = {.run_id = run_id};

    memset(run.key, secret, sizeof run.key);
    tcp_key_derive(key, &run);
}

static void both_prove(void **state)
{
    uint8_t key[TCP_KEY_BYTES];
    struct tcp_challenge challenge;
    struct tcp_claim claim;
    struct tcp_proof proof;
    struct tcp_place claimed;

    derive(key, 'k', "run");
    tcp_challenge_make(&challenge);
    assert_true(tcp_challenge_valid(&challenge));
    tcp_claim_make(&claim, &place, &challenge, key);
    assert_true(tcp_claim_valid(&claim, &challenge, key, &claimed));
    assert_int_equal(claimed.trial, place.trial);
    assert_int_equal(claimed.phase, place.phase);
    assert_int_equal(claimed.src, place.src);
    assert_int_equal(claimed.dst, place.dst);
    assert_int_equal(claimed.tag, place.tag);
    assert_int_equal(claimed.stream, place.stream);
    tcp_proof_make(&proof, &claim, &challenge, key);
    assert_true(tcp_proof_valid(&proof, &claim, &challenge, key));
}

static void any_changed_bit_is_refused(void **state)
{
    uint8_t key[TCP_KEY_BYTES];
    struct tcp_challenge challenge;
    struct tcp_claim claim;
    struct tcp_proof proof;
    struct tcp_place claimed;

    derive(key, 'k', "run");
    tcp_challenge_make(&challenge);
    tcp_claim_make(&claim, &place, &challenge, key);
    for (size_t i = 0; i < 8 * sizeof claim; i++) {
        struct tcp_claim changed = claim;

        ((uint8_t *)&changed)[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_false(tcp_claim_valid(&changed, &challenge, key, &claimed));
    }
    tcp_proof_make(&proof, &claim, &challenge, key);
    for (size_t i = 0; i < 8 * sizeof proof; i++) {
        struct tcp_proof changed = proof;

        changed.mac[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_false(tcp_proof_valid(&changed, &claim, &challenge, key));
    }
}

static void nothing_replays(void **state)
{
    uint8_t key[TCP_KEY_BYTES];
    struct tcp_challenge first;
    struct tcp_challenge second;
    struct tcp_claim claim;
    struct tcp_claim again;
    struct tcp_proof proof;
    struct tcp_place claimed;

    derive(key, 'k', "run");
    tcp_challenge_make(&first);
    tcp_challenge_make(&second);
    tcp_claim_make(&claim, &place, &first, key);
    assert_false(tcp_claim_valid(&claim, &second, key, &claimed));
    tcp_claim_make(&again, &place, &first, key);
    tcp_proof_make(&proof, &claim, &first, key);
    assert_false(tcp_proof_valid(&proof, &again, &first, key));
    /* Nor does a connector's MAC serve as an acceptor's. */
    memcpy(proof.mac, claim.mac, sizeof proof.mac);
    assert_false(tcp_proof_valid(&proof, &claim, &first, key));
}

static void keys_differ_by_run(void **state)
{
    uint8_t mine[TCP_KEY_BYTES];
    uint8_t other_key[TCP_KEY_BYTES];
    uint8_t other_run[TCP_KEY_BYTES];
    struct tcp_challenge challenge;
    struct tcp_claim claim;
    struct tcp_place claimed;

    derive(mine, 'k', "run");
    derive(other_key, 'l', "run");
    derive(other_run, 'k', "run2");
    tcp_challenge_make(&challenge);
    tcp_claim_make(&claim, &place, &challenge, other_key);
    assert_false(tcp_claim_valid(&claim, &challenge, mine, &claimed));
    tcp_claim_make(&claim, &place, &challenge, other_run);
    assert_false(tcp_claim_valid(&claim, &challenge, mine, &claimed));
}

/* Whoever derives a key before the run's is known must find out at once. */
static void a_key_of_zeros_ends_the_program(void **state)
{
    uint8_t key[TCP_KEY_BYTES];
    pid_t child = fork();
    int status;

    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        derive(key, 0, "run");
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_prove),
        cmocka_unit_test(any_changed_bit_is_refused),
        cmocka_unit_test(nothing_replays),
        cmocka_unit_test(keys_differ_by_run),
        cmocka_unit_test(a_key_of_zeros_ends_the_program),
    };

    if (sodium_init() < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
