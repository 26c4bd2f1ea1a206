/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents.h"

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
    size_t size;     /* of the first document, ... */
    size_t end;      /* ... and with its end line; 0: it is not whole yet ... */
    size_t searched; /* ... and no end line begins before this */
    unsigned line;   /* of the stream, at text[0]; from 1 */
};

int input_open(struct input **input, int fd, bool whole, const struct transport *const *transports,
               struct err *err)
{
    *input = calloc(1, sizeof **input);
    if (*input == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    **input = (struct input){.fd = fd, .whole = whole, .transports = transports, .line = 1};
    return 0;
}

void input_close(struct input *input)
{
    if (input == NULL)
        return;
    free(input->text);
    free(input);
}

/* Looks for the line "..." that ends the first document; the last line of a stream may lack its
 * newline. */
static void find_end(struct input *input)
{
    while (input->end == 0 && input->searched < input->used) {
        const char *line = input->text + input->searched;
        const char *newline = memchr(line, '\n', input->used - input->searched);
        size_t length = newline != NULL ? (size_t)(newline - line) : input->used - input->searched;
        size_t i = 3;

        if (newline == NULL && !input->ended)
            return;
        input->size = input->searched;
        input->searched += length + (newline != NULL);
        if (length < 3 || memcmp(line, "...", 3) != 0)
            continue;
        while (i < length && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r'))
            i++;
        if (i == length)
            input->end = input->searched;
    }
}

/* Whether a read would not wait is asked of poll, not of O_NONBLOCK: other processes that share the
 * file, as a shell shares its terminal, would have to live with it. */
int input_read(struct input *input, struct err *err)
{
    struct pollfd ready = {.fd = input->fd, .events = POLLIN};

    while (!input->ended && poll(&ready, 1, 0) > 0) {
        char *grown = input->text;
        ssize_t n;

        if (input->end == 0 && input->used > DOCUMENT_BYTES_MAX)
            return err_set(err, -E2BIG, "a document of more than %u MiB: is its end '...' missing?",
                           DOCUMENT_BYTES_MAX >> 20);
        if (input->room - input->used < READ_BYTES) {
            grown = realloc(input->text, 2 * input->room + READ_BYTES);
            if (grown == NULL)
                return err_set(err, -ENOMEM, "out of memory");
            input->room = 2 * input->room + READ_BYTES;
        }
        input->text = grown;
        n = read(input->fd, input->text + input->used, READ_BYTES);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return err_set(err, -errno, "can't read documents: %s", strerror(errno));
        input->ended = n == 0;
        input->used += n > 0 ? (size_t)n : 0;
        find_end(input);
    }
    return 0;
}

bool input_ended(const struct input *input)
{
    return input->ended;
}

int input_next(struct input *input, struct document **document, struct err *err)
{
    for (;;) {
        struct mapping_text text = {input->text, 0, input->line};
        size_t end;
        int rc;

        find_end(input);
        end = input->end;
        text.size = input->size;
        if (end == 0 && input->ended && input->whole)
            text.size = end = input->used;
        if (end == 0)
            return 0;
        rc = document_parse(document, &text, input->transports, err);
        for (size_t i = 0; i < end; i++)
            input->line += input->text[i] == '\n';
        memmove(input->text, input->text + end, input->used - end);
        input->used -= end;
        input->end = input->searched = 0;
        if (rc < 0)
            return rc;
        if ((*document)->kind != DOCUMENT_NONE)
            return 1;
        document_free(*document);
    }
}
