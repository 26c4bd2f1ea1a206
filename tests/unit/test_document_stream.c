/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Documents as they arrive: in any pieces, many at once, cut short, too large.
 */
#include "document_reader.h"
#include "document_stream.h"
#include "registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct scene {
    struct input *input;
    int reader;
    int writer;
};

static void set_scene(struct scene *scene, bool whole)
{
    struct err err = {0};
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    *scene = (struct scene){.reader = ends[0], .writer = ends[1]};
    assert_int_equal(input_open(&scene->input, scene->reader, whole, transports, &err), 0);
}

static void strike(struct scene *scene)
{
    input_close(scene->input);
    close(scene->reader);
    if (scene->writer >= 0)
        close(scene->writer);
}

/* Writes all of it, read by the input whenever the pipe is full; the input's answer. */
static int feed(struct scene *scene, const char *text, size_t size, struct err *err)
{
    int rc = 0;

    while (size > 0 && rc == 0) {
        ssize_t n = write(scene->writer, text, size);

        if (n < 0)
            assert_int_equal(errno, EAGAIN);
        text += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
        rc = input_read(scene->input, err);
    }
    return rc;
}

static void say(struct scene *scene, const char *text)
{
    struct err err = {0};

    assert_int_equal(feed(scene, text, strlen(text), &err), 0);
}

static void end(struct scene *scene)
{
    struct err err = {0};

    close(scene->writer);
    scene->writer = -1;
    assert_int_equal(input_read(scene->input, &err), 0);
    assert_true(input_ended(scene->input));
}

/* The next document's beat; -1: none is whole. */
static int64_t next_beat(struct scene *scene)
{
    struct document *document;
    struct err err = {0};
    int64_t beat;

    if (input_next(scene->input, &document, &err) != 1) {
        assert_string_equal(err.text, "");
        return -1;
    }
    assert_int_equal(document_kind(document), DOCUMENT_BEAT);
    beat = (int64_t)*document->heartbeat;
    document_free(document);
    return beat;
}

static void any_pieces_make_a_document(void **state)
{
    static const char text[] =
        "heartbeat: 1\n...\n# a word\nheartbeat: 2\n... \r\n---\nheartbeat: 3\n...\n";
    struct scene scene;
    int64_t expected = 1;

    set_scene(&scene, false);
    for (const char *c = text; *c != '\0'; c++) {
        char piece[] = {*c, '\0'};
        int64_t beat;

        say(&scene, piece);
        beat = next_beat(&scene);
        if (beat >= 0)
            assert_int_equal(beat, expected++);
    }
    assert_int_equal(expected, 4);
    strike(&scene);
}

static void many_documents_wait_in_order(void **state)
{
    struct scene scene;
    char text[32];

    set_scene(&scene, false);
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof text, "heartbeat: %d\n...\n", i);
        say(&scene, text);
    }
    end(&scene);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(next_beat(&scene), i);
    assert_int_equal(next_beat(&scene), -1);
    strike(&scene);
}

static void empty_documents_are_passed_over(void **state)
{
    struct scene scene;

    set_scene(&scene, false);
    say(&scene, "...\n...\n# nothing\n...\nheartbeat: 4\n...\n");
    assert_int_equal(next_beat(&scene), 4);
    assert_int_equal(next_beat(&scene), -1);
    strike(&scene);
}

static void a_document_cut_short_is_not_run_from_a_pipe(void **state)
{
    struct scene scene;

    set_scene(&scene, false);
    say(&scene, "heartbeat: 5\n...\nheartbeat: 6\n");
    end(&scene);
    assert_int_equal(next_beat(&scene), 5);
    assert_int_equal(next_beat(&scene), -1);
    strike(&scene);
}

static void the_last_of_a_file_needs_no_end(void **state)
{
    struct scene scene;

    set_scene(&scene, true);
    say(&scene, "heartbeat: 5\n...\nheartbeat: 6");
    assert_int_equal(next_beat(&scene), 5);
    assert_int_equal(next_beat(&scene), -1);
    end(&scene);
    assert_int_equal(next_beat(&scene), 6);
    assert_int_equal(next_beat(&scene), -1);
    strike(&scene);
}

static void an_end_without_newline_is_an_end(void **state)
{
    struct scene scene;

    set_scene(&scene, false);
    say(&scene, "heartbeat: 7\n...");
    assert_int_equal(next_beat(&scene), -1);
    end(&scene);
    assert_int_equal(next_beat(&scene), 7);
    strike(&scene);
}

static void dots_elsewhere_are_no_end(void **state)
{
    struct scene scene;

    set_scene(&scene, false);
    say(&scene, "# ...\n ...\n....\n");
    assert_int_equal(next_beat(&scene), -1);
    strike(&scene);
}

static void a_refusal_names_the_line_of_the_stream(void **state)
{
    struct scene scene;
    struct document *document;
    struct err err = {0};

    set_scene(&scene, false);
    say(&scene, "heartbeat: 1\n...\n\n\nbaet: 2\n...\n");
    assert_int_equal(next_beat(&scene), 1);
    assert_int_equal(input_next(scene.input, &document, &err), -EINVAL);
    assert_non_null(strstr(err.text, "baet"));
    assert_non_null(strstr(err.text, "line 5"));
    strike(&scene);
}

static void only_one_document_is_limited_in_size(void **state)
{
    const size_t size = DOCUMENT_BYTES_MAX / 4;
    char *comment = malloc(size);
    struct scene scene;
    struct err err = {0};

    set_scene(&scene, false);
    memset(comment, 'x', size);
    for (size_t i = 0; i < size; i += 100) {
        comment[i] = '\n';
        comment[i + 1] = '#';
    }
    comment[size - 1] = '\n';
    for (int i = 0; i < 8; i++) { /* twice the limit waits */
        assert_int_equal(feed(&scene, comment, size, &err), 0);
        say(&scene, "heartbeat: 8\n...\n");
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(next_beat(&scene), 8);
    for (int i = 0; i < 4; i++)
        assert_int_equal(feed(&scene, comment, size, &err), 0);
    assert_int_equal(feed(&scene, comment, size, &err), -E2BIG);
    assert_non_null(strstr(err.text, "16 MiB"));
    free(comment);
    strike(&scene);
}

/* A shell that shares its terminal with a node would find it changed. */
static void test_flags_of_the_file_stay(void **state)
{
    struct scene scene;
    int before;

    set_scene(&scene, false);
    before = fcntl(scene.reader, F_GETFL);
    assert_int_equal(before & O_NONBLOCK, 0);
    say(&scene, "heartbeat: 1\n...\n"); /* and reads twice: nobody waits */
    assert_int_equal(next_beat(&scene), 1);
    end(&scene);
    assert_int_equal(fcntl(scene.reader, F_GETFL), before);
    strike(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_of_the_file_stay),
        cmocka_unit_test(any_pieces_make_a_document),
        cmocka_unit_test(many_documents_wait_in_order),
        cmocka_unit_test(empty_documents_are_passed_over),
        cmocka_unit_test(a_document_cut_short_is_not_run_from_a_pipe),
        cmocka_unit_test(the_last_of_a_file_needs_no_end),
        cmocka_unit_test(an_end_without_newline_is_an_end),
        cmocka_unit_test(dots_elsewhere_are_no_end),
        cmocka_unit_test(a_refusal_names_the_line_of_the_stream),
        cmocka_unit_test(only_one_document_is_limited_in_size),
    };

    return cmocka_run_group_tests_name("input", tests, NULL, NULL);
}
