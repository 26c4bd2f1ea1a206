/* SPDX-License-Identifier: BSD-3-Clause */
#include "document_stream.h"

#include "document_reader.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536

struct input {
    int fd;
    bool whole;
    const struct transport *const *transports;
    bool ended;
    char *text;
    size_t used;
    size_t room;
    size_t whole_used; /* so much of the text is whole documents, each with its end line; */
    size_t searched;   /* behind it no end line lies before this offset */
    unsigned line;     /* of the stream, at text[0]; from 1 */
};

int input_open(struct input **input, int fd, bool whole, const struct transport *const *transports,
               struct err *err)
{
    *input = calloc(1, sizeof **input);
    if (*input == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    (*input)->fd = fd;
    (*input)->whole = whole;
    (*input)->transports = transports;
    (*input)->line = 1;
    return 0;
}

void input_close(struct input *input)
{
    if (input == NULL)
        return;
    free(input->text);
    free(input);
}

static int make_room(struct input *input, struct err *err)
{
    size_t room = input->room > 0 ? input->room : READ_BYTES;
    char *text;

    if (input->used - input->whole_used > DOCUMENT_BYTES_MAX)
        return err_set(err, -E2BIG, "a document of more than %u MiB: is its end '...' missing?",
                       DOCUMENT_BYTES_MAX >> 20);
    while (room - input->used < READ_BYTES)
        room *= 2;
    if (room == input->room)
        return 0;
    text = realloc(input->text, room);
    if (text == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    input->text = text;
    input->room = room;
    return 0;
}

static bool is_end_line(const char *line, size_t length)
{
    if (length < 3 || memcmp(line, "...", 3) != 0)
        return false;
    for (size_t i = 3; i < length; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

/* Offset behind the first end line at or behind `at`, and in *size its own; 0: there is none, and
 * *size is where an unfinished last line begins. */
static size_t find_end_line(const struct input *input, size_t at, size_t *size)
{
    const char *text = input->text;

    while (at < input->used) {
        const char *newline = memchr(text + at, '\n', input->used - at);
        size_t length = newline != NULL ? (size_t)(newline - text) - at : input->used - at;

        *size = at;
        if (newline == NULL && !input->ended)
            return 0;
        at += length + (newline != NULL);
        if (is_end_line(text + *size, length))
            return at;
    }
    *size = at;
    return 0;
}

/* Notes which documents have come whole. */
static void find_whole(struct input *input)
{
    size_t size;
    size_t end;

    while ((end = find_end_line(input, input->searched, &size)) > 0)
        input->whole_used = input->searched = end;
    input->searched = size;
}

/* Whether a read would not wait. Not by O_NONBLOCK: other processes that share the file, as a shell
 * shares its terminal, would have to live with it. */
static bool is_ready(const struct input *input)
{
    struct pollfd ready = {.fd = input->fd, .events = POLLIN};

    return poll(&ready, 1, 0) > 0;
}

int input_read(struct input *input, struct err *err)
{
    ssize_t n;
    int rc;

    while (!input->ended && is_ready(input)) {
        rc = make_room(input, err);
        if (rc < 0)
            return rc;
        n = read(input->fd, input->text + input->used, READ_BYTES);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, -errno, "can't read documents: %s", strerror(errno));
        input->ended = n == 0;
        input->used += (size_t)n;
        find_whole(input);
    }
    return 0;
}

bool input_ended(const struct input *input)
{
    return input->ended;
}

static void drop_front(struct input *input, size_t size)
{
    for (size_t i = 0; i < size; i++)
        input->line += input->text[i] == '\n';
    memmove(input->text, input->text + size, input->used - size);
    input->used -= size;
    input->whole_used -= size < input->whole_used ? size : input->whole_used;
    input->searched -= size < input->searched ? size : input->searched;
}

/* Where the first document ends with its end line, and in *size without; 0: it is not whole. */
static size_t first_end(const struct input *input, size_t *size)
{
    if (input->whole_used > 0)
        return find_end_line(input, 0, size);
    *size = input->used;
    return input->ended && input->whole ? input->used : 0;
}

int input_next(struct input *input, struct document **document, struct err *err)
{
    size_t size;
    size_t end;
    int rc;

    while ((end = first_end(input, &size)) > 0) {
        const struct mapping_text text = {input->text, size, input->line};

        rc = document_parse(document, &text, input->transports, err);
        drop_front(input, end);
        if (rc < 0)
            return rc;
        if (*document != NULL && document_kind(*document) != DOCUMENT_NONE)
            return 1;
        document_free(*document);
    }
    return 0;
}
