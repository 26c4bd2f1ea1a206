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
    size_t searched; /* no line ends before this */
    unsigned line;   /* number of the line at text[0], from 1 */
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

/* Each read follows a poll(), so that it does not block. O_NONBLOCK would change the open file also
 * for other processes that share it, such as a shell that shares its terminal. */
int input_read(struct input *input, struct err *err)
{
    struct pollfd ready = {.fd = input->fd, .events = POLLIN};

    while (!input->ended && poll(&ready, 1, 0) > 0) {
        char *grown = input->text;
        ssize_t n;

        if (input->used > DOCUMENT_BYTES_MAX &&
            memchr(input->text, '\n', DOCUMENT_BYTES_MAX) == NULL)
            return err_set(err, -E2BIG, "a document of more than %u MiB: is its newline missing?",
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
            return err_set(err, -errno,
                           "can't read the node's documents (standard input or file): %s",
                           strerror(errno));
        input->ended = n == 0;
        input->used += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

bool input_ended(const struct input *input)
{
    return input->ended;
}

int input_next(struct input *input, struct document **document, struct err *err)
{
    int rc = 0;

    while (rc == 0 && input->used > 0) {
        const char *newline =
            memchr(input->text + input->searched, '\n', input->used - input->searched);
        size_t size = newline != NULL ? (size_t)(newline - input->text) + 1 : input->used;

        input->searched = input->used;
        if (newline == NULL && !(input->ended && input->whole))
            return 0;
        if (input->text[0] != '\n') {
            const struct mapping_text text = {input->text, size, input->line};

            rc = document_parse(document, &text, input->transports, err);
            rc = rc == 0 ? 1 : rc;
        }
        input->line++;
        input->used -= size;
        input->searched = 0;
        memmove(input->text, input->text + size, input->used);
    }
    return rc;
}
